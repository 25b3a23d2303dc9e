// Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer" (2019), version
// 1.0: encoder and decoder with RMS-norm before each part, no biases but those of relative positions, scores that are
// not scaled, ReLU between, and one table for both embeddings and the head.
#include <cmath>
#include <limits>

#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double t5_epsilon = 1e-6;
constexpr double t5_dropout = 0.1;  // of every dropout
constexpr std::int64_t buckets = 32;
constexpr std::int64_t farthest = 128;  // distances from here on share a bucket

Value with(Builder& b, std::string_view op_type, const Value& x, std::int64_t y) {
  return b.apply(op_type, {}, {x, b.scalar(y)}, x.shape);
}

// Up to half of the buckets hold one distance each, the others ever more, logarithmically.
Value bucket_of_distance(Builder& b, const Value& distance, std::int64_t count) {
  const std::int64_t exact = count / 2;
  const Value past = to_float(b, with(b, "Max", distance, 1));
  const Value log =
      b.apply("Log", {}, {b.apply("Div", {}, {past, b.scalar(static_cast<double>(exact))}, past.shape)}, past.shape);
  const double scale =
      static_cast<double>(count - exact) / std::log(static_cast<double>(farthest) / static_cast<double>(exact));
  const Value steps = to_integer(b, b.apply("Mul", {}, {log, b.scalar(scale)}, log.shape));
  const Value large = with(b, "Min", with(b, "Add", steps, exact), count - 1);
  const Value near = b.apply("Less", {}, {distance, b.scalar(exact)}, distance.shape);
  return b.apply("Where", {}, {near, distance, large}, distance.shape);
}

// [S, S] of keys less queries: an encoder tells before from after, a decoder looks back only.
Value bucket_ids(Builder& b, const Value& ids, bool bidirectional) {
  const Value positions = position_ids(b, ids);
  const std::int64_t extent = ids.shape[1];
  const Value keys = b.apply("Unsqueeze", {}, {positions, b.ints({0})}, {1, extent});
  const Value queries = b.apply("Unsqueeze", {}, {positions, b.ints({1})}, {extent, 1});
  const Value ahead = b.apply("Sub", {}, {keys, queries}, {extent, extent});
  if (!bidirectional) return bucket_of_distance(b, with(b, "Max", with(b, "Mul", ahead, -1), 0), buckets);
  const Value distance = b.apply("Abs", {}, {ahead}, ahead.shape);
  const Value after = to_integer(b, b.apply("Greater", {}, {ahead, b.scalar(std::int64_t{0})}, ahead.shape));
  return b.apply("Add", {}, {bucket_of_distance(b, distance, buckets / 2), with(b, "Mul", after, buckets / 2)},
                 ahead.shape);
}

// [1, heads, S, S], added to the scores of every layer of a stack; a decoder's hides what is to come.
Value position_bias(Builder& b, const Value& ids, const std::string& stack, std::int64_t heads, bool decoder) {
  const std::string name = stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  const Value table = b.parameter(name, {buckets, heads});
  const Value by_place = embedding(b, table, bucket_ids(b, ids, !decoder));
  const std::int64_t extent = ids.shape[1];
  const Value by_head = b.apply("Transpose", {}, {by_place}, {heads, extent, extent}, {{"perm", Ints{2, 0, 1}}});
  const Value bias = b.apply("Unsqueeze", {}, {by_head, b.ints({0})}, {1, heads, extent, extent});
  if (!decoder) return bias;
  const Value lowest = b.scalar(static_cast<double>(std::numeric_limits<float>::lowest()));
  return b.apply("Where", {}, {causal_mask(b, ids), bias, lowest}, bias.shape);
}

// Queries of x look at `memory`: x's own stack, or the encoder's result.
Value attend(Builder& b, const Value& x, const Value& memory, const std::string& path,
             const AttentionOptions& options) {
  const std::int64_t width = x.shape.back();
  const Value q = linear_without_bias(b, x, path + ".q", width);
  const Value k = linear_without_bias(b, memory, path + ".k", width);
  const Value v = linear_without_bias(b, memory, path + ".v", width);
  return linear_without_bias(b, attention(b, q, k, v, options), path + ".o", width);
}

Value feed_forward(Builder& b, const Value& x, const std::string& path, std::int64_t inner) {
  const Value wide = relu(b, linear_without_bias(b, x, path + ".wi", inner));
  return linear_without_bias(b, dropout(b, wide, t5_dropout), path + ".wo", x.shape.back());
}

// `encoded`: for a decoder, what the encoder made of its own tokens.
Value stack(Builder& b, const Value& ids, const Value& words, const std::string& name, const T5Options& options,
            const Value* encoded) {
  AttentionOptions own = {.heads = options.heads, .dropout = t5_dropout, .scaled = false};
  const AttentionOptions across = own;
  own.added_mask = position_bias(b, ids, name, options.heads, encoded != nullptr);
  Value x = dropout(b, embedding(b, words, ids), t5_dropout);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    int part = 0;
    const std::string block = name + ".block." + std::to_string(i) + ".layer.";
    // x + dropout(f(norm(x)))
    const auto add_part = [&](const std::string& kind, auto&& f) {
      const std::string path = block + std::to_string(part++);
      const Value y = f(rms_norm(b, x, path + ".layer_norm", t5_epsilon), path + kind);
      x = add(b, x, dropout(b, y, t5_dropout));
    };
    add_part(".SelfAttention", [&](const Value& y, const std::string& path) { return attend(b, y, y, path, own); });
    if (encoded)
      add_part(".EncDecAttention",
               [&](const Value& y, const std::string& path) { return attend(b, y, *encoded, path, across); });
    add_part(".DenseReluDense",
             [&](const Value& y, const std::string& path) { return feed_forward(b, y, path, options.ffn_width); });
  }
  return dropout(b, rms_norm(b, x, name + ".final_layer_norm", t5_epsilon), t5_dropout);
}

}  // namespace

void t5(Builder& b, const T5Options& options) {
  b.metadata("sibyl.dim.seq", std::to_string(options.seq));
  b.metadata("sibyl.dim.decoder_seq", std::to_string(options.decoder_seq));
  const Value ids = b.input("input_ids", {batch_extent, seq_extent}, DType::i64);
  const Value decoder_ids = b.input("decoder_input_ids", {batch_extent, decoder_seq_extent}, DType::i64);
  const Value words = b.parameter("shared.weight", {options.vocabulary, options.width});
  const Value encoded = stack(b, ids, words, "encoder", options, nullptr);
  const Value decoded = stack(b, decoder_ids, words, "decoder", options, &encoded);
  const double scale = 1.0 / std::sqrt(static_cast<double>(options.width));
  b.output(tied_projection(b, b.apply("Mul", {}, {decoded, b.scalar(scale)}, decoded.shape), words));
}

}  // namespace sibyl::zoo
