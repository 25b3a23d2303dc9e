// Batch-norms that exports for inference multiplied into convolutions, known by the names that exporters give.
#include <gmock/gmock.h>

#include "tests/unit/models/canonical/canonical_test.h"

namespace sibyl {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;

struct FoldedBatchNorms : test::CanonicalTest {
  // A convolution of 3 to 5 channels whose parameters bear these names.
  TensorId convolution(const std::string& weight, const std::string& bias, bool transposed = false,
                       const std::string& x = "x") {
    const Convolution attributes{{1, 1}, {1, 1}, {1, 1},     {0, 0},
                                 {0, 0}, 1,      transposed, transposed ? Ints{0, 0} : Ints{}};
    const TensorId image = b.input({2, 3, 4, 4}), w = b.parameter(transposed ? Shape{3, 5, 1, 1} : Shape{5, 3, 1, 1}),
                   c = b.parameter({5});
    b.graph.at(image).name = x, b.graph.at(w).name = weight, b.graph.at(c).name = bias;
    return b.op(attributes, {image, w, c}, {2, 5, 4, 4});
  }
  // A head with parameters that keep their names, as a file with numbers for folded ones has.
  TensorId head(TensorId image) {
    const TensorId w = b.parameter({10, 80}), bias = b.parameter({10});
    b.graph.at(w).name = "fc.weight", b.graph.at(bias).name = "fc.bias";
    return b.op(Linear{}, {b.reshape(image, {2, 80}), w, bias}, {2, 10});
  }
  // The kinds of operations that are left.
  Names kinds() {
    canonical();
    Names names;
    for (const Operation& op : result.operations()) names.emplace_back(name_of(op.attributes));
    return names;
  }
};

TEST_F(FoldedBatchNorms, ComesBackBehindTheConvolutionInTrainingMode) {
  convolution("onnx::Conv_497", "onnx::Conv_498");
  ASSERT_THAT(kinds(), ElementsAre("convolution", "normalization"));
  const Operation &conv = result.operations()[0], &norm = result.operations()[1];
  EXPECT_EQ(conv.name, "convolution3");
  EXPECT_EQ(norm.name, "convolution3/batch_norm");
  EXPECT_EQ(conv.inputs.size(), 2U);  // without a bias
  const auto& attributes = std::get<Normalization>(norm.attributes);
  EXPECT_EQ(attributes.kind, NormalizationKind::batch);
  EXPECT_NEAR(attributes.epsilon, 1e-5, 1e-11);
  EXPECT_NEAR(attributes.momentum, 0.1, 1e-7);
  ASSERT_EQ(norm.inputs.size(), 5U);
  EXPECT_EQ(norm.inputs[0], conv.outputs[0]);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(result[norm.inputs[i]].shape, Shape{5});
    EXPECT_EQ(result[norm.inputs[i]].kind, i < 3 ? TensorKind::parameter : TensorKind::buffer) << i;
  }
  EXPECT_EQ(result[norm.outputs[0]].name, "convolution3");  // what the model returns keeps its name
  EXPECT_EQ(result[conv.outputs[0]].batch_axis, 0U);
  EXPECT_EQ(result.parameter_count(), 15 + 5 + 5);  // weight, scale, shift
}

TEST_F(FoldedBatchNorms, AreSaid) {
  convolution("onnx::Conv_497", "onnx::Conv_498");
  canonical();
  ASSERT_EQ(result.assumed.size(), 1U);
  EXPECT_THAT(result.assumed[0], HasSubstr("exported for inference"));
  EXPECT_THAT(result.assumed[0], HasSubstr("convolution3"));
}

TEST_F(FoldedBatchNorms, ModulesNamesAreTheirOwnBiases) {  // vgg11, alexnet
  convolution("features.0.weight", "features.0.bias");
  EXPECT_THAT(kinds(), ElementsAre("convolution"));
  EXPECT_TRUE(result.assumed.empty());
}

TEST_F(FoldedBatchNorms, AWeightComputedAtExportWithTheModulesBiasIsNone) {  // torch's weight_norm
  convolution("onnx::Conv_58", "w.bias");
  EXPECT_THAT(kinds(), ElementsAre("convolution"));
}

TEST_F(FoldedBatchNorms, TorchFoldsIntoNoTransposedConvolution) {
  convolution("onnx::Conv_497", "onnx::Conv_498", true);
  EXPECT_THAT(kinds(), ElementsAre("convolution"));
}

TEST_F(FoldedBatchNorms, NumbersTellWhereOtherParametersHaveNames) {
  head(convolution("197", "198"));
  EXPECT_THAT(kinds(), ElementsAre("convolution", "normalization", "reshape", "linear"));
}

TEST_F(FoldedBatchNorms, NumbersTellNothingWhereAllParametersAreNumbers) {
  convolution("1", "2");
  EXPECT_THAT(kinds(), ElementsAre("convolution"));
}

TEST_F(FoldedBatchNorms, OnnxscriptNamesTheBiasAfterTheWeightOrTheInput) {
  convolution("conv1.weight", "conv1.weight_bias");
  convolution("conv2.weight", "relu_bias", true, "relu");
  EXPECT_THAT(kinds(), ElementsAre("convolution", "normalization", "convolution", "normalization"));
}

TEST_F(FoldedBatchNorms, ABiasNamedAfterALayerIsItsOwn) {
  convolution("conv1", "conv1_bias");
  EXPECT_THAT(kinds(), ElementsAre("convolution"));
}

TEST_F(FoldedBatchNorms, Tf2onnxSaysSo) {
  convolution("resnet/conv1/Conv2D_weights_fused_bn", "resnet/conv1/Conv2D_bias_fused_bn");
  EXPECT_THAT(kinds(), ElementsAre("convolution", "normalization"));
}

TEST_F(FoldedBatchNorms, ALayerOfRowsComesBackToo) {  // onnxscript folds into Gemm
  const TensorId w = b.parameter({10, 8}), bias = b.parameter({10});
  b.graph.at(w).name = "fc.weight", b.graph.at(bias).name = "fc.weight_bias";
  b.op(Linear{}, {b.input({2, 8}), w, bias}, {2, 10});
  EXPECT_THAT(kinds(), ElementsAre("linear", "normalization"));
}

}  // namespace
}  // namespace sibyl
