// How programs are shared between ranks. What the plans should be is known from the papers that first made them by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/plan/plan.h"
#include "tests/support/graphs.h"
#include "tests/support/sharded.h"
#include "tests/support/stages.h"
#include "tests/support/zoo.h"
#include "tests/unit/models/graph_builder.h"

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

// Only fc1 and its ReLU by halves: each of two ranks sends the other 2 x 4 floats, and has the gradient of all 2 x 8.
// Without an end the three layers send 2 x 4, 2 x 3 and 2 x 2 forward, and the first two as many backward.
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

// conv1 alone by halves of 4 rows: one row of 2 x 8 floats each way for it, 2 x 16 x 4 x 8 for what it makes, and the
// gradients of its 160 parameters, a half of them twice.
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

// A layer of 6 features for each of 6 tokens, taken apart along an axis and put together the other way round.
Graph taken_apart(std::int64_t axis, const Ints& sizes) {
  test::GraphBuilder b;
  const TensorId y = b.op(Linear{}, {b.input({2, 6, 4}), b.parameter({6, 4})}, {2, 6, 6});
  const auto part = [&](std::int64_t size) {
    Tensor t{"part of " + std::to_string(size), {2, 6, 6}, DType::f32, TensorKind::activation, 0, {}, 0};
    t.shape[static_cast<std::size_t>(axis < 0 ? axis + 3 : axis)] = size;
    return b.graph.add(std::move(t));
  };
  const TensorId first = part(sizes[0]), second = part(sizes[1]);
  b.graph.add(Operation{"split", Split{axis, sizes}, {y}, {first, second}, {}});
  const TensorId z = b.op(Concat{axis}, {second, first}, {2, 6, 6});
  b.graph.loss = b.op(MeanSquaredError{}, {z, b.input({2, 6, 6})}, {});
  return b.finish({b.graph.loss});
}

// Where its features are, the layer is cut within each part; where its tokens are, as if they were not: by extents of
// tokens, 1 and 5, it could not be.
TEST(Sharding, FeaturesThatAreTakenApartAreCutWithinTheirParts) {
  for (const std::int64_t last : {2, -1}) {
    const Graph graph = taken_apart(last, {2, 4});
    const Stage stage = plan_of(graph, "tensor=2").stages[0];
    EXPECT_THAT(parameter(graph, stage, "w1").cuts, ElementsAre(PartOf{MeshAxis::tensor, Layout::split(0, {2, 4})}));
  }
  for (const Ints& sizes : {Ints{2, 4}, Ints{1, 5}}) {
    const Graph graph = taken_apart(1, sizes);
    const Stage stage = plan_of(graph, "tensor=2").stages[0];
    EXPECT_EQ(local(graph, stage, "linear2"), "[2x6x4,3x4]->[2x6x3]:f32");
    EXPECT_THAT(parameter(graph, stage, "w1").cuts, ElementsAre(PartOf{MeshAxis::tensor, Layout::split(0)}));
  }
}

// Attention over 6 tokens of 8 features in 4 heads of 2, whose queries, keys and values one layer makes.
struct JointAttention {
  test::GraphBuilder b;

  TensorId joint(std::int64_t features) {  // w1
    return b.op(Linear{}, {b.input({2, 6, 8}), b.parameter({features, 8})}, {2, 6, features});
  }
  TensorId slice(TensorId x, std::int64_t axis, std::int64_t start, std::int64_t end) {
    Shape shape = b.graph[x].shape;
    shape[static_cast<std::size_t>(axis)] = end - start;
    const std::optional<std::size_t> samples = b.graph[x].batch_axis;
    const TensorId y = b.op(Slice{{axis}, {start}, {end}, {1}}, {x}, std::move(shape));
    b.graph.at(y).batch_axis = samples;
    return y;
  }
  TensorId heads(TensorId x) { return b.transpose(b.reshape(x, {2, 6, b.graph[x].shape[2] / 2, 2}), {0, 2, 1, 3}); }
  Stage stage(TensorId q, TensorId k, TensorId v) {
    const TensorId y = b.transpose(b.op(Attention{}, {q, k, v}, {2, 4, 6, 2}), {0, 2, 1, 3});
    const TensorId projected = b.op(Linear{}, {b.reshape(y, {2, 6, 8}), b.parameter({8, 8})}, {2, 6, 8});
    b.graph.loss = b.op(MeanSquaredError{}, {projected, b.input({2, 6, 8})}, {});
    graph = b.finish({b.graph.loss});
    return plan_of(graph, "tensor=2").stages[0];
  }
  Graph graph;
};

std::string attention_of(const Stage& stage) {
  for (const Step& step : stage.steps)
    if (const auto* c = std::get_if<Compute>(&step); c && std::holds_alternative<Attention>(c->attributes))
      return to_string(signature(stage, *c));
  return "none";
}

// qkv.reshape(B, N, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0), as timm has it: two heads for each of two ranks.
TEST(Sharding, QueriesKeysAndValuesAlongAnAxisOfTheirOwnAreCutByHeads) {
  JointAttention a;
  const TensorId joint = a.b.transpose(a.b.reshape(a.joint(24), {2, 6, 3, 4, 2}), {2, 0, 3, 1, 4});
  a.b.graph.at(joint).batch_axis = 1;
  const auto select = [&](std::int64_t i) { return a.b.reshape(a.slice(joint, 0, i, i + 1), {2, 4, 6, 2}); };
  const TensorId q = select(0), k = select(1), v = select(2);
  const Stage stage = a.stage(q, k, v);
  EXPECT_EQ(attention_of(stage), "attention[2x2x6x2,2x2x6x2,2x2x6x2]->[2x2x6x2]:f32");
  EXPECT_THAT(parameter(a.graph, stage, "w1").cuts, ElementsAre(PartOf{MeshAxis::tensor, Layout::split(0, {8, 8, 8})}));
  EXPECT_THAT(exchanges(stage), ElementsAre("all-reduce/none"));
}

// qkv[..., a:b], as Phi-3 has it: 4 heads of queries, 2 of keys and of values.
TEST(Sharding, QueriesKeysAndValuesThatAreSlicesAreCutByHeads) {
  JointAttention a;
  const TensorId joint = a.joint(16);
  const TensorId q = a.heads(a.slice(joint, 2, 0, 8)), k = a.heads(a.slice(joint, 2, 8, 12)),
                 v = a.heads(a.slice(joint, 2, 12, 16));
  const Stage stage = a.stage(q, k, v);
  EXPECT_EQ(attention_of(stage), "attention[2x2x6x2,2x1x6x2,2x1x6x2]->[2x2x6x2]:f32");
  EXPECT_THAT(parameter(a.graph, stage, "w1").cuts, ElementsAre(PartOf{MeshAxis::tensor, Layout::split(0, {8, 4, 4})}));
  EXPECT_THAT(exchanges(stage), ElementsAre("all-reduce/none"));
}

// Of 5 and 11 features two ranks cannot have a half each, and three times 8 that are not heads are no matter yet: 16
// and 24 are cut as one, and gathered.
TEST(Sharding, PiecesThatAreOfNoUseDoNotKeepALayerWhole) {
  const auto cuts = [](std::int64_t features, auto&& take) {
    JointAttention a;
    const auto [first, second] = take(a, a.joint(features));
    const TensorId y = a.b.op(Concat{2}, {second, first}, {2, 6, 16});
    a.b.graph.loss = a.b.op(MeanSquaredError{}, {y, a.b.input({2, 6, 16})}, {});
    const Graph graph = a.b.finish({a.b.graph.loss});
    return parameter(graph, plan_of(graph, "tensor=2").stages[0], "w1").cuts;
  };
  const auto slices = [](JointAttention& a, TensorId joint) {
    const TensorId few = a.slice(joint, 2, 0, 5);
    return std::pair(few, a.slice(joint, 2, 5, 16));
  };
  const auto thirds = [](JointAttention& a, TensorId joint) {
    const TensorId apart = a.b.reshape(joint, {2, 6, 3, 8});
    const auto select = [&](std::int64_t i) { return a.b.reshape(a.slice(apart, 2, i, i + 1), {2, 6, 8}); };
    const TensorId q = select(0), k = select(1);
    return std::pair(q, a.b.add(k, select(2)));
  };
  EXPECT_THAT(cuts(16, slices), ElementsAre(PartOf{MeshAxis::tensor, Layout::split(0)}));
  EXPECT_THAT(cuts(24, thirds), ElementsAre(PartOf{MeshAxis::tensor, Layout::split(0)}));
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
  EXPECT_EQ(
      plan.error().message,
      "nothing in the model can be divided into 2 equal parts by tensor=: its largest weights, those of 'fc1', are "
      "7x5");
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
