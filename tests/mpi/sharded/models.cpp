#include "tests/mpi/sharded/models.h"

#include <map>

#include "models/onnx/import.h"
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "tests/support/transformers.h"

namespace sibyl::trainer {
namespace {

// Branches that are added and concatenated, strides, pooling with borders, a grouped convolution.
void residual_cnn(zoo::Builder& b, bool batch_norm) {
  using namespace zoo;
  const auto layer = [&](const Value& x, const std::string& name, std::int64_t channels, ConvOptions options) {
    options.bias = !batch_norm;  // its gradient would be nothing but rounding
    const Value y = conv(b, x, name, channels, options);
    return batch_norm ? zoo::batch_norm(b, y, name + ".bn") : y;
  };
  const Value image = b.input("input", {batch_extent, 4, 16, 16});
  Value x = relu(b, layer(image, "conv1", 8, {.kernel = {3, 3}, .pad = {1, 1}}));
  const Value y = relu(b, layer(x, "conv2", 8, {.kernel = {3, 3}, .pad = {1, 1}}));
  x = relu(b, add(b, x, layer(y, "conv3", 8, {.kernel = {1, 1}})));
  const Value left = layer(x, "conv4", 8, {.kernel = {3, 3}, .stride = 2, .pad = {1, 1}});
  x = concat(b, {left, max_pool(b, x, {.kernel = 3, .stride = 2, .pad = 1})}, 1);
  x = add(b, x, layer(x, "conv5", 16, {.kernel = {3, 3}, .pad = {1, 1}, .groups = 4}));
  x = flatten(b, average_pool(b, x, {}));
  b.output(fully_connected(b, relu(b, fully_connected(b, x, "fc1", 16)), "fc2", 10));
}

void volume_cnn(zoo::Builder& b) {
  using namespace zoo;
  Value x = b.input("input", {batch_extent, 2, 8, 8, 8});
  x = relu(b, conv(b, x, "conv1", 4, {.kernel = {3, 3, 3}, .pad = {1, 1, 1}}));
  x = relu(b, conv(b, max_pool(b, x, {}), "conv2", 8, {.kernel = {3, 3, 3}, .pad = {1, 1, 1}}));
  b.output(fully_connected(b, flatten(b, global_average_pool(b, x)), "fc", 10));
}

// A U-Net of two levels: norms of each sample's own statistics, a convolution with stride 2 and a pool on the way down;
// up by a transposed convolution that needs no neighbours (kernel 2) and one that does (kernel 3).
void volume_unet(zoo::Builder& b) {
  using namespace zoo;
  const auto layer = [&](const Value& x, const std::string& name, std::int64_t channels, std::int64_t stride = 1) {
    return conv(b, x, name, channels, {.kernel = {3, 3, 3}, .stride = stride, .pad = {1, 1, 1}, .bias = false});
  };
  const auto instance = [&](const Value& x, const std::string& name) {
    return leaky_relu(b, instance_norm(b, x, name), 0.01);
  };
  const auto grouped = [&](const Value& x, const std::string& name) {
    return relu(b, group_norm(b, x, name, 2, 1e-5));
  };
  const Value image = b.input("input", {batch_extent, 2, 16, 16, 16});
  const Value first = instance(layer(image, "down0", 4), "down0.norm");
  const Value second = grouped(layer(first, "down1", 6, 2), "down1.norm");
  Value x = instance(layer(max_pool(b, second, {}), "bottom", 8), "bottom.norm");
  x = concat(b, {up_convolution(b, x, "up1", 6, true), second}, 1);
  x = grouped(layer(x, "up1.conv", 6), "up1.norm");
  x = concat(b, {up_convolution(b, x, "up0", 4, true, 3), first}, 1);
  x = instance(layer(x, "up0.conv", 4), "up0.norm");
  b.output(conv(b, x, "output", 3, {.kernel = {1, 1, 1}}));
}

zoo::Value layer_of(zoo::Builder& b, const zoo::Value& x, const std::string& name, const zoo::Value& weight) {
  return b.apply("Gemm", name, {x, weight}, {zoo::batch_extent, weight.shape[0]}, {{"transB", 1}});
}

// Three blocks of the same weights, as ALBERT's.
void shared_blocks(zoo::Builder& b) {
  using namespace zoo;
  Value x = relu(b, fully_connected(b, b.input("input", {batch_extent, 32}), "first", 64));
  const Value up = b.parameter("up.weight", {128, 64}), down = b.parameter("down.weight", {64, 128});
  for (const std::string block : {"0", "1", "2"}) {
    const Value y = relu(b, layer_of(b, x, block + ".up", up));
    x = add(b, x, layer_of(b, y, block + ".down", down));
  }
  b.output(fully_connected(b, x, "last", 10));
}

// Of four layers the outer two have one weight, and the inner two another.
void tied_layers(zoo::Builder& b) {
  using namespace zoo;
  const Value outer = b.parameter("outer.weight", {256, 256}), inner = b.parameter("inner.weight", {256, 256});
  Value x = relu(b, layer_of(b, b.input("input", {batch_extent, 256}), "fc0", outer));
  x = relu(b, layer_of(b, x, "fc1", inner));
  x = relu(b, layer_of(b, x, "fc2", inner));
  b.output(layer_of(b, x, "fc3", outer));
}

const std::map<std::string, void (*)(zoo::Builder&)>& models() {
  static const std::map<std::string, void (*)(zoo::Builder&)> all = {
      {"cnn", [](zoo::Builder& b) { residual_cnn(b, false); }},
      {"cnn_bn", [](zoo::Builder& b) { residual_cnn(b, true); }},
      {"volumes", volume_cnn},
      {"unet", volume_unet},
      {"gpt2",
       [](zoo::Builder& b) {
         zoo::gpt2(b, {2, 64, 4, 16, 16, 50});
       }},
      {"gpt2_51",  // words: rounded up for 2 ranks and for 4
       [](zoo::Builder& b) {
         zoo::gpt2(b, {2, 64, 4, 16, 16, 51});
       }},
      {"gpt2_mini",  // of the zoo, with 16 tokens; 50257 words
       [](zoo::Builder& b) {
         zoo::gpt2(b, {4, 256, 4, 16});
       }},
      {"experts",  // 2 of 4, one that is shared; the first of 3 layers has none
       [](zoo::Builder& b) {
         zoo::LlamaOptions options{3, 64, 4, 2, 96, 16, 50};
         options.experts = {.count = 4, .chosen = 2, .width = 32, .shared_width = 48, .dense_layers = 1};
         zoo::llama(b, options);
       }},
      {"experts_dropped",  // each expert has slots for half of the tokens, whoever comes
       [](zoo::Builder& b) {
         zoo::LlamaOptions options{2, 64, 4, 2, 96, 16, 50};
         options.experts = {.count = 4, .chosen = 2, .width = 32, .normalized = false};
         zoo::llama(b, options);
       }},
      {"llama",
       [](zoo::Builder& b) {
         zoo::llama(b, {2, 64, 4, 2, 128, 16, 50});
       }},
      {"shared", shared_blocks},
      {"ties", tied_layers},
      {"deep",  // its blocks keep more than its weights are
       [](zoo::Builder& b) {
         zoo::llama(b, {12, 32, 4, 2, 32, 64, 50});
       }},
      {"t5",
       [](zoo::Builder& b) {
         zoo::t5(b, {2, 64, 4, 128, 16, 8, 50});
       }},
      {"dlrm",
       [](zoo::Builder& b) {
         zoo::dlrm(b, {{50, 3, 51}, 16, {32, 16}, {32}, 2});
       }},
      {"dlrm_one",  // of each table one row a sample
       [](zoo::Builder& b) {
         zoo::dlrm(b, {{50, 3, 51}, 16, {32, 16}, {32}});
       }},
      {"bert",  // classifies by its first token
       [](zoo::Builder& b) {
         zoo::bert(b, {2, 64, 4, 16, zoo::BertHead::pooler, 0, 50, 16});
       }},
      {"bert_words",  // with a mask, as padded sequences have it
       [](zoo::Builder& b) {
         zoo::bert(b, {2, 64, 4, 16, zoo::BertHead::masked_language_model, 0, 50, 16, 0, true});
       }},
      {"apart", [](zoo::Builder& b) { test::apart(b); }},  // attention in single operations
      {"features", [](zoo::Builder& b) { test::apart(b, {.features = true}); }},
  };
  return all;
}

}  // namespace

const Graph& graph_of(const std::string& model) {
  static std::map<std::string, Graph> graphs;
  if (const auto known = graphs.find(model); known != graphs.end()) return known->second;
  zoo::Builder builder(model);
  models().at(model)(builder);
  ImportOptions options;
  options.batch = sharded_batch;
  options.capacity_factor = model == "experts_dropped" ? 1.0 : 2.0;  // a slot for each of the experts' tokens: 4 / 2
  return graphs[model] = inspect_onnx_bytes(builder.bytes(), model, options)->graph;
}

}  // namespace sibyl::trainer
