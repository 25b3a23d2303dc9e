// Grattafiori et al., "The Llama 3 herd of models" (2024): pre-norm with RMSNorm, rotary positions, grouped queries, a
// gated feed-forward (SwiGLU: Shazeer, 2020), no biases. Qwen Team, "Qwen2.5 technical report" (2024): the same with
// biases on queries, keys and values.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

Value feed_forward(Builder& b, const Value& x, const std::string& path, const LlamaOptions& options) {
  const std::int64_t inner = options.ffn_width;
  if (options.feed_forward == FeedForward::squared_relu) {
    const Value positive = relu(b, linear_without_bias(b, x, path + ".up_proj", inner));
    const Value squared = b.apply("Mul", {}, {positive, positive}, positive.shape);
    return linear_without_bias(b, squared, path + ".down_proj", x.shape.back());
  }
  const Value gate = silu(b, linear_without_bias(b, x, path + ".gate_proj", inner));
  const Value up = linear_without_bias(b, x, path + ".up_proj", inner);
  const Value product = b.apply("Mul", {}, {gate, up}, up.shape);
  return linear_without_bias(b, product, path + ".down_proj", x.shape.back());
}

Value grouped_attention(Builder& b, const Value& x, const std::string& path, const AttentionOptions& options,
                        bool biases) {
  const std::int64_t width = x.shape.back(), kv_width = width / options.heads * options.kv_heads;
  const auto project = biases ? linear : linear_without_bias;
  const Value q = project(b, x, path + ".q_proj", width);
  const Value k = project(b, x, path + ".k_proj", kv_width);
  const Value v = project(b, x, path + ".v_proj", kv_width);
  return linear_without_bias(b, attention(b, q, k, v, options), path + ".o_proj", width);
}

}  // namespace

void llama(Builder& b, const LlamaOptions& options) {
  b.metadata("sibyl.dim.seq", std::to_string(options.seq));
  const Value ids = b.input("input_ids", {batch_extent, seq_extent}, DType::i64);
  const AttentionOptions attention = {
      .heads = options.heads,
      .kv_heads = options.kv_heads,
      .mask = causal_mask(b, ids),
      .rotary = rotary_tables(b, ids, options.width / options.heads, options.rotary_base)};
  const Value words = b.parameter("embed_tokens.weight", {options.vocabulary, options.width});
  Value x = embedding(b, words, ids);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::string path = "layers." + std::to_string(i);
    const Value before = rms_norm(b, x, path + ".input_layernorm", options.epsilon);
    x = add(b, x, grouped_attention(b, before, path + ".self_attn", attention, options.biases));
    const Value normalized = rms_norm(b, x, path + ".post_attention_layernorm", options.epsilon);
    x = add(b, x, feed_forward(b, normalized, path + ".mlp", options));
  }
  const Value last = rms_norm(b, x, "norm", options.epsilon);
  b.output(options.tied ? tied_projection(b, last, words)
                        : linear_without_bias(b, last, "lm_head", options.vocabulary));
}

}  // namespace sibyl::zoo
