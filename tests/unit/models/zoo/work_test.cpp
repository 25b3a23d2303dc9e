// The zoo's models through the importer: parameters that train, and forward work against published multiply-adds.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <variant>

#include "models/onnx/import.h"
#include "models/training/products.h"
#include "models/zoo/zoo.h"

namespace sibyl {
namespace {

// Multiply-adds by hand, written out: no count of these is published to three digits that has all products in it.

// T5 on 512 tokens in and 114 out: in a layer q, k, v, o and two of the feed-forward for each token, scores and their
// products with v; a decoder's looks at the encoder's result, too. Then the head.
constexpr double t5(double layers, double e, double f) {
  const double s = 512, t = 114, vocabulary = 32128;
  const double encoder = s * (4 * e * e + 2 * e * f) + 2 * s * s * e;
  const double decoder = t * (4 * e * e + 2 * e * f) + 2 * t * t * e + (2 * t + 2 * s) * e * e + 2 * t * s * e;
  return layers * (encoder + decoder) + t * e * vocabulary;
}

// Of Stable Diffusion's U-Net at so many pixels: a residual block of c to k channels with its 1280 of time, and a
// transformer's block of c: two convolutions of 1 x 1, eight products of c x c and 12 of the feed-forward, less those
// keys and values that come from 77 tokens of 768 in place of the pixels.
constexpr double residual(double pixels, double c, double k) {
  return pixels * (9 * c * k + 9 * k * k + (c == k ? 0 : c * k)) + 1280 * k;
}
constexpr double transformer(double pixels, double c) {
  return pixels * (2 + 4 + 2 + 12) * c * c + 77 * 2 * 768 * c + 2 * pixels * (pixels + 77) * c;
}
constexpr double stable_diffusion() {
  const double n = 64 * 64, ends = 2 * n * 9 * 4 * 320 + 320 * 1280 + 1280 * 1280;
  const double down = residual(n, 320, 320) * 2 + transformer(n, 320) * 2 + n / 4 * 9 * 320 * 320 +
                      residual(n / 4, 320, 640) + residual(n / 4, 640, 640) + transformer(n / 4, 640) * 2 +
                      n / 16 * 9 * 640 * 640 + residual(n / 16, 640, 1280) + residual(n / 16, 1280, 1280) +
                      transformer(n / 16, 1280) * 2 + n / 64 * 9 * 1280 * 1280 + residual(n / 64, 1280, 1280) * 2;
  const double middle = residual(n / 64, 1280, 1280) * 2 + transformer(n / 64, 1280);
  const double up = residual(n / 64, 2560, 1280) * 3 + n / 16 * 9 * 1280 * 1280 + residual(n / 16, 2560, 1280) * 2 +
                    residual(n / 16, 1920, 1280) + transformer(n / 16, 1280) * 3 + n / 4 * 9 * 1280 * 1280 +
                    residual(n / 4, 1920, 640) + residual(n / 4, 1280, 640) + residual(n / 4, 960, 640) +
                    transformer(n / 4, 640) * 3 + n * 9 * 640 * 640 + residual(n, 960, 320) +
                    residual(n, 640, 320) * 2 + transformer(n, 320) * 3;
  return ends + down + middle + up;
}

// GPT-2 of so many layers and such a width on 1024 tokens: 12 e^2 a token and layer (q, k, v 3, what joins heads 1, the
// feed-forward 8), scores and their products with v, and the head.
constexpr double gpt2(double layers, double e) {
  const double s = 1024, vocabulary = 50257;
  return layers * (12 * e * e * s + 2 * s * s * e) + s * e * vocabulary;
}

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
// model 69.50 G a token and 80 x 2 x 8192^2 x 8192 = 87.96 T; TinyLlama at 2048 tokens likewise, 1.0344 G a token and
// 22 x 2 x 2048^3; Qwen 2.5 at 4096: 0.4940 G a token and 24 x 2 x 4096^2 x 896, 7.0703 G and 28 x 2 x 4096^2 x 3584.
// Mixtral at 4096 tokens, with 2 of 8 experts: 32 x (2 x 4096^2 + 2 x 4096 x 1024 + 8 x 4096 + 2 x 3 x 4096 x 14336) +
// 4096 x 32000 = 12.7486 G a token (12.9 G of its parameters are active, of which 0.13 G are a table), and 32 x 2 x
// 4096^3; DeepSeekMoE with 6 of 64 and 2 shared: 28 x 4 x 2048^2 + 27 x (64 x 2048 + 8 x 3 x 2048 x 1408) + 3 x 2048 x
// 10944 + 2048 x 102400 = 2.6188 G and 28 x 2 x 4096^2 x 2048. 3D U-Net: voxels x weights of each convolution (an
// up-convolution's input voxels), from 112 x 128 x 128 x 27 x 64 x 32 down and up to 28 x 44 x 44 x 64 x 3; MLPerf's
// likewise from 128^3 x 27 x 32.
const Published models[] = {
    {"alexnet", 61100840, 0.7142e9},
    {"vgg11", 132863336, 7.61e9},
    {"vgg16", 138357544, 15.47e9},
    {"resnet18", 11689512, 1.81e9},
    {"resnet34", 21797672, 3.66e9},
    {"resnet50", 25557032, 4.09e9},
    {"resnet101", 44549160, 7.80e9},
    {"resnet152", 60192808, 11.51e9},
    {"mobilenet-v2", 3504872, 0.3008e9},
    {"densenet121", 7978856, 2.83e9},
    {"inception-v3", 27161264, 5.71e9},
    {"squeezenet1.1", 1235496, 0.349e9},
    {"vit-b-16", 86567656, 17.56e9},
    {"vgg13", 133047848, 11.31e9},
    {"vgg19", 143667240, 19.63e9},
    {"densenet161", 28681000, 7.73e9},
    {"densenet169", 14149480, 3.36e9},
    {"densenet201", 20013928, 4.29e9},
    {"wide-resnet50-2", 68883240, 11.40e9},
    {"wide-resnet101-2", 126886696, 22.75e9},
    {"resnext101-64x4d", 83455272, 15.46e9},
    {"efficientnet-b3", 12233232, 1.83e9},
    {"efficientnet-b5", 30389784, 10.27e9},
    {"efficientnet-b6", 43040704, 19.07e9},
    {"efficientnet-b7", 66347960, 37.75e9},
    {"convnext-tiny", 28589128, 4.46e9},
    {"convnext-small", 50223688, 8.68e9},
    {"convnext-base", 88591464, 15.36e9},
    {"convnext-large", 197767336, 34.36e9},
    {"googlenet", 6624904, 1.50e9},
    {"vit-b-32", 88224232, 4.41e9},
    {"vit-l-16", 304326632, 61.55e9},
    {"vit-l-32", 306535400, 15.38e9},
    {"vit-h-14", 632045800, 167.29e9},
    {"swin-tiny", 28288354, 4.49e9},
    {"swin-small", 49606258, 8.74e9},
    {"swin-base", 87768224, 15.43e9},
    {"deit-tiny", 5717416, 1.26e9},
    {"bert-base", 109482240, 11.25e9, 128},
    {"bert-large", 335141888, 39.46e9, 128},
    {"gpt2", 124439808, 145.82e9},
    {"gpt3-175b", 174615846912, 367.4e12},
    {"cosmoflow", 8907556, 34.43e9},
    {"resnext50-32x4d", 25028904, 4.23e9},
    {"resnext101-32x8d", 88791336, 16.41e9},
    {"llama3-8b", 8030261248, 79.07e12},
    {"llama3-70b", 70553706496, 657.3e12},
    {"resnext101-32x4d", 44177704, 8.01e9},
    {"tinyllama-1.1b", 1100048384, 2.496e12},
    {"qwen2.5-0.5b", 494032768, 2.745e12},
    {"qwen2.5-7b", 7615616512, 32.33e12},
    {"mixtral-8x7b", 46702792704, 56.62e12},
    {"deepseek-moe-16b", 16375728128, 12.65e12},
    {"efficientnet-b4", 19341616, 4.39e9},
    {"nnunet-3d", 31192868, 482.80e9},
    {"insightface-r100", 109055552, 12.089e9 + 0.0439e9},
    {"unet3d", 19069955, 266.73e9},
    {"unet3d-mlperf", 31190243, 477.30e9},
};

const Published derived[] = {
    {"gpt2-medium", 354823168, gpt2(24, 1024)},
    {"gpt2-large", 774030080, gpt2(36, 1280)},
    {"gpt2-xl", 1557611200, gpt2(48, 1600)},
    {"mt-nlg-530b", 529600819200,
     105 * (12 * 20480.0 * 20480 * 2048 + 2 * 2048.0 * 2048 * 20480) + 2048 * 20480 * 51200.0},
    {"gpt-1t", 1008038758400, 128 * (12 * 25600.0 * 25600 * 2048 + 2 * 2048.0 * 2048 * 25600) + 2048 * 25600 * 51200.0},
    // 48 layers of attention between 2048 and heads of 4096 and 512, a router of 128 and 8 of its experts; the head.
    {"qwen3-30b-a3b", 30532122624,
     4096 * (48 * (2048.0 * (2 * 4096 + 2 * 512 + 128) + 8 * 3 * 2048.0 * 768) + 2048 * 151936.0) +
         48 * 2 * 4096.0 * 4096 * 4096},
    // 12 blocks of 768 channels and 196 patches, a perceptron of 384 over the patches and one of 3072 over the
    // channels.
    {"mixer-b-16", 59880472, 196 * 768 * 768.0 + 12 * (2 * 768 * 196 * 384.0 + 2 * 196 * 768 * 3072.0) + 768 * 1000},
    {"t5-small", 60506624, t5(6, 512, 2048)},
    {"t5-base", 222903552, t5(12, 768, 3072)},
    {"t5-large", 737668096, t5(24, 1024, 4096)},
    {"sd1.5-unet", 859520964, stable_diffusion()},
    {"dlrm-terabyte", 24036595969,
     13 * 512 + 512 * 256 + 256 * 128 + 27 * 27 * 128 + 479 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256},
    {"dlrm-kaggle", 540677217, 13 * 512 + 512 * 256 + 256 * 64 + 64 * 16 + 27 * 27 * 16 + 367 * 512 + 512 * 256 + 256},
};

// torchvision and the others count convolutions and matrix products only.
double matrix_flops(const Graph& graph) {
  double flops = 0;
  for (std::size_t i = 0; i < graph.operations().size(); ++i) {
    const Signature operation = signature(graph, OperationId(i), graph.batch(), DType::f32);
    flops += product_work(operation, 0, Backend::cuda).forward.value();
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

std::string name_of(const testing::TestParamInfo<Published>& test) {
  std::string name = test.param.name;
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Zoo, PublishedModel, testing::ValuesIn(models), name_of);
INSTANTIATE_TEST_SUITE_P(ByHand, PublishedModel, testing::ValuesIn(derived), name_of);

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
  int rms_norm = 0, group_norm = 0, silu = 0, sigmoid = 0, pow = 0, expand = 0;
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
      kinds.group_norm += norm->kind == NormalizationKind::group ? 1 : 0;
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

// Of 12 blocks five shift their windows: what they mask stands between scores and softmax, window by window, and these
// stay two products and a softmax. Two norms a block, one of the patches, three before merging them, and one at the
// end. Masks and what positions add are constants or tables: no Where is left.
TEST(Zoo, WindowsOfSwinComeBackWhole) {
  EXPECT_EQ(kinds_of("swin-tiny"), (Kinds{.attention = 7, .gelu = 12, .layer_norm = 29, .softmax = 5}));
  EXPECT_EQ(kinds_of("convnext-tiny"), (Kinds{.gelu = 18, .layer_norm = 23}));
}

// 32 blocks of one attention, one gate and two RMS-norms each, and one at the end. Keys and values keep their 8 heads,
// and the rotary tables are no weights.
TEST(Zoo, LlamaComesBackWhole) {
  EXPECT_EQ(kinds_of("llama3-8b"), (Kinds{.attention = 32, .causal = 32, .rms_norm = 65, .silu = 32}));
  EXPECT_EQ(kinds_of("qwen2.5-0.5b"), (Kinds{.attention = 24, .causal = 24, .rms_norm = 49, .silu = 24}));
  EXPECT_EQ(kinds_of("mixtral-8x7b"),
            (Kinds{.attention = 32, .causal = 32, .softmax = 32, .rms_norm = 65, .silu = 32}));
  EXPECT_EQ(kinds_of("qwen3-30b-a3b"),
            (Kinds{.attention = 48, .causal = 48, .softmax = 48, .rms_norm = 4 * 48 + 1, .silu = 48}));
  const Import import = inspect_onnx_bytes(*zoo_model_bytes("llama3-8b"), "llama3-8b", {}).value();
  for (const Operation& operation : import.graph.operations()) {
    if (!std::holds_alternative<Attention>(operation.attributes)) continue;
    ASSERT_EQ(operation.inputs.size(), 3U);
    EXPECT_EQ(import.graph[operation.inputs[0]].shape, (Shape{1, 32, 8192, 128}));
    EXPECT_EQ(import.graph[operation.inputs[1]].shape, (Shape{1, 8, 8192, 128}));
    EXPECT_EQ(import.graph[operation.inputs[2]].shape, (Shape{1, 8, 8192, 128}));
  }
}

// 6 encoder layers of one attention and two norms, 6 decoder layers of two and three, and a norm for each stack. Scores
// are not scaled; what is added to them trains, and only the decoder's hides what is to come, once for all layers.
TEST(Zoo, T5ComesBackWhole) {
  EXPECT_EQ(kinds_of("t5-small"), (Kinds{.attention = 18, .where = 1, .dropout = 46, .rms_norm = 32}));
  const Import import = inspect_onnx_bytes(*zoo_model_bytes("t5-small"), "t5-small", {}).value();
  int biased = 0;
  for (const Operation& operation : import.graph.operations()) {
    const auto* attention = std::get_if<Attention>(&operation.attributes);
    if (!attention) continue;
    EXPECT_EQ(attention->scale, 1.0);
    if (operation.inputs.size() < 4) continue;
    ++biased;
    EXPECT_TRUE(import.graph.requires_gradient(operation.inputs[3]));
  }
  EXPECT_EQ(biased, 12) << "a decoder's look at the encoder has no positions";
}

// The bucket of a key so far ahead of its query, in a stack of 200 tokens.
std::int64_t bucket(const Graph& graph, const std::string& stack, std::int64_t ahead) {
  for (const Operation& operation : graph.operations()) {
    if (!std::holds_alternative<Embedding>(operation.attributes)) continue;
    const std::string& table = graph[operation.inputs[0]].name;
    if (!table.starts_with(stack) || table.find("relative_attention_bias") == std::string::npos) continue;
    const Tensor& ids = graph[operation.inputs[1]];
    const std::int64_t query = ahead < 0 ? 199 : 0;
    return ids.shape == Shape{200, 200} && !ids.values.empty()
               ? std::llround(ids.values[static_cast<std::size_t>(query * 200 + query + ahead)])
               : -1;
  }
  return -1;
}

// An encoder has 16 buckets each way, the first 8 for a distance each: 8 + 8 log(n / 8) / log(128 / 8). A decoder has
// 32 backwards: 16 + 16 log(n / 16) / log(128 / 16). The last is for all that is farther.
TEST(Zoo, T5PutsDistancesIntoBuckets) {
  ImportOptions options;
  options.dims = {{"seq", 200}, {"decoder_seq", 200}};
  const Graph graph = inspect_onnx_bytes(*zoo_model_bytes("t5-small"), "t5-small", options).value().graph;
  const std::map<std::int64_t, std::int64_t> encoder = {{0, 0},   {-1, 1},   {-7, 7},   {-8, 8},   {-11, 8},
                                                        {-12, 9}, {1, 17},   {7, 23},   {12, 25},  {90, 30},
                                                        {91, 31}, {150, 31}, {-90, 14}, {-91, 15}, {-199, 15}};
  for (const auto& [ahead, number] : encoder) EXPECT_EQ(bucket(graph, "encoder", ahead), number) << ahead;
  const std::map<std::int64_t, std::int64_t> decoder = {{0, 0},    {5, 0},    {199, 0},   {-15, 15},  {-16, 16},
                                                        {-18, 16}, {-19, 17}, {-112, 30}, {-113, 31}, {-199, 31}};
  for (const auto& [ahead, number] : decoder) EXPECT_EQ(bucket(graph, "decoder", ahead), number) << ahead;
}

// 22 residual blocks of two group-norms and three SiLUs each, 16 blocks of transformers of one group-norm, three
// layer-norms, two attentions and a GELU, of the time step a SiLU and at the end a group-norm and a SiLU.
TEST(Zoo, StableDiffusionComesBackWhole) {
  EXPECT_EQ(kinds_of("sd1.5-unet"),
            (Kinds{.attention = 32, .gelu = 16, .layer_norm = 48, .group_norm = 61, .silu = 68}));
}

}  // namespace
}  // namespace sibyl
