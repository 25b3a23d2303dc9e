#include "profiler/torch/others.h"

#include <torch/types.h>

#include <vector>

namespace sibyl {
namespace {

class TinyNetwork {
 public:
  void step() {
    at::cross_entropy_loss(of_images() + of_words(), labels_).backward();
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }

 private:
  at::Tensor parameter(at::IntArrayRef sizes) {
    parameters_.push_back(at::full(sizes, 0.1).set_requires_grad(true));
    return parameters_.back();
  }

  at::Tensor of_images() {
    at::Tensor x = at::conv2d(image_, convolution_, {}, 1, 1);
    x = at::relu(at::batch_norm(x, scale_, shift_, mean_, variance_, true, 0.1, 1e-5, false));
    x = x + at::hardtanh(at::conv2d(x, depthwise_, {}, 1, 1, 1, channels), 0, 6);
    x = at::cat({at::max_pool2d(x, {2, 2}), at::avg_pool2d(x, {2, 2})}, 1);
    x = at::cat({x, x * at::sigmoid(x)}, 1);
    return at::linear(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1), classes_);
  }

  at::Tensor of_words() {
    at::Tensor x = at::embedding(table_, ids_);
    const auto parts = at::linear(at::layer_norm(x, {width}, gain_, bias_), query_).chunk(3, -1);
    const at::Tensor scores = at::softmax(at::matmul(parts[0], parts[1].transpose(1, 2)) / 5.0, -1);
    x = x + at::matmul(scores, parts[2]);
    x = x + at::linear(at::gelu(at::linear(x, inner_)), outer_);
    return at::linear(x.mean(1), classes_);
  }

  static constexpr std::int64_t channels = 8, width = 4 * channels, words = 16, classes = 10;
  std::vector<at::Tensor> parameters_;
  at::Tensor image_ = at::ones({2, 4, 8, 8}), mean_ = at::zeros({channels}), variance_ = at::ones({channels}),
             labels_ = at::zeros({2}, at::kLong), ids_ = at::zeros({2, 4}, at::kLong);
  at::Tensor convolution_ = parameter({channels, 4, 3, 3}), depthwise_ = parameter({channels, 1, 3, 3}),
             scale_ = parameter({channels}), shift_ = parameter({channels}), classes_ = parameter({classes, width}),
             table_ = parameter({words, width}), gain_ = parameter({width}), bias_ = parameter({width}),
             query_ = parameter({3 * width, width}), inner_ = parameter({2 * width, width}),
             outer_ = parameter({width, 2 * width});
};

}  // namespace

void run_others() {
  static TinyNetwork network;
  const at::AutoGradMode differentiate(true);
  network.step();
}

}  // namespace sibyl
