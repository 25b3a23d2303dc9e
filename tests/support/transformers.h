// Transformers that importers do not fuse or that mix positions in other ways than attention, as ONNX models.
// Activations are B S E.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "models/zoo/builder.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::test {

struct ApartOptions {
  std::int64_t layers = 2, width = 64, heads = 4, seq = 16, vocabulary = 50;
  bool features = false;      // tokens come in as features, not as ids
  bool mixes_tokens = false;  // a layer over the sequence stands between two layers of attention (MLP-Mixer's)
};

// Causal attention whose probabilities are scaled before they meet the values: no framework's fused operation does
// that, so products, mask and softmax stay operations of their own.
inline zoo::Value attention_apart(zoo::Builder& b, const zoo::Value& x, const std::string& name, const zoo::Value& mask,
                                  const ApartOptions& o) {
  using namespace zoo;
  const std::int64_t head = o.width / o.heads;
  const auto heads_of = [&](const std::string& part, const Ints& permutation) {
    const Value y = linear_without_bias(b, x, name + "." + part, o.width);
    const Value split =
        b.apply("Reshape", {}, {y, b.ints({0, 0, o.heads, head})}, {batch_extent, seq_extent, o.heads, head});
    Shape shape;
    for (const std::int64_t axis : permutation) shape.push_back(split.shape[static_cast<std::size_t>(axis)]);
    return b.apply("Transpose", {}, {split}, shape, {{"perm", permutation}});
  };
  const Value q = heads_of("q", {0, 2, 1, 3}), k = heads_of("k", {0, 2, 3, 1}), v = heads_of("v", {0, 2, 1, 3});
  const Shape scores_shape = {batch_extent, o.heads, seq_extent, seq_extent};
  Value scores = b.apply("MatMul", name + ".scores", {q, k}, scores_shape);
  scores = b.apply("Div", {}, {scores, b.scalar(std::sqrt(static_cast<double>(head)))}, scores_shape);
  const Value low = b.scalar(static_cast<double>(std::numeric_limits<float>::lowest()));
  scores = b.apply("Where", {}, {mask, scores, low}, scores_shape);
  Value probabilities = b.apply("Softmax", {}, {scores}, scores_shape, {{"axis", -1}});
  probabilities = b.apply("Mul", {}, {probabilities, b.scalar(0.5)}, scores_shape);
  const Value mixed = b.apply("MatMul", name + ".mix", {probabilities, v}, q.shape);
  const Value back =
      b.apply("Transpose", {}, {mixed}, {batch_extent, seq_extent, o.heads, head}, {{"perm", Ints{0, 2, 1, 3}}});
  const Value joined = b.apply("Reshape", {}, {back, b.ints({0, 0, o.width})}, x.shape);
  return linear(b, joined, name + ".proj", o.width);
}

// x + (W x') with x' [B, E, S].
inline zoo::Value token_mixing(zoo::Builder& b, const zoo::Value& x, const std::string& name, const ApartOptions& o) {
  using namespace zoo;
  const Value turned = b.apply("Transpose", {}, {x}, {batch_extent, o.width, o.seq}, {{"perm", Ints{0, 2, 1}}});
  const Value mixed = linear(b, turned, name, o.seq);
  return add(b, x, b.apply("Transpose", {}, {mixed}, x.shape, {{"perm", Ints{0, 2, 1}}}));
}

inline void apart(zoo::Builder& b, const ApartOptions& o = {}) {
  using namespace zoo;
  b.metadata("sibyl.dim.seq", std::to_string(o.seq));
  const Value tokens = o.features ? b.input("tokens", {batch_extent, seq_extent, o.width})
                                  : b.input("input_ids", {batch_extent, seq_extent}, DType::i64);
  const Value words = b.parameter("words", {o.vocabulary, o.width});
  Value x = o.features ? tokens : embedding(b, words, tokens);
  x = add(b, x, position_embedding(b, tokens, "places", o.seq, o.width));
  const Value mask = causal_mask(b, tokens);
  for (std::int64_t i = 0; i < o.layers; ++i) {
    const std::string name = "layer." + std::to_string(i);
    x = add(b, x, attention_apart(b, layer_norm(b, x, name + ".norm", 1e-5), name + ".attention", mask, o));
    if (o.mixes_tokens) x = token_mixing(b, x, name + ".mixer", o);
  }
  b.output(tied_projection(b, x, words));
}

}  // namespace sibyl::test
