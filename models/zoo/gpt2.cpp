// Radford et al., "Language models are unsupervised multitask learners" (2019): pre-norm, learned positions, the output
// tied to the embedding.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double gpt2_epsilon = 1e-5;
Value block(Builder& b, Value x, const std::string& path, const AttentionOptions& attention,
            const Gpt2Options& options) {
  const std::int64_t width = options.width, inner = options.ffn_width == 0 ? 4 * width : options.ffn_width;
  const double ratio = options.dropout;
  Value y = self_attention(b, layer_norm(b, x, path + ".ln_1", gpt2_epsilon), path + ".attn.c_attn", attention);
  x = add(b, x, dropout(b, linear(b, y, path + ".attn.c_proj", width), ratio));
  y = gelu_tanh(b, linear(b, layer_norm(b, x, path + ".ln_2", gpt2_epsilon), path + ".mlp.c_fc", inner));
  return add(b, x, dropout(b, linear(b, y, path + ".mlp.c_proj", width), ratio));
}

}  // namespace

void gpt2(Builder& b, const Gpt2Options& options) {
  b.metadata("sibyl.dim.seq", std::to_string(options.seq));
  const Value ids = b.input("input_ids", {batch_extent, seq_extent}, DType::i64);
  const Value words = b.parameter("wte.weight", {options.vocabulary, options.width});
  const Value token = embedding(b, words, ids);
  const Value position = position_embedding(b, ids, "wpe.weight", options.positions, options.width);
  Value x = dropout(b, add(b, token, position), options.dropout);
  AttentionOptions attention = {
      .heads = options.heads, .dropout = options.dropout, .fused_softmax = options.fused_softmax};
  if (!options.fused_softmax) attention.mask = causal_mask(b, ids);
  for (std::int64_t i = 0; i < options.layers; ++i) x = block(b, x, "h." + std::to_string(i), attention, options);
  b.output(tied_projection(b, layer_norm(b, x, "ln_f", gpt2_epsilon), words));
}

}  // namespace sibyl::zoo
