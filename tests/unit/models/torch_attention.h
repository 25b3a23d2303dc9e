// torch.nn.MultiheadAttention in tests, as torch.onnx spells it: tokens in front, heads folded into the batch.
#pragma once

#include <utility>
#include <vector>

#include "tests/unit/models/graph_builder.h"

namespace sibyl::test {

// How q, k and v come out of their one layer: PyTorch 1 takes slices of its features, PyTorch 2 gives the three an
// axis of their own, and selects.
enum class Packing { slices, selected };
// need_weights: products of [B*H, S, D]. Without it heads become an axis again just before them.
enum class Products { folded, by_heads };

// Self-attention over 6 tokens of 16 features in 4 heads, with both projections.
struct TorchAttention {
  std::int64_t samples = 2;
  Packing packing = Packing::slices;
  Products products = Products::folded;
  GraphBuilder b = {};
  TensorId joint_weight = {};

  TensorId at(TensorId t, std::size_t batch_axis) {
    b.graph.at(t).batch_axis = batch_axis;
    return t;
  }
  TensorId reshape(TensorId x, Shape shape, std::size_t batch_axis) {
    return at(b.reshape(x, std::move(shape)), batch_axis);
  }
  TensorId transpose(TensorId x, Ints permutation, std::size_t batch_axis) {
    return at(b.transpose(x, std::move(permutation)), batch_axis);
  }

  // The graph as the file has it, with a loss behind it.
  Graph raw() {
    const TensorId x = b.input({samples, 6, 16});
    joint_weight = b.parameter({16, 48});
    const TensorId product = at(b.matmul(transpose(x, {1, 0, 2}, 1), joint_weight), 1);
    const std::vector<TensorId> qkv = parts(at(b.add(b.parameter({48}), product), 1));
    const TensorId q = b.mul(heads(qkv[0]), 0.5), k = heads(qkv[1]), v = heads(qkv[2]);
    const bool folded = products == Products::folded;
    const TensorId keys = transpose(k, folded ? Ints{0, 2, 1} : Ints{0, 1, 3, 2}, 0);
    const TensorId mixed = b.matmul(b.softmax(b.matmul(q, keys)), v);
    const TensorId tokens = transpose(mixed, folded ? Ints{1, 0, 2} : Ints{2, 0, 1, 3}, 1);
    const TensorId rows = b.matmul(reshape(tokens, {6 * samples, 16}, 0), b.parameter({16, 16}));
    const TensorId projected = reshape(b.add(rows, b.parameter({16})), {6, samples, 16}, 1);
    const TensorId y = transpose(projected, {1, 0, 2}, 0);
    b.graph.loss = b.op(MeanSquaredError{}, {y, b.input({samples, 6, 16})}, {});
    return b.finish({b.graph.loss}, samples);
  }

 private:
  // [S, B, 3 E] -> three of [S, B, E]
  std::vector<TensorId> parts(TensorId joint) {
    std::vector<TensorId> qkv;
    if (packing == Packing::slices) {
      for (const std::int64_t start : {0, 16, 32})
        qkv.push_back(at(b.op(Slice{{2}, {start}, {start + 16}, {1}}, {joint}, {6, samples, 16}), 1));
      return qkv;
    }
    const TensorId apart = reshape(reshape(joint, {6, samples, 3, 16}, 1), {1, 6, samples, 3, 16}, 2);
    const TensorId three = reshape(transpose(apart, {3, 1, 2, 0, 4}, 2), {3, 6, samples, 16}, 2);
    for (const double i : {0.0, 1.0, 2.0})
      qkv.push_back(at(b.op(Gather{0}, {three, b.constant(i)}, {6, samples, 16}), 1));
    return qkv;
  }
  // [S, B, E] -> [B H, S, D], or [B, H, S, D]
  TensorId heads(TensorId x) {
    const TensorId folded = transpose(reshape(x, {6, 4 * samples, 4}, 1), {1, 0, 2}, 0);
    return products == Products::folded ? folded : reshape(folded, {samples, 4, 6, 4}, 0);
  }
};

}  // namespace sibyl::test
