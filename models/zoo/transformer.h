// The layers of transformers, taken apart as torch.onnx does it: GELU as its formula, attention as two matrix products
// and a softmax.
//
// Activations are B S E.
#pragma once

#include <optional>
#include <string>

#include "models/zoo/builder.h"

namespace sibyl::zoo {

Value layer_norm(Builder& b, const Value& x, const std::string& name, double epsilon);

// The same as TensorFlow spells it: tf.nn.moments, then tf.nn.batch_normalization, which folds the scale into the root.
Value layer_norm_of_moments(Builder& b, const Value& x, const std::string& name, double epsilon);

Value rms_norm(Builder& b, const Value& x, const std::string& name, double epsilon);  // x / sqrt(mean(x^2) + eps) scale

// x[..., K] -> [..., features]: MatMul with a [K, features] weight, then Add.
Value linear(Builder& b, const Value& x, const std::string& name, std::int64_t features);
Value linear_without_bias(Builder& b, const Value& x, const std::string& name, std::int64_t features);

// The logits of a language model whose output weight is its embedding table[V, E].
Value tied_projection(Builder& b, const Value& x, const Value& table);

Value gelu_erf(Builder& b, const Value& x);   // x Phi(x), exactly
Value gelu_tanh(Builder& b, const Value& x);  // its approximation, GPT-2's
Value silu(Builder& b, const Value& x);       // x sigmoid(x)

Value to_float(Builder& b, const Value& x);    // f32
Value to_integer(Builder& b, const Value& x);  // i64, towards zero

Value embedding(Builder& b, const Value& table, const Value& ids);
// The length of ids[B, S], as an i64 tensor of one element.
Value sequence_length(Builder& b, const Value& ids);
Value position_ids(Builder& b, const Value& ids);  // 0..S-1
// Rows 0..S-1 of a new table[positions, width]: [1, S, width].
Value position_embedding(Builder& b, const Value& ids, const std::string& name, std::int64_t positions,
                         std::int64_t width);
// [1, 1, S, S], true where a token may look: at itself and before.
Value causal_mask(Builder& b, const Value& ids);

// Su et al., "RoFormer: enhanced transformer with rotary position embedding" (2021), in halves, as Hugging Face's
// models: cos and sin of position * base^(-2i / D), each [S, D] with the D / 2 angles twice.
struct RotaryTables {
  Value cos, sin;
};
RotaryTables rotary_tables(Builder& b, const Value& ids, std::int64_t head_width, double base);
// x[B, H, S, D] with each pair (x_i, x_{i + D/2}) turned by its angle.
Value rotate(Builder& b, const Value& x, const RotaryTables& tables);

// RMS norms of every head's queries and keys, before both are turned (Qwen 3).
struct HeadNorms {
  std::string queries, keys;  // names
  double epsilon;
};

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;             // of grouped queries: keys and values have so many; 0: as many as queries
  double dropout = 0.0;                  // of the probabilities
  std::optional<Value> mask = {};        // booleans, true where a token may look
  std::optional<Value> added_mask = {};  // instead: what is added to the scores
  bool fused_softmax = false;            // scale and mask are done by the softmax's own kernel: no operations for them
  std::optional<RotaryTables> rotary = {};
  bool scaled = true;  // by the root of a head's width
  std::optional<HeadNorms> norms = {};
};
// softmax(q k^T / sqrt(head width)) v over heads; q and the result are B S E, E the width of all heads, k and v too or
// narrower with fewer heads.
Value attention(Builder& b, const Value& q, const Value& k, const Value& v, const AttentionOptions& options);
// The same where one linear layer `name` gives q, k and v.
Value self_attention(Builder& b, const Value& x, const std::string& name, const AttentionOptions& options);

}  // namespace sibyl::zoo
