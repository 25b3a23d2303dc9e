// Grattafiori et al., "The Llama 3 herd of models" (2024): pre-norm with RMSNorm, rotary positions, grouped queries, a
// gated feed-forward (SwiGLU: Shazeer, 2020), no biases. Qwen Team, "Qwen2.5 technical report" (2024): the same with
// biases on queries, keys and values. Jiang et al., "Mixtral of experts" (2024): experts in place of the feed-forward,
// two for a token; Dai et al., "DeepSeekMoE" (2024): more and smaller ones, and some that are shared by all tokens.
// Qwen Team, "Qwen3 technical report" (2025): no biases, norms of each head's queries and keys.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

Value feed_forward(Builder& b, const Value& x, const std::string& path, FeedForward kind, std::int64_t inner) {
  if (kind == FeedForward::squared_relu) {
    const Value positive = relu(b, linear_without_bias(b, x, path + ".up_proj", inner));
    const Value squared = b.apply("Mul", {}, {positive, positive}, positive.shape);
    return linear_without_bias(b, squared, path + ".down_proj", x.shape.back());
  }
  const Value gate = silu(b, linear_without_bias(b, x, path + ".gate_proj", inner));
  const Value up = linear_without_bias(b, x, path + ".up_proj", inner);
  const Value product = b.apply("Mul", {}, {gate, up}, up.shape);
  return linear_without_bias(b, product, path + ".down_proj", x.shape.back());
}

// The experts' weights are those of one operator, expert after expert: gate, down and up.
Value mixture(Builder& b, const Value& x, const std::string& path, const ExpertOptions& experts) {
  const std::int64_t width = x.shape.back(), count = experts.count;
  const Value scores = linear_without_bias(b, x, path + ".gate", count);
  const Shape tokens = {batch_extent, count};  // of all samples
  const Value rows = b.apply("Reshape", {}, {scores, b.ints({-1, count})}, tokens);
  const Value gate = b.parameter(path + ".experts.gate_proj.weight", {count, experts.width, width});
  const Value down = b.parameter(path + ".experts.down_proj.weight", {count, width, experts.width});
  const Value up = b.parameter(path + ".experts.up_proj.weight", {count, experts.width, width});
  const Value none;
  const Value routed = b.apply("com.microsoft:MoE", path + ".experts", {x, rows, gate, none, down, none, up}, x.shape,
                               {{"k", experts.chosen},
                                {"activation_type", std::string("silu")},
                                {"normalize_routing_weights", std::int64_t{experts.normalized}}});
  if (experts.shared_width == 0) return routed;
  return add(b, routed, feed_forward(b, x, path + ".shared_experts", FeedForward::swiglu, experts.shared_width));
}

std::int64_t head_width_of(const LlamaOptions& options) {
  return options.head_width > 0 ? options.head_width : options.width / options.heads;
}

Value grouped_attention(Builder& b, const Value& x, const std::string& path, AttentionOptions attends,
                        const LlamaOptions& options) {
  const std::int64_t head = head_width_of(options);
  const auto project = options.biases ? linear : linear_without_bias;
  const Value q = project(b, x, path + ".q_proj", head * options.heads);
  const Value k = project(b, x, path + ".k_proj", head * options.kv_heads);
  const Value v = project(b, x, path + ".v_proj", head * options.kv_heads);
  if (options.head_norms) attends.norms = HeadNorms{path + ".q_norm", path + ".k_norm", options.epsilon};
  return linear_without_bias(b, attention(b, q, k, v, attends), path + ".o_proj", options.width);
}

}  // namespace

void llama(Builder& b, const LlamaOptions& options) {
  b.metadata("sibyl.dim.seq", std::to_string(options.seq));
  const Value ids = b.input("input_ids", {batch_extent, seq_extent}, DType::i64);
  const AttentionOptions attention = {.heads = options.heads,
                                      .kv_heads = options.kv_heads,
                                      .mask = causal_mask(b, ids),
                                      .rotary = rotary_tables(b, ids, head_width_of(options), options.rotary_base)};
  const Value words = b.parameter("embed_tokens.weight", {options.vocabulary, options.width});
  Value x = embedding(b, words, ids);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::string path = "layers." + std::to_string(i);
    const Value before = rms_norm(b, x, path + ".input_layernorm", options.epsilon);
    x = add(b, x, grouped_attention(b, before, path + ".self_attn", attention, options));
    const Value normalized = rms_norm(b, x, path + ".post_attention_layernorm", options.epsilon);
    const bool dense = options.experts.count == 0 || i < options.experts.dense_layers;
    x = add(b, x,
            dense ? feed_forward(b, normalized, path + ".mlp", options.feed_forward, options.ffn_width)
                  : mixture(b, normalized, path + ".mlp", options.experts));
  }
  const Value last = rms_norm(b, x, "norm", options.epsilon);
  b.output(options.tied ? tied_projection(b, last, words)
                        : linear_without_bias(b, last, "lm_head", options.vocabulary));
}

}  // namespace sibyl::zoo
