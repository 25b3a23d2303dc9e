// How images and volumes are shared between ranks: which rows each computes, and the halos that it is given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/plan/plan.h"
#include "tests/support/sharded.h"
#include "tests/support/stages.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using test::count;
using test::exchanges;
using test::local;
using test::parameter;
using test::plan_of;
using test::zoo;

// 7x7, stride 2, padded by 3: 112 = 224 / 2 results; of a half's 56 the first needs 3 rows before, the last
// (56 - 1) 2 - 3 + 6 = 113 = two rows after the own 112. 3x3, stride 2, padded by 1: 1 before, 2 - 2 = 0 after.
TEST(ShardedImages, ImagesAreSplitWithHalos) {
  const Graph graph = zoo("resnet50", 4);
  const Plan plan = plan_of(graph, "spatial=2x1");
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(local(graph, stage, "conv1"), "[4x3x117x224,64x3x7x7]->[4x64x56x112]:f32");
  EXPECT_EQ(local(graph, stage, "MaxPool.1"), "[4x64x57x112]->[4x64x28x56]:f32");
  EXPECT_EQ(local(graph, stage, "layer1.0.conv2"), "[4x64x30x56,64x64x3x3]->[4x64x28x56]:f32");
  EXPECT_EQ(local(graph, stage, "layer2.0.downsample.0"), "[4x256x28x56,512x256x1x1]->[4x512x14x28]:f32");

  // Halos: the first convolution's (its input needs no gradient), the pool's, and the 3x3s of layers 1 to 3: 3 + 4 + 6.
  const std::vector<std::string> all = exchanges(stage);
  EXPECT_EQ(count(all, "halo/none"), 1);
  EXPECT_EQ(count(all, "halo/halo sum"), 14);
  // Layer 4 makes 7 of 14 rows, which two ranks cannot share: its two operands are gathered, and all is whole from
  // there.
  EXPECT_EQ(count(all, "all-gather/slice"), 2);
  EXPECT_EQ(local(graph, stage, "layer4.0.conv2"), "[4x512x14x14,512x512x3x3]->[4x512x7x7]:f32");
  EXPECT_EQ(local(graph, stage, "layer4.0.conv1"), "[4x1024x7x14,512x1024x1x1]->[4x512x7x14]:f32");
}

// Rows of the first halo: 4 images x 3 channels x 224 x 4 bytes. The upper rank gives its last 3, the lower its
// first 2. Of the pool's (64 x 112 wide) one row goes down; its gradient comes back up.
TEST(ShardedImages, BytesOfHalosAtTheRim) {
  const Graph graph = zoo("resnet50", 4);
  const Plan plan = plan_of(graph, "spatial=2x1");
  const Stage& stage = plan.stages[0];
  std::vector<Exchange> halos;
  for (const Step& step : stage.steps)
    if (const auto* e = std::get_if<Exchange>(&step)) halos.push_back(*e);
  const auto sent = [&](std::size_t i, int rank, Pass pass) {
    return bytes_sent(plan, stage, halos[i], rank, pass, Algorithm::ring);
  };
  const std::int64_t row = 4 * 3 * 224 * 4, pool_row = 4 * 64 * 112 * 4;
  EXPECT_EQ(sent(0, 0, Pass::forward), 3 * row);
  EXPECT_EQ(sent(0, 1, Pass::forward), 2 * row);
  EXPECT_EQ(sent(0, 0, Pass::backward), 0);
  EXPECT_EQ(sent(1, 0, Pass::forward), pool_row);
  EXPECT_EQ(sent(1, 1, Pass::forward), 0);
  EXPECT_EQ(sent(1, 0, Pass::backward), 0);
  EXPECT_EQ(sent(1, 1, Pass::backward), pool_row);
  // What it takes to wait for: of two ranks the larger slab, of more both, from a rank between two others.
  const auto given = [&](int ways) {
    const Shape &in = stage[halos[0].input].shape, &out = stage[halos[0].output].shape;
    return halo_elements_given(halos[0].forward, in, out, ways) * 4;
  };
  EXPECT_EQ(given(2), 3 * row);
  EXPECT_EQ(given(3), 5 * row);
}

// What lies in the other dimension's halo is exchanged after it, so that corners arrive in two hops.
TEST(ShardedImages, TwoDimensionsOfAnImageFetchCorners) {
  const Graph graph = zoo("resnet50", 4);
  const Plan plan = plan_of(graph, "spatial=2x2,data=2");
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(local(graph, stage, "conv1"), "[4x3x117x117,64x3x7x7]->[4x64x56x56]:f32");
  std::vector<MeshAxis> axes;
  for (const MeshAxis axis : parameter(graph, stage, "conv1.weight").summed_over) axes.push_back(axis);
  EXPECT_THAT(axes, ElementsAre(MeshAxis::height, MeshAxis::width));
  EXPECT_THAT(parameter(graph, stage, "fc.weight").summed_over, IsEmpty());
  // One exchange of gradients over image and replicas together, one over replicas for what follows the gather.
  ASSERT_EQ(stage.gradients.size(), 2U);
  EXPECT_THAT(stage.gradients[0].axes, ElementsAre(MeshAxis::width, MeshAxis::height, MeshAxis::data));
  EXPECT_THAT(stage.gradients[1].axes, ElementsAre(MeshAxis::data));
  EXPECT_EQ(plan.mesh.group(5, stage.gradients[0].axes), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(ShardedImages, FiltersAndImagesTogether) {
  const Graph graph = zoo("resnet50", 4);
  const Stage stage = plan_of(graph, "filter=2,spatial=2x1").stages[0];
  EXPECT_EQ(local(graph, stage, "conv1"), "[4x3x117x224,32x3x7x7]->[4x32x56x112]:f32");
  EXPECT_EQ(local(graph, stage, "layer1.0.conv2"), "[4x64x30x56,32x64x3x3]->[4x32x28x56]:f32");
  EXPECT_THAT(parameter(graph, stage, "conv1.weight").summed_over, ElementsAre(MeshAxis::height));
}

TEST(ShardedImages, VolumesAreSplitToo) {
  const Graph graph = zoo("cosmoflow", 1);
  const Stage stage = plan_of(graph, "spatial=2x2x2").stages[0];
  EXPECT_THAT(exchanges(stage), testing::Contains("halo/halo sum").Times(testing::Ge(3)));
  EXPECT_EQ(stage.gradients.front().axes.size(), 3U);
}

// Bytes rank 0 sends for exchanges along the axis, forward and backward: of halos, and of an instance norm's
// statistics.
struct SentByRank0 {
  std::int64_t halos = 0, statistics = 0;
};

SentByRank0 sent_by_rank_0(const Plan& plan) {
  SentByRank0 sent;
  const Stage& stage = plan.stages[0];
  for (const Step& step : stage.steps) {
    const auto* e = std::get_if<Exchange>(&step);
    if (!e) continue;
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const std::int64_t bytes = bytes_sent(plan, stage, *e, 0, pass, Algorithm::ring);
      if (e->forward.motion == Motion::halo) sent.halos += bytes;
      if (stage[e->input].shape.size() == 3) sent.statistics += bytes;
    }
  }
  return sent;
}

// Of 128 slices each of two ranks has 64, of the bottleneck's 4 it has 2, and on the way up the same again: nothing is
// gathered. Each of 22 convolutions of 3^3 takes a halo, the transposed ones (2^3, stride 2) none; each instance norm
// is one sum each way.
TEST(ShardedImages, VolumesStaySplitDownAndUpAUNet) {
  const Graph graph = zoo("unet3d-mlperf", 1);
  const Plan plan = plan_of(graph, "spatial=2x1x1");
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(local(graph, stage, "input_block.conv1.0"), "[1x1x66x128x128,32x1x3x3x3]->[1x32x64x128x128]:f32");
  EXPECT_EQ(local(graph, stage, "bottleneck.conv2.0"), "[1x320x4x4x4,320x320x3x3x3]->[1x320x2x4x4]:f32");
  EXPECT_EQ(local(graph, stage, "upsample.0.upsample_conv"), "[1x320x2x4x4,320x320x2x2x2,320]->[1x320x4x8x8]:f32");
  EXPECT_EQ(local(graph, stage, "upsample.4.conv2.0"), "[1x32x66x128x128,32x32x3x3x3]->[1x32x64x128x128]:f32");
  EXPECT_EQ(local(graph, stage, "output"), "[1x32x64x128x128,3x32x1x1x1,3]->[1x3x64x128x128]:f32");
  EXPECT_THAT(parameter(graph, stage, "upsample.0.upsample_conv.weight").summed_over, ElementsAre(MeshAxis::depth));
  EXPECT_THAT(parameter(graph, stage, "upsample.0.conv1.1.weight").summed_over, ElementsAre(MeshAxis::depth));
  const std::vector<std::string> all = exchanges(stage);
  EXPECT_EQ(count(all, "halo/none"), 1);
  EXPECT_EQ(count(all, "halo/halo sum"), 21);
  EXPECT_EQ(count(all, "all-reduce/all-reduce"), 22);
  EXPECT_EQ(count(all, "all-reduce/none"), 1) << "the loss";
  EXPECT_EQ(all.size(), 45U);

  // Two norms a level with 32, 64, 128, 256 and 320 channels down, 320 in the bottleneck, and the same up: 3840
  // channels. A ring of 2 sends as many bytes as the buffer has, two numbers a channel, in each pass.
  const SentByRank0 sent = sent_by_rank_0(plan);
  const std::int64_t channels = 2 * (2 * (32 + 64 + 128 + 256 + 320) + 320);
  EXPECT_EQ(sent.statistics, 2 * 2 * channels * 4);
  Strategy halved = plan.strategy;
  halved.precision = Precision::bf16;
  EXPECT_EQ(sent_by_rank_0(*make_plan(graph, halved)).statistics, sent.statistics) << "statistics stay f32";
  // Rank 0 gives its last slice forward, and backward what it has of the gradient of its neighbour's first. With stride
  // 2 no slice comes from behind, so that there is no such gradient.
  const auto slice = [](std::int64_t c, std::int64_t extent) { return c * extent * extent * 4; };
  const std::int64_t down = slice(1, 128) + 2 * slice(32, 128) + slice(32, 128) + 2 * slice(64, 64) + slice(64, 64) +
                            2 * slice(128, 32) + slice(128, 32) + 2 * slice(256, 16) + slice(256, 16) +
                            2 * slice(320, 8) + slice(320, 8) + 2 * slice(320, 4);
  const std::int64_t up = 2 * (slice(640, 8) + slice(320, 8) + slice(512, 16) + slice(256, 16) + slice(256, 32) +
                               slice(128, 32) + slice(128, 64) + slice(64, 64) + slice(64, 128) + slice(32, 128));
  EXPECT_EQ(sent.halos, down + up);
}

// Of 8 ranks in a row each would have half a slice of the bottleneck: its operand is gathered, and what is kept of that
// level is then there, whole, for the way up. Above it, where the result meets what was kept split, it is split again.
TEST(ShardedImages, AUNetTooDeepToStaySplitIsSplitAgainOnItsWayUp) {
  const Graph graph = zoo("unet3d-mlperf", 1);
  const Stage stage = plan_of(graph, "spatial=8x1x1").stages[0];
  EXPECT_EQ(local(graph, stage, "downsample.3.conv2.0"), "[1x320x3x8x8,320x320x3x3x3]->[1x320x1x8x8]:f32");
  EXPECT_EQ(local(graph, stage, "bottleneck.conv1.0"), "[1x320x8x8x8,320x320x3x3x3]->[1x320x4x4x4]:f32");
  EXPECT_EQ(local(graph, stage, "upsample.0.conv1.0"), "[1x640x8x8x8,320x640x3x3x3]->[1x320x8x8x8]:f32");
  EXPECT_EQ(local(graph, stage, "upsample.1.upsample_conv"), "[1x320x8x8x8,320x256x2x2x2,256]->[1x256x16x16x16]:f32");
  EXPECT_EQ(local(graph, stage, "upsample.1.conv1.0"), "[1x512x4x16x16,256x512x3x3x3]->[1x256x2x16x16]:f32");
  EXPECT_EQ(local(graph, stage, "upsample.2.upsample_conv"), "[1x256x2x16x16,256x128x2x2x2,128]->[1x128x4x32x32]:f32");
}

// Group norms, and transformers: what attention among pixels makes is split again where it is added to the image.
TEST(ShardedImages, StableDiffusionKeepsItsRows) {
  const Graph graph = zoo("sd1.5-unet", 2);
  const Stage stage = plan_of(graph, "spatial=2x1").stages[0];
  EXPECT_EQ(local(graph, stage, "conv_in"), "[2x4x34x64,320x4x3x3,320]->[2x320x32x64]:f32");
  EXPECT_EQ(local(graph, stage, "down_blocks.0.resnets.0.norm1"), "[2x320x32x64]->[2x2x32]:f32");
  EXPECT_EQ(local(graph, stage, "mid_block.resnets.1.conv1"), "[2x1280x6x8,1280x1280x3x3,1280]->[2x1280x4x8]:f32");
  EXPECT_EQ(local(graph, stage, "conv_out"), "[2x320x34x64,4x320x3x3,4]->[2x4x32x64]:f32");
}

// Convolutions without padding make fewer rows than they read, so that parts do not line up: of such a U-Net nothing is
// left to share.
TEST(ShardedImages, UnpaddedConvolutionsShareNoImage) {
  const Graph graph = zoo("unet3d", 1);
  Strategy strategy;
  strategy.depth = 2;
  const auto plan = make_plan(graph, strategy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
  EXPECT_EQ(
      plan.error().message,
      "'analysis0.conv1' makes images of a depth of 114 from such of 116: 2 equal parts of the two do not line up, "
      "and nothing that follows could be divided");
}

// What stands in the way is named: the image itself, the first operation that reads it, or that there is none.
TEST(ShardedImages, ARefusalNamesWhatCannotBeDivided) {
  const auto refusal = [](const char* model, const char* parallel) {
    Strategy strategy;
    EXPECT_TRUE(parse_parallel(parallel, strategy)) << parallel;
    const auto plan = make_plan(zoo(model, 1), strategy);
    EXPECT_FALSE(plan) << model << " " << parallel;
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_EQ(refusal("lenet", "spatial=8x1"), "'input' has a height of 28, which cannot be divided into 8 equal parts");
  EXPECT_EQ(refusal("vit-b-16", "spatial=1x4"),
            "'conv_proj' makes images of a width of 14, which cannot be divided into 4 equal parts");
  EXPECT_EQ(refusal("lenet", "spatial=2x1x1"), "the model reads no images that have a depth to divide");
  EXPECT_EQ(refusal("bert-tiny", "spatial=2x1"), "the model reads no images that have a height to divide");
}

}  // namespace
}  // namespace sibyl
