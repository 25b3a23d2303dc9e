// The zoo's models through the importer: parameters that train, and forward work against published multiply-adds.
#include <gtest/gtest.h>

#include <cmath>
#include <variant>

#include "models/onnx/import.h"
#include "models/training/training.h"
#include "models/zoo/zoo.h"

namespace sibyl {
namespace {

struct Published {
  std::string name;
  std::int64_t trained;  // parameters that the loss reaches: all of them, auxiliary heads among them
  double multiply_adds;  // of one sample's forward pass
  std::int64_t seq = 0;  // 0: the model has none, or its default
};

void PrintTo(const Published& model, std::ostream* out) { *out << model.name; }

// Images: torchvision's documentation in GMAC to two digits after the point; where that is coarser than 1 %, a third
// digit from the models' papers (MobileNetV2 300.8 M, SqueezeNet 1.1 349 M: fvcore's counts) and AlexNet 714.2 M. BERT:
// MobileBERT's table 1 has 22.5 GFLOPs for the base model at 128 tokens. GPT-2 small at 1024 tokens: 291.65 GFLOPs, of
// which by hand 12 layers of (12 x 768^2 x 1024 + 2 x 1024^2 x 768) = 106.30 G and the head's 1024 x 768 x 50257 =
// 39.52 G multiply-adds. The large BERT by the same formula at 128 tokens: 24 x (12 x 1024^2 x 128 + 2 x 128^2 x 1024)
// = 39.46 G. GPT-3 (table D.1 of its paper): 3.14e23 FLOPs for 300 G tokens of 6 FLOPs each per parameter, by formula
// here with the head: 96 x (12 x 12288^2 x 2048 + 2 x 2048^2 x 12288) + 2048 x 12288 x 51200 = 367.4 T. CosmoFlow, by
// hand: 27 x 32 x (4 x 128^3 + 32 x 2 x 64^3 + 64 x 4 x 32^3 + 128 x 8 x 16^3 + 256 x 16 x 8^3) + the dense layers'
// 32768 x 128 + 128 x 64 + 64 x 4 = 34.43 G. Llama 3 at 8192 tokens, per token and layer 2 e^2 (q, o) + 2 e x 1024 (k,
// v) + 3 e f (gate, up, down), and e x 128256 for the head: the 8B model 32 x (2 x 4096^2 + 2 x 4096 x 1024 + 3 x 4096
// x 14336) + 4096 x 128256 = 7.5047 G, times 8192 = 61.48 T, with attention's 32 x 2 x 8192^2 x 4096 = 17.59 T; the 70B
// model 69.50 G a token and 80 x 2 x 8192^2 x 8192 = 87.96 T; TinyLlama at 2048 tokens likewise, 1.0344 G a token and 22 x 2 x 2048^3; Qwen 2.5 at
// 4096: 0.4940 G a token and 24 x 2 x 4096^2 x 896, 7.0703 G and 28 x 2 x 4096^2 x 3584. 3D U-Net: voxels x weights of each convolution (an
// up-convolution's input voxels), from 112 x 128 x 128 x 27 x 64 x 32 down and up to 28 x 44 x 44 x 64 x 3; MLPerf's
// likewise from 128^3 x 27 x 32.
const Published models[] = {
    {"alexnet", 61100840, 0.7142e9},         {"vgg11", 132863336, 7.61e9},
    {"vgg16", 138357544, 15.47e9},           {"resnet18", 11689512, 1.81e9},
    {"resnet34", 21797672, 3.66e9},          {"resnet50", 25557032, 4.09e9},
    {"resnet101", 44549160, 7.80e9},         {"resnet152", 60192808, 11.51e9},
    {"mobilenet-v2", 3504872, 0.3008e9},     {"densenet121", 7978856, 2.83e9},
    {"inception-v3", 27161264, 5.71e9},      {"squeezenet1.1", 1235496, 0.349e9},
    {"vit-b-16", 86567656, 17.56e9},         {"deit-tiny", 5717416, 1.26e9},
    {"bert-base", 109482240, 11.25e9, 128},  {"bert-large", 335141888, 39.46e9, 128},
    {"gpt2", 124439808, 145.82e9},           {"gpt3-175b", 174615846912, 367.4e12},
    {"cosmoflow", 8907556, 34.43e9},         {"resnext50-32x4d", 25028904, 4.23e9},
    {"resnext101-32x8d", 88791336, 16.41e9}, {"llama3-8b", 8030261248, 79.07e12},
    {"llama3-70b", 70553706496, 657.3e12},   {"resnext101-32x4d", 44177704, 8.01e9},
    {"tinyllama-1.1b", 1100048384, 2.496e12}, {"qwen2.5-0.5b", 494032768, 2.745e12},
    {"qwen2.5-7b", 7615616512, 32.33e12},
    {"efficientnet-b4", 19341616, 4.39e9},   {"nnunet-3d", 31192868, 482.80e9},
    {"insightface-r100", 109055552, 12.089e9 + 0.0439e9},   {"unet3d", 19069955, 266.73e9},
    {"unet3d-mlperf", 31190243, 477.30e9},
};

// torchvision and the others count convolutions and matrix products only.
bool multiplies_matrices(const Attributes& attributes) {
  return std::holds_alternative<Convolution>(attributes) || std::holds_alternative<Linear>(attributes) ||
         std::holds_alternative<MatMul>(attributes) || std::holds_alternative<Attention>(attributes);
}

double matrix_flops(const Graph& graph) {
  double flops = 0;
  for (std::size_t i = 0; i < graph.operations().size(); ++i) {
    if (!multiplies_matrices(graph.operations()[i].attributes)) continue;
    const Signature operation = signature(graph, OperationId(i), graph.batch(), DType::f32);
    flops += training_rule(operation, 0, Backend::cuda).forward.flops.value();
  }
  return flops;
}

class PublishedModel : public testing::TestWithParam<Published> {};

TEST_P(PublishedModel, TrainsThePublishedParametersWithThePublishedWork) {
  const Published& model = GetParam();
  ImportOptions options;
  options.batch = 1;
  if (model.seq > 0) options.dims["seq"] = model.seq;
  const Result<Import> import = inspect_onnx_bytes(*zoo_model_bytes(model.name), model.name, options);
  ASSERT_TRUE(import.has_value()) << to_string(import.error());
  ASSERT_TRUE(import->unsupported.empty())
      << import->unsupported.front().node << ' ' << import->unsupported.front().reason;
  EXPECT_EQ(import->graph.parameter_count(), model.trained);
  EXPECT_NEAR(matrix_flops(import->graph) / (2 * model.multiply_adds), 1.0, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Zoo, PublishedModel, testing::ValuesIn(models), [](const auto& test) {
  std::string name = test.param.name;
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
});

// Every model imports, all of it trains, and attention, GELU and layer-norm come back whole.
TEST(Zoo, EveryModelImportsWithoutRemainder) {
  for (const ZooModel& model : zoo_models()) {
    const Result<Import> import = inspect_onnx_bytes(*zoo_model_bytes(model.name), model.name, {});
    ASSERT_TRUE(import.has_value()) << to_string(import.error());
    EXPECT_TRUE(import->unsupported.empty()) << model.name << ' ' << import->unsupported.front().node;
    EXPECT_TRUE(import->graph.loss.valid()) << model.name;
  }
}

struct Kinds {
  int attention = 0, causal = 0, gelu = 0, layer_norm = 0, softmax = 0, erf = 0, where = 0, dropout = 0;
  int rms_norm = 0, silu = 0, sigmoid = 0, pow = 0, expand = 0;
  bool operator==(const Kinds&) const = default;
};

Kinds kinds_of(const std::string& name) {
  Kinds kinds;
  const Import import = inspect_onnx_bytes(*zoo_model_bytes(name), name, {}).value();
  for (const Operation& operation : import.graph.operations()) {
    const Attributes& attributes = operation.attributes;
    if (const auto* attention = std::get_if<Attention>(&attributes)) {
      kinds.attention += 1;
      kinds.causal += attention->causal ? 1 : 0;
    }
    if (const auto* unary = std::get_if<Unary>(&attributes)) {
      kinds.gelu += unary->kind == UnaryKind::gelu || unary->kind == UnaryKind::gelu_tanh ? 1 : 0;
      kinds.erf += unary->kind == UnaryKind::erf ? 1 : 0;
      kinds.silu += unary->kind == UnaryKind::silu ? 1 : 0;
      kinds.sigmoid += unary->kind == UnaryKind::sigmoid ? 1 : 0;
      kinds.pow += unary->kind == UnaryKind::pow ? 1 : 0;
    }
    if (const auto* norm = std::get_if<Normalization>(&attributes)) {
      kinds.layer_norm += norm->kind == NormalizationKind::layer ? 1 : 0;
      kinds.rms_norm += norm->kind == NormalizationKind::rms ? 1 : 0;
    }
    kinds.expand += std::holds_alternative<Expand>(attributes) ? 1 : 0;
    kinds.softmax += std::holds_alternative<Softmax>(attributes) ? 1 : 0;
    kinds.where += std::holds_alternative<Where>(attributes) ? 1 : 0;
    kinds.dropout += std::holds_alternative<Dropout>(attributes) ? 1 : 0;
  }
  return kinds;
}

// 12 blocks of one attention, one GELU and two layer-norms each, and one layer-norm at the end (GPT-2, ViT) or at the
// start (BERT). Dropout beside attention's own: two in each block and one after the embedding.
TEST(Zoo, TransformersComeBackWhole) {
  EXPECT_EQ(kinds_of("gpt2"), (Kinds{.attention = 12, .causal = 12, .gelu = 12, .layer_norm = 25, .dropout = 25}));
  EXPECT_EQ(kinds_of("bert-base"), (Kinds{.attention = 12, .gelu = 12, .layer_norm = 25, .dropout = 25}));
  EXPECT_EQ(kinds_of("vit-b-16"), (Kinds{.attention = 12, .gelu = 12, .layer_norm = 25, .expand = 1}));
}

// 32 blocks of one attention, one gate and two RMS-norms each, and one at the end. Keys and values keep their 8 heads,
// and the rotary tables are no weights.
TEST(Zoo, LlamaComesBackWhole) {
  EXPECT_EQ(kinds_of("llama3-8b"), (Kinds{.attention = 32, .causal = 32, .rms_norm = 65, .silu = 32}));
  EXPECT_EQ(kinds_of("qwen2.5-0.5b"), (Kinds{.attention = 24, .causal = 24, .rms_norm = 49, .silu = 24}));
  const Import import = inspect_onnx_bytes(*zoo_model_bytes("llama3-8b"), "llama3-8b", {}).value();
  for (const Operation& operation : import.graph.operations()) {
    if (!std::holds_alternative<Attention>(operation.attributes)) continue;
    ASSERT_EQ(operation.inputs.size(), 3U);
    EXPECT_EQ(import.graph[operation.inputs[0]].shape, (Shape{1, 32, 8192, 128}));
    EXPECT_EQ(import.graph[operation.inputs[1]].shape, (Shape{1, 8, 8192, 128}));
    EXPECT_EQ(import.graph[operation.inputs[2]].shape, (Shape{1, 8, 8192, 128}));
  }
}

}  // namespace
}  // namespace sibyl
