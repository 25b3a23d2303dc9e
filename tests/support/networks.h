// Small convolutional networks and transformers, of any depth and width, that tests build by hand.
#pragma once

#include <string>
#include <vector>

#include "models/graph.h"

namespace sibyl::test {

// Adds operations one after the other; names count up.
class Network {
 public:
  Network(std::string name, std::int64_t batch) : batch_(batch) { graph_.name = std::move(name); }

  TensorId input(Shape shape, DType dtype = DType::f32, std::int64_t bound = 0) {
    return graph_.add(Tensor{next("input"), std::move(shape), dtype, TensorKind::input, 0, {}, bound});
  }
  TensorId parameter(Shape shape) {
    return graph_.add(Tensor{next("weight"), std::move(shape), DType::f32, TensorKind::parameter, {}, {}, 0});
  }
  TensorId buffer(Shape shape) {
    return graph_.add(Tensor{next("buffer"), std::move(shape), DType::f32, TensorKind::buffer, {}, {}, 0});
  }
  TensorId apply(Attributes attributes, std::vector<TensorId> inputs, Shape shape) {
    const std::string name = next(std::string(name_of(attributes)));
    const TensorId y = graph_.add(Tensor{name, std::move(shape), DType::f32, TensorKind::activation, 0, {}, 0});
    graph_.add(Operation{name, std::move(attributes), std::move(inputs), {y}, {}});
    return y;
  }
  const Shape& shape(TensorId x) const { return graph_[x].shape; }

  TensorId linear(TensorId x, std::int64_t features) {
    Shape y = shape(x);
    const TensorId weight = parameter({features, y.back()}), bias = parameter({features});
    y.back() = features;
    return apply(Linear{}, {x, weight, bias}, std::move(y));
  }
  TensorId layer_norm(TensorId x) {
    const std::int64_t width = shape(x).back();
    const TensorId scale = parameter({width}), shift = parameter({width});
    return apply(Normalization{NormalizationKind::layer}, {x, scale, shift}, shape(x));
  }
  // Of 3 in each direction that an image has, with batch-norm and ReLU.
  TensorId convolution(TensorId x, std::int64_t filters) {
    Shape y = shape(x);
    const Ints three(y.size() - 2, 3), one(y.size() - 2, 1);
    Shape kernel = {filters, y[1]};
    kernel.insert(kernel.end(), three.begin(), three.end());
    const TensorId weight = parameter(std::move(kernel));
    y[1] = filters;
    x = apply(Convolution{three, one, one, one, one, 1, false, {}}, {x, weight}, y);
    const TensorId scale = parameter({filters}), shift = parameter({filters});
    const TensorId mean = buffer({filters}), variance = buffer({filters});
    x = apply(Normalization{}, {x, scale, shift, mean, variance}, y);
    return apply(Unary{UnaryKind::relu}, {x}, y);
  }
  TensorId add(TensorId a, TensorId b) { return apply(Binary{BinaryKind::add}, {a, b}, shape(a)); }

  Graph finish(TensorId logits, std::int64_t class_axis) {
    Shape of_targets = shape(logits);
    const std::int64_t classes = of_targets[static_cast<std::size_t>(class_axis)];
    of_targets.erase(of_targets.begin() + class_axis);
    const TensorId targets = input(std::move(of_targets), DType::i64, classes);
    graph_.loss = graph_.add(Tensor{"loss", {}, DType::f32, TensorKind::activation, {}, {}, 0});
    graph_.add(Operation{"loss", CrossEntropy{class_axis}, {logits, targets}, {graph_.loss}, {}});
    if (!graph_.finish(batch_)) return Graph{};
    return std::move(graph_);
  }

 private:
  std::string next(const std::string& what) { return what + std::to_string(count_++); }

  Graph graph_;
  std::int64_t batch_;
  int count_ = 0;
};

// Blocks of two convolutions with batch-norm, the second's result added to the first's; images, or volumes of three
// `directions`, are halved after each.
inline Graph residual_network(int blocks, std::int64_t filters, std::int64_t extent, std::int64_t batch,
                              std::size_t directions = 2) {
  Network net(directions == 2 ? "residual" : "volumes", batch);
  const auto image = [&](std::int64_t channels) {
    Shape shape(directions + 2, extent);
    shape[0] = batch, shape[1] = channels;
    return shape;
  };
  const Ints two(directions, 2), one(directions, 1), none(directions, 0);
  TensorId x = net.input(image(4));
  for (int i = 0; i < blocks; ++i) {
    x = net.convolution(x, filters);
    x = net.add(x, net.convolution(x, filters));
    extent /= 2;
    x = net.apply(Pool{PoolKind::max, false, two, two, one, none, none}, {x}, image(filters));
  }
  extent = 1;
  x = net.apply(Pool{PoolKind::average, true, {}, {}, {}, {}, {}}, {x}, image(filters));
  x = net.apply(Reshape{}, {x}, {batch, filters});
  return net.finish(net.linear(x, 12), 1);
}

// A decoder: embedding, blocks of attention and two linear layers with layer-norm before each, a head whose weight is
// that of the embedding where it is `tied`.
inline Graph transformer(int blocks, std::int64_t width, std::int64_t heads, std::int64_t length, std::int64_t batch,
                         bool tied = false) {
  constexpr std::int64_t vocabulary = 96;
  Network net("transformer", batch);
  const TensorId ids = net.input({batch, length}, DType::i64, vocabulary);
  const TensorId table = net.parameter({vocabulary, width});
  TensorId x = net.apply(Embedding{}, {table, ids}, {batch, length, width});
  const auto split = [&](TensorId t) {
    t = net.apply(Reshape{}, {t}, {batch, length, heads, width / heads});
    return net.apply(Transpose{{0, 2, 1, 3}}, {t}, {batch, heads, length, width / heads});
  };
  for (int i = 0; i < blocks; ++i) {
    const TensorId n = net.layer_norm(x);
    const TensorId q = split(net.linear(n, width)), k = split(net.linear(n, width)), v = split(net.linear(n, width));
    TensorId y = net.apply(Attention{true, 0.125, 0.0}, {q, k, v}, {batch, heads, length, width / heads});
    y = net.apply(Transpose{{0, 2, 1, 3}}, {y}, {batch, length, heads, width / heads});
    x = net.add(x, net.linear(net.apply(Reshape{}, {y}, {batch, length, width}), width));
    const TensorId wide = net.linear(net.layer_norm(x), 4 * width);
    x = net.add(x, net.linear(net.apply(Unary{UnaryKind::gelu}, {wide}, {batch, length, 4 * width}), width));
  }
  x = net.layer_norm(x);
  return net.finish(tied ? net.apply(Linear{}, {x, table}, {batch, length, vocabulary}) : net.linear(x, vocabulary), 2);
}

}  // namespace sibyl::test
