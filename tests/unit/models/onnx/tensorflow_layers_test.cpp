// Norms, activations and layouts of Keras and TensorFlow as tf2onnx writes them, from the file: Rsqrt as Sqrt and
// Reciprocal, squares as products, transpositions around convolutions. What they become is what PyTorch's exports of
// the same layers become.
#include <algorithm>

#include "tests/unit/models/onnx/tensorflow_file.h"

namespace sibyl {
namespace {

using testing::ElementsAre;

// --- norms over the last 8 of x [N, 4, 8]
// -----------------------------------------------------------------------------

enum class Root { sqrt_and_reciprocal, power, sqrt_and_one_over };

struct TensorFlowNorms : TensorFlowFile, testing::WithParamInterface<Root> {
  std::string x = input({"N", 4, 8});

  std::string inverse_root(const std::string& square) { return inverse_root_of(mean(square, {2})); }
  std::string inverse_root_of(const std::string& variance) {
    const std::string shifted = op("Add", {variance, number(1e-3)});
    switch (GetParam()) {
      case Root::sqrt_and_reciprocal: return op("Reciprocal", {op("Sqrt", {shifted})});
      case Root::power: return op("Pow", {shifted, number(-0.5)});
      default: return op("Div", {number(1), op("Sqrt", {shifted})});
    }
  }
  // tf.nn.moments: the squared difference has a difference of its own.
  std::string inverse_deviation(const std::string& centre) {
    const std::string d = op("Sub", {x, centre});
    return inverse_root(op("Mul", {d, d}));
  }
  void expect_norm(const std::string& y, NormalizationKind kind, std::size_t operands) {
    const auto found = operations(y);
    ASSERT_THAT(found, ElementsAre(testing::StartsWith("normalization")));
    const auto& norm = std::get<Normalization>(last().attributes);
    EXPECT_EQ(norm.kind, kind);
    EXPECT_EQ(norm.axes, 1);
    EXPECT_NEAR(norm.epsilon, 1e-3, 1e-9);
    EXPECT_EQ(last().inputs.size(), operands);
    EXPECT_EQ(graph.parameter_count(), 8 * (static_cast<std::int64_t>(operands) - 1));
  }
};

TEST_P(TensorFlowNorms, ScaleAndShiftFoldedIn) {  // x inv + (shift - m inv), inv = rsqrt(v + e) scale
  const std::string centre = mean(x, {2});
  const std::string inverse = op("Mul", {inverse_deviation(centre), weight({8})});
  const std::string shift = op("Sub", {weight({8}), op("Mul", {centre, inverse})});
  expect_norm(op("Add", {op("Mul", {x, inverse}), shift}), NormalizationKind::layer, 3);
}

TEST_P(TensorFlowNorms, ShiftAddedToTheCentre) {  // Keras 3: x inv + ((-m) inv + shift)
  const std::string centre = mean(x, {2});
  const std::string inverse = op("Mul", {inverse_deviation(centre), weight({8})});
  const std::string shift = op("Add", {op("Mul", {op("Neg", {centre}), inverse}), weight({8})});
  expect_norm(op("Add", {op("Mul", {x, inverse}), shift}), NormalizationKind::layer, 3);
}

TEST_P(TensorFlowNorms, VarianceAsADifferenceOfMoments) {  // Flax: max(mean(x^2) - m^2, 0), then (x - m) inv + shift
  const std::string centre = mean(x, {2});
  const std::string moments = op("Sub", {mean(op("Mul", {x, x}), {2}), op("Mul", {centre, centre})});
  const std::string root = inverse_root_of(op("Max", {moments, number(0)}));
  const std::string inverse = op("Mul", {root, weight({8})});
  expect_norm(op("Add", {op("Mul", {op("Sub", {x, centre}), inverse}), weight({8})}), NormalizationKind::layer, 3);
}

TEST_P(TensorFlowNorms, ADifferenceOfOtherMomentsIsNoVariance) {  // of y's mean
  const std::string y = mean(input({"N", 4, 8}), {2});
  const std::string moments = op("Sub", {mean(op("Mul", {x, x}), {2}), op("Mul", {y, y})});
  const auto found = operations(op("Mul", {op("Sub", {x, mean(x, {2})}), inverse_root_of(moments)}));
  EXPECT_THAT(found, testing::Not(testing::Contains(testing::HasSubstr("normalization"))));
}

TEST_P(TensorFlowNorms, ScaleFoldedInWithoutShift) {  // x inv + (-m) inv
  const std::string centre = mean(x, {2});
  const std::string inverse = op("Mul", {inverse_deviation(centre), weight({8})});
  const std::string shift = op("Mul", {op("Neg", {centre}), inverse});
  expect_norm(op("Add", {op("Mul", {x, inverse}), shift}), NormalizationKind::layer, 2);
}

TEST_P(TensorFlowNorms, WithoutAffine) {  // x inv - m inv
  const std::string centre = mean(x, {2});
  const std::string inverse = inverse_deviation(centre);
  expect_norm(op("Sub", {op("Mul", {x, inverse}), op("Mul", {centre, inverse})}), NormalizationKind::layer, 1);
}

TEST_P(TensorFlowNorms, ScaleFoldedIntoTheFactorOfTheDifference) {  // (x - m) inv + shift, as Flax writes it
  const std::string centre = mean(x, {2});
  const std::string inverse = op("Mul", {inverse_deviation(centre), weight({8})});
  expect_norm(op("Add", {op("Mul", {op("Sub", {x, centre}), inverse}), weight({8})}), NormalizationKind::layer, 3);
}

TEST_P(TensorFlowNorms, DifferenceTimesTheReciprocalRoot) {
  const std::string centre = mean(x, {2});
  const std::string y = op("Mul", {op("Sub", {x, centre}), inverse_deviation(centre)});
  expect_norm(op("Add", {op("Mul", {y, weight({8})}), weight({8})}), NormalizationKind::layer, 3);
}

TEST_P(TensorFlowNorms, ADifferenceTheWrongWayRoundIsNoNorm) {  // m inv - x inv
  const std::string centre = mean(x, {2});
  const std::string inverse = inverse_deviation(centre);
  const auto found = operations(op("Sub", {op("Mul", {centre, inverse}), op("Mul", {x, inverse})}));
  EXPECT_THAT(found, testing::Not(testing::Contains(testing::HasSubstr("kind=layer"))));
}

TEST_P(TensorFlowNorms, RmsWithTheScaleAfterwards) {
  expect_norm(op("Mul", {weight({8}), op("Mul", {x, inverse_root(op("Mul", {x, x}))})}), NormalizationKind::rms, 2);
}

TEST_P(TensorFlowNorms, RmsWithTheScaleFoldedIn) {
  expect_norm(op("Mul", {x, op("Mul", {inverse_root(op("Mul", {x, x})), weight({8})})}), NormalizationKind::rms, 2);
}

INSTANTIATE_TEST_SUITE_P(Roots, TensorFlowNorms,
                         testing::Values(Root::sqrt_and_reciprocal, Root::power, Root::sqrt_and_one_over));

// Keras's own way where epsilon is its default: rows as channels of one sample through a batch-norm, whose statistics
// tf2onnx writes out, since ONNX's takes none from the batch.
struct KerasNorms : TensorFlowFile {
  std::string x = input({"N", 4, 8});
  std::string shape = op("Shape", {x});
  std::string rows() {
    const auto extent = [&](int i) { return op("Slice", {shape, ints({i}), ints({i + 1}), ints({0})}); };
    return op("Mul", {extent(0), extent(1)});
  }
  std::string filled(const std::string& extent, double value) { return op("Expand", {number(value), extent}); }
};

TEST_F(KerasNorms, RowsAsChannelsOfABatchNorm) {
  const std::string n = rows();
  const std::string tall = op("Reshape", {x, op("Concat", {ints({1}), n, ints({8}), ints({1})}, {{"axis", 0}})});
  const std::string centre = mean(tall, {0, 2, 3});
  const std::string squares =
      op("ReduceSumSquare", {op("Sub", {tall, centre})}, {{"axes", std::vector<int>{0, 2, 3}}, {"keepdims", 0}});
  const std::string variance = op("Div", {squares, number(8)});
  const std::string y =
      op("BatchNormalization", {tall, filled(n, 1), filled(n, 0), op("Squeeze", {centre, ints({0, 2, 3})}), variance},
         {{"epsilon", 1e-3}});
  const std::string z = op("Reshape", {y, shape});
  ASSERT_THAT(operations(op("Add", {op("Mul", {z, weight({8})}), weight({8})})),
              ElementsAre(testing::StartsWith("normalization(kind=layer,epsilon=0.001")));
  EXPECT_EQ(last().inputs.size(), 3u);
  EXPECT_EQ(shape_of(last().inputs[0]), (Shape{2, 4, 8}));
  EXPECT_EQ(graph.parameter_count(), 16);
}

TEST_F(KerasNorms, ABatchNormWithStoredStatisticsStays) {
  const std::string tall = op("Reshape", {x, ints({-1, 8, 1})});
  const std::string y =
      op("BatchNormalization", {tall, weight({8}), weight({8}), weight({8}), weight({8})}, {{"epsilon", 1e-3}});
  EXPECT_THAT(operations(op("Reshape", {y, shape})),
              ElementsAre("reshape", testing::StartsWith("normalization(epsilon"), "reshape"));
}

// --- activations
// ------------------------------------------------------------------------------------------------------

struct HardActivations : TensorFlowFile {
  std::string x = op("Neg", {input({"N", 8})});
  std::string clipped(const std::string& t, double high) { return op("Clip", {t, number(0), number(high)}); }
};

TEST_F(HardActivations, HardSwishWithReluAndMin) {
  const std::string relu6 = op("Min", {op("Relu", {op("Add", {x, number(3)})}), number(6)});
  EXPECT_THAT(operations(op("Mul", {x, op("Mul", {relu6, number(1.0 / 6)})})),
              ElementsAre("unary(kind=neg)", "unary(kind=hard_swish)"));
}

TEST_F(HardActivations, HardSwishWithClipAndDivision) {
  const std::string relu6 = clipped(op("Add", {x, number(3)}), 6);
  EXPECT_THAT(operations(op("Mul", {x, op("Div", {relu6, number(6)})})),
              ElementsAre("unary(kind=neg)", "unary(kind=hard_swish)"));
}

TEST_F(HardActivations, HardSwishDividedBefore) {  // x clip(x / 6 + 1/2, 0, 1)
  const std::string inner = op("Add", {op("Div", {x, number(6)}), number(0.5)});
  EXPECT_THAT(operations(op("Mul", {clipped(inner, 1), x})), ElementsAre("unary(kind=neg)", "unary(kind=hard_swish)"));
}

TEST_F(HardActivations, HardSigmoidAlone) {
  const std::string relu6 = op("Min", {op("Relu", {op("Add", {x, number(3)})}), number(6)});
  const auto found = operations(op("Mul", {relu6, number(1.0 / 6)}));
  ASSERT_EQ(found.size(), 2u) << testing::PrintToString(found);
  const auto& gate = std::get<Unary>(last().attributes);
  EXPECT_EQ(gate.kind, UnaryKind::hard_sigmoid);
  EXPECT_EQ(gate.alpha, 1.0 / 6);
  EXPECT_EQ(gate.beta, 0.5);
}

TEST_F(HardActivations, HardSigmoidOfKeras2) {  // clip(0.2 x + 0.5, 0, 1)
  const std::string inner = op("Add", {op("Mul", {x, number(0.2)}), number(0.5)});
  EXPECT_THAT(operations(op("Min", {op("Relu", {inner}), number(1)})),
              ElementsAre("unary(kind=neg)", "unary(kind=hard_sigmoid,alpha=0.2,beta=0.5)"));
}

TEST_F(HardActivations, ReluAndMinAreOneClip) {
  EXPECT_THAT(operations(op("Min", {op("Relu", {x}), number(6)})),
              ElementsAre("unary(kind=neg)", "unary(kind=clip,beta=6)"));
}

TEST_F(HardActivations, AReluThatIsReadTwiceStays) {
  const std::string relu = op("Relu", {x});
  EXPECT_THAT(operations(op("Sub", {op("Min", {relu, number(6)}), relu})),
              ElementsAre("unary(kind=neg)", "unary", "unary(kind=clip,alpha=-inf,beta=6)", "binary(kind=sub)"));
}

TEST_F(HardActivations, NotWithAnotherShift) {
  const std::string relu6 = clipped(op("Add", {x, number(2)}), 6);
  EXPECT_EQ(operations(op("Mul", {x, op("Mul", {relu6, number(1.0 / 6)})})).size(), 5u);
}

// --- layouts
// ----------------------------------------------------------------------------------------------------------

struct Layouts : TensorFlowFile {
  // Of [N, H, W, C], with a transposition on either side.
  std::string convolution(const std::string& x, std::int64_t from, std::int64_t to) {
    const std::vector<Attribute> attributes = {{"kernel_shape", std::vector<int>{3, 3}},
                                               {"pads", std::vector<int>{1, 1, 1, 1}}};
    return transpose(op("Conv", {transpose(x, {0, 3, 1, 2}), weight({to, from, 3, 3})}, attributes), {0, 2, 3, 1});
  }
  std::string image = input({"N", 5, 5, 3});
};

// The transposition of the input is all that is left: the model is fed so.
TEST_F(Layouts, BetweenConvolutionsTranspositionsGo) {
  const std::string first = op("Relu", {op("Add", {convolution(image, 3, 8), weight({8})})});
  const std::string second = op("Add", {convolution(first, 8, 8), first});
  const std::string pooled = mean(second, {1, 2}, false);
  const auto found = operations(op("MatMul", {pooled, weight({8, 10})}));
  ASSERT_THAT(found, ElementsAre("transpose(permutation=0x3x1x2)", testing::StartsWith("convolution"), "unary",
                                 testing::StartsWith("convolution"), "binary", "reduce(axes=2x3,keep_dims=0)",
                                 "linear(weight_kn=1)"));
  const Operation& biased = graph.operations()[1];
  ASSERT_EQ(biased.inputs.size(), 3u);
  EXPECT_EQ(shape_of(biased.inputs[2]), Shape{8});
  EXPECT_EQ(shape_of(graph.operations()[2].outputs[0]), (Shape{2, 8, 5, 5}));
  EXPECT_EQ(graph[graph.operations()[2].outputs[0]].batch_axis, 0u);
}

TEST_F(Layouts, ChannelsScaledOneByOne) {  // a parameter [C] becomes [C, 1, 1]
  const std::string y = op("Mul", {convolution(image, 3, 8), weight({8})});
  operations(mean(op("Relu", {y}), {1, 2}, false));
  EXPECT_EQ(count<Transpose>(graph), 1);
  const auto& product = *std::find_if(graph.operations().begin(), graph.operations().end(), [](const Operation& op) {
    return std::holds_alternative<Binary>(op.attributes);
  });
  EXPECT_EQ(shape_of(product.inputs[1]), (Shape{8, 1, 1}));
}

TEST_F(Layouts, SqueezeAndExcitation) {
  const std::string x = op("Relu", {convolution(image, 3, 8)});
  std::string gate = op("Reshape", {mean(x, {1, 2}, false), ints({-1, 1, 1, 8})});
  gate = op("Sigmoid", {convolution(op("Relu", {convolution(gate, 8, 2)}), 2, 8)});
  const auto found = operations(mean(op("Mul", {x, gate}), {1, 2}, false));
  EXPECT_EQ(count<Transpose>(graph), 1) << testing::PrintToString(found);
  EXPECT_EQ(count<Convolution>(graph), 3);
  EXPECT_EQ(count<Reshape>(graph), 1);  // [N, 8] -> [N, 8, 1, 1]
  EXPECT_EQ(count<Binary>(graph), 1);
}

TEST_F(Layouts, BranchesConcatenatedAndPadded) {
  const std::string a = convolution(image, 3, 8), b = convolution(image, 3, 4);
  const std::string both = op("Concat", {a, b}, {{"axis", -1}});
  const std::string wide = op("Pad", {both, ints({0, 1, 2, 0, 0, 1, 2, 0})});
  operations(mean(convolution(wide, 12, 4), {1, 2}, false));
  EXPECT_EQ(count<Transpose>(graph), 2);  // of the input, for each branch
  ASSERT_NE(first<Concat>(graph), nullptr);
  EXPECT_EQ(first<Concat>(graph)->axis, 1);
  ASSERT_NE(first<Pad>(graph), nullptr);
  EXPECT_EQ(first<Pad>(graph)->begin, (Ints{0, 0, 1, 2}));
}

TEST_F(Layouts, ANormOverChannelsKeepsItsTranspositions) {  // ConvNeXt
  const std::string x = convolution(image, 3, 8), centre = mean(x, {3});
  const std::string d = op("Sub", {x, centre});
  const std::string variance = op("Add", {mean(op("Mul", {d, d}), {3}), number(1e-6)});
  operations(convolution(op("Div", {d, op("Sqrt", {variance})}), 8, 8));
  EXPECT_EQ(count<Normalization>(graph), 1);
  EXPECT_EQ(count<Transpose>(graph), 4);
}

TEST_F(Layouts, ATranspositionThatIsReadOtherwiseStays) {  // its rows are flattened, too
  const std::string x = convolution(image, 3, 8);
  const std::string flat = op("MatMul", {op("Reshape", {x, ints({-1, 200})}), weight({200, 8})});
  const std::string pooled = mean(op("Relu", {x}), {1, 2}, false);
  operations(op("Add", {flat, pooled}));
  EXPECT_EQ(count<Transpose>(graph), 2);
  EXPECT_EQ(first<Reduce>(graph)->axes, (Ints{1, 2}));
}

TEST_F(Layouts, TransposesThatOnlyMoveOnesAreViews) {  // [N, 1, 1, C]
  const std::string y = transpose(op("Reshape", {input({"N", 8}), ints({-1, 1, 1, 8})}), {0, 3, 1, 2});
  const std::string z = transpose(op("Relu", {y}), {0, 2, 3, 1});
  EXPECT_THAT(operations(z, 1), ElementsAre("reshape", "unary", "reshape"));
}

TEST_F(Layouts, AtABatchOfOneABatchIsNoOne) {  // [N, 8, 4] -> [8, N, 4] moves elements at any other batch
  EXPECT_THAT(operations(op("Relu", {transpose(input({"N", 8, 4}), {1, 0, 2})}), 1),
              ElementsAre("transpose(permutation=1x0x2)", "unary"));
}

}  // namespace
}  // namespace sibyl
