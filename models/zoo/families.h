// One function per family writes a model into a Builder. Sizes are the published ones; images are those the counts are
// published for (224 x 224, Inception 299 x 299), classes are ImageNet's 1000 unless said.
#pragma once

#include "models/zoo/builder.h"

namespace sibyl::zoo {

void alexnet(Builder& b);
void alexnet_tf(Builder& b);     // of tf_cnn_benchmarks
void alexnet_mxnet(Builder& b);  // of MXNet's examples

struct VggOptions {
  Ints blocks;              // convolutions before each pooling
  bool batch_norm = false;  // behind every convolution
};
void vgg(Builder& b, const VggOptions& options);

struct ResNetOptions {
  Ints blocks;  // per stage
  bool bottleneck = true;
  std::int64_t groups = 1;  // ResNeXt's cardinality: of the bottleneck's 3 x 3 convolutions,
  std::int64_t width = 64;  // and the channels of each group in the first stage
  bool stride_first = false;        // a bottleneck strides in its first convolution, as in the paper
  bool normalized_shortcut = true;  // a convolution of the shortcut has a batch-norm
  bool preactivated = false;        // v2
  std::int64_t squeeze = 0;         // gates of channels are squeezed by this factor; 0: there are none
};
void resnet(Builder& b, const ResNetOptions& options);
// Its stem and as many stages as there are strides, without pooling and classifier.
Value resnet_features(Builder& b, Value x, const ResNetOptions& options, const Ints& strides);

struct EfficientNetOptions {
  double width = 1, depth = 1;  // factors over B0
  std::int64_t image = 224;
  double dropout = 0.2;
};
void efficientnet(Builder& b, const EfficientNetOptions& options);
enum class EfficientNetV2 { s, m, l };
void efficientnet_v2(Builder& b, EfficientNetV2 size);  // on the images that torchvision trains them with

struct SsdOptions {
  ResNetOptions backbone;
  bool normalized_extras;  // the blocks behind the backbone have batch-norm in place of biases
};
void ssd300(Builder& b, const SsdOptions& options);

void mobilenet_v2(Builder& b);
enum class MobileNetV3 { small, large };
void mobilenet_v3(Builder& b, MobileNetV3 size);

struct ConvNextOptions {
  Ints blocks;         // per stage
  std::int64_t width;  // of the first, which doubles from stage to stage
};
void convnext(Builder& b, const ConvNextOptions& options);

struct DenseNetOptions {
  Ints blocks;  // layers in each dense block
  std::int64_t growth = 32;
};
void densenet(Builder& b, const DenseNetOptions& options);

// With its auxiliary classifier, the second output, as torchvision trains it; MXNet and tf_cnn_benchmarks leave it out.
void inception_v3(Builder& b, bool auxiliary = true);

void googlenet(Builder& b);
void squeezenet(Builder& b);
void lenet(Builder& b);
void small_cnn(Builder& b, bool with_batch_norm);
void cosmoflow(Builder& b);
void unet3d(Builder& b);         // the paper's
void unet3d_mlperf(Builder& b);  // of MLPerf Training
void unet_medical(Builder& b);          // NVIDIA's examples, 572 x 572
void unet_industrial_tiny(Builder& b);  // NVIDIA's examples, 512 x 512

struct NnUnetOptions {
  Ints patch;                        // extents, two or three
  std::int64_t most_channels = 320;  // of the deepest levels
  std::int64_t output_kernel = 1;
  bool norms_in_full =
      false;  // each a group norm of one channel a group: the same, which mixed precision leaves in f32
};
void nnunet(Builder& b, const NnUnetOptions& options);

void insightface_r100(Builder& b, std::int64_t classes);
void insightface_y1(Builder& b, std::int64_t classes);

struct VitOptions {
  std::int64_t layers, width, heads;
  std::int64_t patch = 16;
};
void vit(Builder& b, const VitOptions& options);

// Windows of 7 x 7, heads of 32.
struct SwinOptions {
  Ints blocks;         // per stage
  std::int64_t width;  // of the first, which doubles from stage to stage
};
void swin(Builder& b, const SwinOptions& options);

struct MixerOptions {
  std::int64_t layers, width;
  std::int64_t patch = 16;
};
void mixer(Builder& b, const MixerOptions& options);

// What stands on the encoder: BertModel's pooler; the masked language model's head on the tied table, at every position
// or at the first `predictions` (which cost what any others do); or a span's begin and end at every position (SQuAD).
enum class BertHead { pooler, masked_language_model, span };
struct BertOptions {
  std::int64_t layers, width, heads;
  std::int64_t seq;  // the default
  BertHead head = BertHead::pooler;
  std::int64_t ffn_width = 0;  // 0: four times the width
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;
  std::int64_t predictions = 0;  // of the masked language model, in a sequence; 0: every position
  bool with_mask = false;        // added to the scores, as implementations do that take padded sequences
  bool of_tensorflow = false;    // GELU by its tanh, layer norms by their moments, as Google's code spells both
};
void bert(Builder& b, const BertOptions& options);

struct Gpt2Options {
  std::int64_t layers, width, heads;
  std::int64_t seq = 1024;  // the default
  std::int64_t positions = 1024;
  std::int64_t vocabulary = 50257;
  std::int64_t ffn_width = 0;  // 0: four times the width
  double dropout = 0.1;        // every one of them
  bool fused_softmax = false;  // scale and mask are the softmax kernel's own (Megatron-LM), not operations
};
void gpt2(Builder& b, const Gpt2Options& options);

// A mixture of experts in place of the feed-forward of every layer but the first `dense_layers`: a router of one linear
// layer, `count` gated experts of which each token goes to `chosen`, and one more that all tokens go to, `shared_width`
// wide. `normalized`: the weights of the chosen ones sum to one.
struct ExpertOptions {
  std::int64_t count = 0, chosen = 1, width = 0;  // count 0: there are none
  bool normalized = true;
  std::int64_t shared_width = 0;
  std::int64_t dense_layers = 0;
};

// Llama 3's defaults; weights of the head are its own. squared_relu: relu(x)^2 between two linear layers (Nemotron).
enum class FeedForward { swiglu, squared_relu };
struct LlamaOptions {
  std::int64_t layers, width, heads, kv_heads, ffn_width;
  std::int64_t seq = 8192;  // the default
  std::int64_t vocabulary = 128256;
  double rotary_base = 500000;
  FeedForward feed_forward = FeedForward::swiglu;
  // Qwen 2 and 2.5: biases on queries, keys and values; small ones with the head's weights those of the embedding.
  bool biases = false, tied = false;
  double epsilon = 1e-5;
  ExpertOptions experts = {};
  // Qwen 3: heads that together are wider than the model, or narrower (0: as wide), and norms of each query and key.
  std::int64_t head_width = 0;
  bool head_norms = false;
};
void llama(Builder& b, const LlamaOptions& options);

// An encoder and a decoder of `layers` each. The defaults are T5's pre-training: 15 % of 512 tokens, in spans of 3.
struct T5Options {
  std::int64_t layers, width, heads, ffn_width;
  std::int64_t seq = 512, decoder_seq = 114;
  std::int64_t vocabulary = 32128;
};
void t5(Builder& b, const T5Options& options);

void stable_diffusion_unet(Builder& b);  // of version 1.5

struct DlrmOptions {
  Ints rows;             // of each table
  std::int64_t width;    // of a row
  Ints bottom, top;      // widths of the perceptrons; the top one ends in one score
  std::int64_t bag = 1;  // features of a table that a sample has
};
void dlrm(Builder& b, const DlrmOptions& options);

}  // namespace sibyl::zoo
