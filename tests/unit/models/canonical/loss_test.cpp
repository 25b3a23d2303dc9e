#include "models/canonical/loss.h"

#include "models/canonical/canonical.h"
#include "tests/unit/models/graph_builder.h"

namespace sibyl {
namespace {

using test::GraphBuilder;
using Names = std::vector<std::string>;

struct Losses : testing::Test {
  GraphBuilder b;
  Graph result;
  Names attach(LossKind kind = LossKind::automatic, std::vector<TensorId> outputs = {}) {
    auto graph = attach_loss(b.finish(std::move(outputs)), kind);
    if (!graph) return {to_string(graph.error())};
    result = std::move(*graph);
    return test::operations_of(result);
  }
  TensorId linear(TensorId x, std::int64_t n) {
    Shape shape = b.graph[x].shape;
    const TensorId w = b.parameter({n, shape.back()});
    shape.back() = n;
    return b.op(Linear{}, {x, w}, shape);
  }
  const Tensor& targets() { return result[result[result.producer(result.loss)].inputs[1]]; }
};

TEST_F(Losses, ClassesOfImages) {
  linear(b.input({2, 8}), 10);
  ASSERT_EQ(attach(), (Names{"linear", "cross_entropy"}));
  EXPECT_EQ(targets().name, "targets");
  EXPECT_EQ(targets().shape, Shape{2});
  EXPECT_EQ(targets().dtype, DType::i64);
  EXPECT_EQ(targets().kind, TensorKind::input);
  EXPECT_EQ(targets().index_bound, 10);
  EXPECT_EQ(targets().batch_axis, std::optional<std::size_t>(0));
  EXPECT_EQ(result[result.loss].shape, Shape{});
  EXPECT_TRUE(result.requires_gradient(result.loss));
}

TEST_F(Losses, AFinalSoftmaxIsDropped) {
  b.softmax(linear(b.input({2, 8}), 10));
  EXPECT_EQ(attach(), (Names{"linear", "cross_entropy"}));
}

TEST_F(Losses, AFinalSoftmaxBeforeAReshapeIsDropped) {  // SqueezeNet: softmax over [N, C, 1, 1], flattened
  const Convolution conv{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, false, {}};
  const TensorId logits = b.op(conv, {b.input({2, 8, 1, 1}), b.parameter({10, 8, 1, 1})}, {2, 10, 1, 1});
  b.reshape(b.op(Softmax{1, false}, {logits}, {2, 10, 1, 1}), {2, 10});
  const Names names = attach();
  ASSERT_EQ(names.size(), 3U);
  EXPECT_EQ(names[1], "reshape");
  EXPECT_EQ(names[2], "cross_entropy");
}

TEST_F(Losses, TokensOfALanguageModel) {
  const TensorId x = b.op(Embedding{}, {b.parameter({50, 8}), b.input({2, 6}, DType::i64)}, {2, 6, 8});
  linear(x, 50);
  ASSERT_EQ(attach().back(), "cross_entropy(class_axis=2)");
  EXPECT_EQ(targets().shape, (Shape{2, 6}));
  EXPECT_EQ(targets().index_bound, 50);
}

// Logits of 2 x 6 tokens, and what becomes of them before they are returned.
struct LossesOfTokens : Losses {
  TensorId tokens = b.op(Embedding{}, {b.parameter({50, 8}), b.input({2, 6}, DType::i64)}, {2, 6, 8});
  TensorId logits = linear(tokens, 50);
  void expect_classes() {
    ASSERT_EQ(attach().back(), "cross_entropy(class_axis=2)");
    EXPECT_EQ(targets().shape, (Shape{2, 6}));
    EXPECT_EQ(targets().dtype, DType::i64);
  }
};

TEST_F(LossesOfTokens, ScaledLogitsAreLogits) {  // Cohere
  b.unary(UnaryKind::scale_shift, logits, 0.0625);
  expect_classes();
}

TEST_F(LossesOfTokens, CappedLogitsAreLogits) {  // Gemma 2: 30 tanh(x / 30)
  b.unary(UnaryKind::scale_shift, b.unary(UnaryKind::tanh, b.unary(UnaryKind::scale_shift, logits, 1.0 / 30)), 30);
  expect_classes();
  EXPECT_EQ(result.operations().size(), 6U);  // the cap is trained through
}

TEST_F(LossesOfTokens, CastLogitsAreLogits) {  // logits.float()
  b.graph.at(logits).dtype = DType::f16;
  b.op(Cast{DType::f32}, {logits}, {2, 6, 50});
  expect_classes();
}

TEST_F(LossesOfTokens, ASoftmaxBeforeACastIsDropped) {
  b.op(Cast{DType::f32}, {b.softmax(logits)}, {2, 6, 50});
  EXPECT_EQ(attach(), (Names{"embedding", "linear", "cast", "cross_entropy(class_axis=2)"}));
}

TEST_F(LossesOfTokens, ATanhThatComesLastMakesFeatures) {
  b.unary(UnaryKind::tanh, logits);
  EXPECT_EQ(attach().back(), "mean_squared_error");
}

TEST_F(LossesOfTokens, ATanhThatIsScaledMakesActions) {
  b.unary(UnaryKind::scale_shift, b.unary(UnaryKind::tanh, logits), 2.0);
  EXPECT_EQ(attach().back(), "mean_squared_error");
}

TEST_F(LossesOfTokens, ASigmoidMakesShares) {  // boxes
  b.unary(UnaryKind::sigmoid, logits);
  EXPECT_EQ(attach().back(), "mean_squared_error");
}

TEST_F(Losses, HiddenStatesAreNotLogits) {  // an encoder that ends in a normalisation regresses
  const TensorId x = b.op(Embedding{}, {b.parameter({50, 8}), b.input({2, 6}, DType::i64)}, {2, 6, 8});
  b.op(Normalization{NormalizationKind::layer}, {x, b.parameter({8}), b.parameter({8})}, {2, 6, 8});
  ASSERT_EQ(attach().back(), "mean_squared_error");
  EXPECT_EQ(targets().shape, (Shape{2, 6, 8}));
  EXPECT_EQ(targets().dtype, DType::f32);
}

TEST_F(Losses, PixelsOfASegmentation) {
  const Convolution conv{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, false, {}};
  b.op(conv, {b.input({2, 3, 4, 5}), b.parameter({21, 3, 1, 1})}, {2, 21, 4, 5});
  ASSERT_EQ(attach().back(), "cross_entropy");
  EXPECT_EQ(targets().shape, (Shape{2, 4, 5}));
  EXPECT_EQ(targets().index_bound, 21);
}

TEST_F(Losses, AnAutoencoderRegresses) {
  const Convolution conv{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, false, {}};
  b.op(conv, {b.input({2, 3, 4, 5}), b.parameter({3, 3, 1, 1})}, {2, 3, 4, 5});
  EXPECT_EQ(attach().back(), "mean_squared_error");
}

TEST_F(Losses, OneValueRegresses) {
  linear(b.input({2, 8}), 1);
  EXPECT_EQ(attach().back(), "mean_squared_error");
}

TEST_F(Losses, AuxiliaryClassifiersTrainToo) {
  const TensorId x = b.input({2, 8});
  const TensorId main = linear(x, 10), auxiliary = linear(x, 10);
  EXPECT_EQ(attach(LossKind::automatic, {main, auxiliary}),
            (Names{"linear", "linear", "cross_entropy", "cross_entropy", "unary(kind=scale_shift,alpha=0.3)", "binary"}));
  EXPECT_EQ(result.parameter_count(), 160);
}

TEST_F(Losses, AnOutputOfAnotherShapeDoesNotTrain) {
  const TensorId x = b.input({2, 8});
  const TensorId main = linear(x, 10), features = linear(x, 4);
  EXPECT_EQ(attach(LossKind::automatic, {main, features}), (Names{"linear", "cross_entropy"}));
}

// ((x w - y)^2).mean(), as a model that holds its loss is exported.
TEST_F(Losses, OneNumberForTheBatchIsTheModelsOwn) {
  const TensorId z = linear(b.input({2, 8}), 10), d = b.sub(z, b.input({2, 10}));
  const TensorId mean = b.op(Reduce{ReduceKind::mean, {0, 1}, false}, {b.mul(d, d)}, {});
  EXPECT_EQ(attach().back(), "reduce(axes=0x1,keep_dims=0)");
  EXPECT_EQ(result[result.loss].name, b.graph[mean].name);
  ASSERT_EQ(result.assumed.size(), 1U);
  EXPECT_NE(result.assumed[0].find("its own loss"), std::string::npos);
}

TEST_F(Losses, AnotherThanTheModelsOwnIsAttachedWhereItIsAskedFor) {
  b.op(Reduce{ReduceKind::mean, {0, 1}, false}, {linear(b.input({2, 8}), 10)}, {});
  EXPECT_EQ(attach(LossKind::mean_squared_error).back(), "mean_squared_error");
  EXPECT_TRUE(result.assumed.empty());
}

TEST_F(Losses, NoneLeavesTheGraph) {
  linear(b.input({2, 8}), 10);
  EXPECT_EQ(attach(LossKind::none), Names{"linear"});
  EXPECT_FALSE(result.loss.valid());
}

TEST_F(Losses, NothingToTrainIsAnError) {
  b.unary(UnaryKind::relu, b.input({2, 8}));
  EXPECT_NE(attach()[0].find("nothing to train"), std::string::npos);
}

TEST_F(Losses, CrossEntropyWithoutClassesIsAnError) {
  linear(b.input({2, 8}), 1);
  EXPECT_NE(attach(LossKind::cross_entropy)[0].find("no axis of classes"), std::string::npos);
}

TEST_F(Losses, ATakenNameIsAvoided) {
  const TensorId x = b.input({2, 8});
  b.graph.at(x).name = "targets";
  linear(x, 10);
  attach();
  EXPECT_EQ(targets().name, "sibyl_targets");
}

}  // namespace
}  // namespace sibyl
