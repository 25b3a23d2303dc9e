// How programs are shared between ranks. What the plans should be is known from the papers that first made them by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "oracle/plan/plan.h"
#include "tests/support/graphs.h"
#include "tests/support/stages.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using test::count;
using test::exchanges;
using test::local;
using test::zoo;

Plan plan_of(const Graph& graph, std::string_view parallel, const std::string& until = {}) {
  Strategy strategy;
  strategy.split_until = until;
  strategy.global_batch = graph.batch();
  EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
  strategy.global_batch *= strategy.data;
  const auto plan = make_plan(graph, strategy);
  EXPECT_TRUE(plan.has_value()) << (plan ? "" : to_string(plan.error()));
  return plan ? *plan : Plan{{}, {}, 1, {Stage{}}, {}};
}

const LocalTensor& parameter(const Graph& graph, const Stage& stage, std::string_view name) {
  for (const LocalTensor& tensor : stage.tensors)
    if (tensor.kind == TensorKind::parameter && graph[tensor.origin].name == name) return tensor;
  ADD_FAILURE() << "no parameter " << name;
  return stage.tensors.front();
}

// fc1 by columns: 8 = 2 x 4 features. fc2 by rows: its 8 input features are those; summands are added up and take their
// bias then. fc3 begins again, but its 3 features do not divide: whole.
TEST(Sharding, TensorAlternatesColumnsAndRows) {
  const Graph graph = test::mlp({4, 8, 6, 3}, 2);
  const Plan plan = plan_of(graph, "tensor=2");
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(local(graph, stage, "fc1"), "[2x4,4x4,4]->[2x4]:f32");
  EXPECT_EQ(local(graph, stage, "fc2"), "[2x4,6x4]->[2x6]:f32");
  EXPECT_EQ(local(graph, stage, "fc3"), "[2x6,3x6,3]->[2x3]:f32");
  EXPECT_THAT(exchanges(stage), ElementsAre("all-reduce/none"));  // the model's input needs no gradient
  ASSERT_EQ(stage.steps.size(), 8U);  // fc1, relu, fc2, all-reduce, its bias, relu, fc3, loss
  EXPECT_TRUE(std::holds_alternative<Exchange>(stage.steps[3]));
  const auto& bias = std::get<Compute>(stage.steps[4]);
  EXPECT_EQ(to_string(signature(stage, bias)), "binary[2x6,6]->[2x6]:f32");
  EXPECT_EQ(bias.gradients, 0b11U);
  EXPECT_EQ(stage.updates.size(), 6U);
  EXPECT_THAT(stage.gradients, IsEmpty()) << "every rank has the whole gradient of what it holds";
}

// 6 features arrive split, 2 x 3; of the results of fc2, 2 x 6 x 4 bytes, each of two ranks sends one half twice.
TEST(Sharding, BytesOfAnAllReduce) {
  const Graph graph = test::mlp({4, 6, 6, 3}, 2);
  const Plan plan = plan_of(graph, "tensor=2");
  EXPECT_EQ(bytes_sent_per_step(plan, 0, Algorithm::ring), 2 * (2 * 6 * 4) / 2);
}

// Every layer makes half of its features, which are gathered for the next: ParaDL's filter parallelism. Backward sums
// the gradients of the gathered tensor and keeps the own half. The loss wants all 4 classes, once.
TEST(Sharding, FilterGathersEveryLayersResult) {
  const Graph graph = test::mlp({4, 8, 6, 4}, 2);
  const Stage stage = plan_of(graph, "filter=2").stages[0];
  EXPECT_EQ(local(graph, stage, "fc1"), "[2x4,4x4,4]->[2x4]:f32");
  EXPECT_EQ(local(graph, stage, "fc2"), "[2x8,3x8,3]->[2x3]:f32");
  EXPECT_THAT(exchanges(stage),
              ElementsAre("all-gather/reduce-scatter", "all-gather/reduce-scatter", "all-gather/slice"));
}

// Only fc1 and its ReLU by halves: each of two ranks sends the other 2 x 4 floats, and has the gradient of all 2 x 8. Without an end
// the three layers send 2 x 4, 2 x 3 and 2 x 2 forward, and the first two as many backward.
TEST(Sharding, EndsWhereTheUserSaysSo) {
  const Graph graph = test::mlp({4, 8, 6, 4}, 2);
  EXPECT_EQ(bytes_sent_per_step(plan_of(graph, "filter=2"), 0, Algorithm::ring), 4 * 2 * (4 + 3 + 2 + 4 + 3));
  const Plan plan = plan_of(graph, "filter=2", "fc1");
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(local(graph, stage, "fc1"), "[2x4,4x4,4]->[2x4]:f32");
  EXPECT_EQ(local(graph, stage, "fc1.relu"), "[2x4]->[2x4]:f32");
  EXPECT_EQ(local(graph, stage, "fc2"), "[2x8,6x8,6]->[2x6]:f32");
  EXPECT_THAT(exchanges(stage), ElementsAre("all-gather/slice"));
  EXPECT_EQ(bytes_sent_per_step(plan, 0, Algorithm::ring), 4 * 2 * 4);
}

// conv1 alone by halves of 4 rows: one row of 2 x 8 floats each way for it, 2 x 16 x 4 x 8 for what it makes, and the gradients
// of its 160 parameters, a half of them twice.
TEST(Sharding, ImagesAreWholeBehindTheSplitPoint) {
  const Graph graph = zoo("small-cnn", 2);
  const Plan plan = plan_of(graph, "spatial=2x1", "conv1");
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(local(graph, stage, "conv1"), "[2x1x6x8,16x1x3x3,16]->[2x16x4x8]:f32");
  EXPECT_EQ(local(graph, stage, "conv2"), "[2x16x8x8,32x16x3x3,32]->[2x32x8x8]:f32");
  EXPECT_THAT(exchanges(stage), ElementsAre("halo/none", "all-gather/slice"));
  EXPECT_THAT(parameter(graph, stage, "conv1.weight").summed_over, ElementsAre(MeshAxis::height));
  EXPECT_THAT(parameter(graph, stage, "conv2.weight").summed_over, IsEmpty());
  EXPECT_EQ(bytes_sent_per_step(plan, 0, Algorithm::ring), 4 * (2 * 8 + 2 * 16 * 4 * 8 + 160));
}

// In two dimensions both end there; and channels beside them.
TEST(Sharding, AllAxesEndAtTheSplitPoint) {
  const Graph graph = zoo("small-cnn", 2);
  const Stage stage = plan_of(graph, "channel=2,spatial=2x2", "conv2").stages[0];
  EXPECT_EQ(local(graph, stage, "conv2"), "[2x8x6x6,32x8x3x3]->[2x32x4x4]:f32");
  EXPECT_EQ(local(graph, stage, "fc1"), "[2x512,64x512,64]->[2x64]:f32");
}

TEST(Sharding, ASplitPointIsAnOperationOfAnAxisThatCanEnd) {
  const Graph graph = test::mlp({4, 8, 6, 4}, 2);
  const auto error = [&](std::string_view parallel, std::string name) {
    Strategy strategy;
    strategy.global_batch = 2;
    strategy.split_until = std::move(name);
    EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
    const auto plan = make_plan(graph, strategy);
    EXPECT_FALSE(plan.has_value());
    return plan ? std::string() : to_string(plan.error());
  };
  EXPECT_THAT(error("filter=2", "fc"), testing::HasSubstr("no operation 'fc'"));
  EXPECT_THAT(error("tensor=2", "fc1"), testing::HasSubstr("nothing is split that could end there"));
  EXPECT_THAT(error("data=1", "fc1"), testing::HasSubstr("--split-until"));
}

// Its transpose: every layer takes half of its input features, and sums are scattered for the next.
TEST(Sharding, ChannelScattersEveryLayersSum) {
  const Graph graph = test::mlp({4, 8, 6, 4}, 2);
  const Stage stage = plan_of(graph, "channel=2").stages[0];
  EXPECT_EQ(local(graph, stage, "fc1"), "[2x2,8x2]->[2x8]:f32");
  EXPECT_EQ(local(graph, stage, "fc2"), "[2x4,6x4]->[2x6]:f32");
  EXPECT_THAT(exchanges(stage), ElementsAre("reduce-scatter/all-gather", "reduce-scatter/all-gather",
                                            "reduce-scatter/all-gather", "all-gather/slice"));
  EXPECT_EQ(parameter(graph, stage, "fc1.bias").shape, (Shape{4})) << "added to a rank's part of the sum";
}

TEST(Sharding, NothingToShareIsAnAnswer) {
  const Graph graph = test::mlp({5, 7, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  strategy.tensor = 2;
  const auto plan = make_plan(graph, strategy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
}

// Shoeybi et al., section 3: two all-reduces forward and two backward in each of 12 layers, of batch x sequence x width
// elements; one more forward for the embedding and one more backward for the head, which share the table by its rows;
// and three of a number a token for the loss. The joint projection is cut within each of q, k and v: 12 heads are 3 for
// each of 4 ranks. 50257 words are rounded up to 4 x 12565 = 50260.
TEST(Sharding, ReproducesMegatronOnGpt2) {
  const Graph graph = zoo("gpt2", 2);
  const Plan plan = plan_of(graph, "tensor=4");
  const Stage& stage = plan.stages[0];
  const std::vector<std::string> all = exchanges(stage);
  EXPECT_EQ(count(all, "all-reduce/none"), 24 + 1 + 2);
  EXPECT_EQ(count(all, "none/all-reduce"), 24 + 1);
  EXPECT_EQ(count(all, "maximum/none"), 1);
  EXPECT_EQ(count(all, "own numbers/none"), 2) << "of words, and of targets";
  EXPECT_EQ(count(all, "fill/none"), 1) << "words that are none have no probability";
  EXPECT_EQ(all.size(), 52U + 4U);
  EXPECT_EQ(local(graph, stage, "h.5.attn.c_attn"), "[2x1024x768,768x576,576]->[2x1024x576]:f32");
  EXPECT_EQ(local(graph, stage, "h.5.attn.c_proj"), "[2x1024x192,192x768]->[2x1024x768]:f32");
  EXPECT_EQ(local(graph, stage, "h.5.mlp.c_fc"), "[2x1024x768,768x768,768]->[2x1024x768]:f32");
  const LocalTensor& joint = parameter(graph, stage, "h.5.attn.c_attn.weight");
  EXPECT_THAT(joint.cuts, ElementsAre(PartOf{MeshAxis::tensor, Layout::split(1, {768, 768, 768})}));
  const LocalTensor& words = parameter(graph, stage, "wte.weight");
  EXPECT_THAT(words.cuts, ElementsAre(PartOf{MeshAxis::tensor, Layout::rounded_up(0, 3)}));
  EXPECT_EQ(words.shape, (Shape{12565, 768}));
  EXPECT_THAT(stage.gradients, IsEmpty());
  // A ring of 4 sends 2 x 3/4 of the buffer.
  const std::int64_t buffer = 2 * 1024 * 768 * 4, tokens = 2 * 1024 * 4;
  EXPECT_EQ(bytes_sent_per_step(plan, 3, Algorithm::ring), (50 * buffer + 3 * tokens) * 2 * 3 / 4);
}

// The steps that stand for the loss, each on a rank's 12565 classes or on one number for each of 2048 tokens.
TEST(Sharding, LossesOfSharedClassesNeverGatherLogits) {
  const Graph graph = zoo("gpt2", 2);
  const Stage stage = plan_of(graph, "tensor=4").stages[0];
  std::vector<std::string> steps;
  for (const Step& step : stage.steps)
    if (const auto* c = std::get_if<Compute>(&step); c && c->operation == graph.producer(graph.loss))
      steps.push_back(to_string(signature(stage, *c)));
  EXPECT_THAT(steps,
              ElementsAre("reduce(kind=max,axes=2,keep_dims=0)[2x1024x12565]->[2x1024]:f32",
                          "class_statistics(class_axis=2)[2x1024x12565,2x1024,2x1024]->[2x1024,2x1024]:f32",
                          "unary(kind=log)[2x1024]->[2x1024]:f32", "binary(kind=sub)[2x1024,2x1024]->[2x1024]:f32",
                          "reduce(axes=0x1,keep_dims=0)[2x1024]->[scalar]:f32"));
}

// Of 2 samples with 4 classes, gathering sends 2 x 4 / 2 = 4 elements; three sums of a number a sample send 3 x 2 = 6.
// With 16 classes gathering sends 16.
TEST(Sharding, FewClassesAreGathered) {
  const auto has_maximum = [](std::int64_t classes) {
    const Graph graph = test::mlp({4, classes}, 2);
    return count(exchanges(plan_of(graph, "tensor=2").stages[0]), "maximum/none") == 1;
  };
  EXPECT_FALSE(has_maximum(4));
  EXPECT_TRUE(has_maximum(16));
}

// Rounding 7 classes up to 8 would add more than an eighth of them: they stay whole. 17 become 18.
TEST(Sharding, OnlyLittleIsRoundedUp) {
  const auto columns = [](std::int64_t classes) {
    const Graph graph = test::mlp({4, 8, 6, classes}, 2);
    return local(graph, plan_of(graph, "tensor=2").stages[0], "fc3");
  };
  EXPECT_EQ(columns(7), "[2x6,7x6,7]->[2x7]:f32");
  EXPECT_EQ(columns(17), "[2x6,9x6,9]->[2x9]:f32");
}

// Queries, keys and values are three multiplications of one tensor: their gradients meet before the one all-reduce.
// After 12 layers the pooler is cut by columns (one more all-reduce backward), and its 768 features are the classes of
// a loss. Of the tables, words are shared; places in the sentence (512 of 512 tokens) and kinds of sentence (2) are
// not.
TEST(Sharding, ReproducesMegatronOnBert) {
  const Graph graph = zoo("bert-base", 1);
  const Stage stage = plan_of(graph, "tensor=2").stages[0];
  const std::vector<std::string> all = exchanges(stage);
  EXPECT_EQ(count(all, "all-reduce/none"), 24 + 1 + 2);
  EXPECT_EQ(count(all, "none/all-reduce"), 25);
  EXPECT_EQ(count(all, "own numbers/none"), 2);
  EXPECT_EQ(count(all, "maximum/none"), 1);
  EXPECT_EQ(all.size(), 55U);
  EXPECT_EQ(parameter(graph, stage, "embeddings.word_embeddings.weight").shape, (Shape{30522 / 2, 768}));
  EXPECT_EQ(local(graph, stage, "encoder.layer.3.attention.self.key"), "[1x512x768,768x384,384]->[1x512x384]:f32");
}

// Korthikanti et al., "Reducing activation recomputation in large transformer models" (2022): gathers and scatters in
// place of all-reduces, in the same number and with the same bytes; between them each rank has its part of the
// sequence. The embedding's sum is scattered, too, and the places are sliced to be added; the head gathers.
TEST(Sharding, SequenceScattersWhatMegatronReduces) {
  const Graph graph = zoo("gpt2", 1);
  const Stage stage = plan_of(graph, "tensor=2,sequence=2").stages[0];
  const std::vector<std::string> all = exchanges(stage);
  EXPECT_EQ(count(all, "reduce-scatter/all-gather"), 25);
  EXPECT_EQ(count(all, "all-gather/reduce-scatter"), 25);
  EXPECT_EQ(count(all, "none/all-reduce"), 0);
  EXPECT_EQ(count(all, "slice/all-gather"), 1);
  EXPECT_EQ(count(all, "all-gather/slice"), 0);
  EXPECT_EQ(local(graph, stage, "h.3.ln_1"), "[1x512x768,768,768]->[1x512x768]:f32");
  // A layer's norms and late biases see half of the tokens each: their gradients are summed over the ranks. 2 x 2 of
  // each of 12 layers' norms, the last one's 2, and 24 biases.
  ASSERT_EQ(stage.gradients.size(), 1U);
  EXPECT_THAT(stage.gradients[0].axes, ElementsAre(MeshAxis::tensor));
  std::size_t summed = 0;
  for (const Bucket& bucket : stage.gradients[0].buckets) summed += bucket.parameters.size();
  EXPECT_EQ(summed, 48U + 2U + 24U);
}

// conv1 makes half of its filters; the bottleneck's 1x1 takes those as channels; 3x3 by filters, 1x1 by channels.
TEST(Sharding, AlternatesFiltersAndChannelsOnResNet) {
  const Graph graph = zoo("resnet50", 4);
  const Stage stage = plan_of(graph, "tensor=2").stages[0];
  EXPECT_EQ(local(graph, stage, "conv1"), "[4x3x224x224,32x3x7x7]->[4x32x112x112]:f32");
  EXPECT_EQ(local(graph, stage, "bn1"), "[4x32x112x112,32,32,32,32]->[4x32x112x112]:f32");
  EXPECT_EQ(local(graph, stage, "layer1.0.conv1"), "[4x32x56x56,64x32x1x1]->[4x64x56x56]:f32");
  EXPECT_EQ(local(graph, stage, "layer1.0.conv2"), "[4x64x56x56,32x64x3x3]->[4x32x56x56]:f32");
  EXPECT_EQ(local(graph, stage, "layer1.0.conv3"), "[4x32x56x56,256x32x1x1]->[4x256x56x56]:f32");
  EXPECT_THAT(stage.gradients, IsEmpty());
}

// 7x7, stride 2, padded by 3: 112 = 224 / 2 results; of a half's 56 the first needs 3 rows before, the last
// (56 - 1) 2 - 3 + 6 = 113 = two rows after the own 112. 3x3, stride 2, padded by 1: 1 before, 2 - 2 = 0 after.
TEST(Sharding, ImagesAreSplitWithHalos) {
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
TEST(Sharding, BytesOfHalosAtTheRim) {
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
TEST(Sharding, TwoDimensionsOfAnImageFetchCorners) {
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
  EXPECT_THAT(stage.gradients[0].axes, ElementsAre(MeshAxis::height, MeshAxis::width, MeshAxis::data));
  EXPECT_THAT(stage.gradients[1].axes, ElementsAre(MeshAxis::data));
  EXPECT_EQ(plan.mesh.group(5, stage.gradients[0].axes), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Sharding, FiltersAndImagesTogether) {
  const Graph graph = zoo("resnet50", 4);
  const Stage stage = plan_of(graph, "filter=2,spatial=2x1").stages[0];
  EXPECT_EQ(local(graph, stage, "conv1"), "[4x3x117x224,32x3x7x7]->[4x32x56x112]:f32");
  EXPECT_EQ(local(graph, stage, "layer1.0.conv2"), "[4x64x30x56,32x64x3x3]->[4x32x28x56]:f32");
  EXPECT_THAT(parameter(graph, stage, "conv1.weight").summed_over, ElementsAre(MeshAxis::height));
}

TEST(Sharding, VolumesAreSplitToo) {
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
TEST(Sharding, VolumesStaySplitDownAndUpAUNet) {
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
TEST(Sharding, AUNetTooDeepToStaySplitIsSplitAgainOnItsWayUp) {
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
TEST(Sharding, StableDiffusionKeepsItsRows) {
  const Graph graph = zoo("sd1.5-unet", 2);
  const Stage stage = plan_of(graph, "spatial=2x1").stages[0];
  EXPECT_EQ(local(graph, stage, "conv_in"), "[2x4x34x64,320x4x3x3,320]->[2x320x32x64]:f32");
  EXPECT_EQ(local(graph, stage, "down_blocks.0.resnets.0.norm1"), "[2x320x32x64]->[2x2x32]:f32");
  EXPECT_EQ(local(graph, stage, "mid_block.resnets.1.conv1"), "[2x1280x6x8,1280x1280x3x3,1280]->[2x1280x4x8]:f32");
  EXPECT_EQ(local(graph, stage, "conv_out"), "[2x320x34x64,4x320x3x3,4]->[2x4x32x64]:f32");
}

// Convolutions without padding make fewer rows than they read, so that parts do not line up: of such a U-Net nothing is
// left to share.
TEST(Sharding, UnpaddedConvolutionsShareNoImage) {
  const Graph graph = zoo("unet3d", 1);
  Strategy strategy;
  strategy.depth = 2;
  const auto plan = make_plan(graph, strategy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
}

// Casts come after sharing, so that what is sent is half as wide.
TEST(Sharding, ExchangesAreInThePrecisionComputedIn) {
  const Graph graph = test::mlp({4, 8, 6, 3}, 2);
  Strategy strategy;
  strategy.tensor = 2;
  strategy.global_batch = 2;
  strategy.precision = Precision::bf16;
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(bytes_sent_per_step(*plan, 0, Algorithm::ring), 2 * (2 * 6 * 2) / 2);
}

// The strides of ranks: replicas are farthest apart.
TEST(Sharding, MeshPutsAReplicasRanksTogether) {
  const Graph graph = test::mlp({4, 8, 6, 3}, 2);
  const Plan plan = plan_of(graph, "tensor=2,data=4");
  EXPECT_EQ(plan.mesh.group(3, MeshAxis::tensor), (std::vector<int>{2, 3}));
  EXPECT_EQ(plan.mesh.group(3, MeshAxis::data), (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(placement(plan.mesh, MeshAxis::data, 4), (GroupPlacement{2, 2, 2}));
  const std::vector<MeshAxis> both = {MeshAxis::tensor, MeshAxis::data};
  EXPECT_EQ(placement(plan.mesh, both, 4), (GroupPlacement{4, 2, 1}));
}

TEST(StrategyText, ReadsEveryAxis) {
  Strategy s;
  ASSERT_TRUE(parse_parallel("data=2,filter=3,spatial=2x4", s).has_value());
  EXPECT_EQ(s.devices(), 48);
  EXPECT_EQ(s.height, 2);
  EXPECT_EQ(s.width, 4);
  EXPECT_EQ(parallel_text(s), "data=2,filter=3,spatial=2x4");
  ASSERT_TRUE(parse_parallel("spatial=2x2x2", s = {}).has_value());
  EXPECT_EQ(parallel_text(s), "data=1,spatial=2x2x2");
  ASSERT_TRUE(parse_parallel("sequence=4,tensor=4", s = {}).has_value());
  EXPECT_EQ(s.devices(), 4) << "one axis";
  EXPECT_TRUE(s.sequence);
  EXPECT_FALSE(parse_parallel("tensor=2,sequence=4", s = {}).has_value());
  EXPECT_FALSE(parse_parallel("spatial=2", s).has_value());
  EXPECT_FALSE(parse_parallel("spatial=2x0", s).has_value());
  EXPECT_FALSE(parse_parallel("tensor", s).has_value());
}

}  // namespace
}  // namespace sibyl
