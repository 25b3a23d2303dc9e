// Devlin et al., "BERT: pre-training of deep bidirectional transformers" (2018), uncased; the small ones after Turc et
// al. (2019). Sequences are full: no padding, so no attention mask.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr double bert_epsilon = 1e-12;
constexpr double bert_dropout = 0.1;  // of every dropout

Value gelu(Builder& b, const Value& x, const BertOptions& options) {
  return options.of_tensorflow ? gelu_tanh(b, x) : gelu_erf(b, x);
}

Value norm(Builder& b, const Value& x, const std::string& name, const BertOptions& options) {
  return options.of_tensorflow ? layer_norm_of_moments(b, x, name, bert_epsilon) : layer_norm(b, x, name, bert_epsilon);
}

Value encoder_layer(Builder& b, const Value& x, const std::string& path, const BertOptions& options,
                    const AttentionOptions& of_attention) {
  const Value q = linear(b, x, path + ".attention.self.query", options.width);
  const Value k = linear(b, x, path + ".attention.self.key", options.width);
  const Value v = linear(b, x, path + ".attention.self.value", options.width);
  Value y = attention(b, q, k, v, of_attention);
  y = dropout(b, linear(b, y, path + ".attention.output.dense", options.width), bert_dropout);
  const Value middle = norm(b, add(b, y, x), path + ".attention.output.LayerNorm", options);
  const std::int64_t inner = options.ffn_width == 0 ? 4 * options.width : options.ffn_width;
  y = gelu(b, linear(b, middle, path + ".intermediate.dense", inner), options);
  y = dropout(b, linear(b, y, path + ".output.dense", options.width), bert_dropout);
  return norm(b, add(b, y, middle), path + ".output.LayerNorm", options);
}

// tanh(W x[:, 0] + c).
Value pooler(Builder& b, const Value& x, std::int64_t width) {
  const Value first = b.apply("Gather", {}, {x, b.scalar(std::int64_t{0})}, {batch_extent, width}, {{"axis", 1}});
  return tanh(b, fully_connected(b, first, "pooler.dense", width));
}

// The first `count` positions of each sequence.
Value first_positions(Builder& b, const Value& x, std::int64_t count) {
  if (count == 0) return x;
  const Shape shape = {x.shape[0], count, x.shape[2]};
  return b.apply("Slice", {}, {x, b.ints({0}), b.ints({count}), b.ints({1})}, shape);
}

Value masked_language_model(Builder& b, const Value& x, const Value& words, const BertOptions& options) {
  const Value y = gelu(b, linear(b, x, "cls.predictions.transform.dense", options.width), options);
  const Value normed = norm(b, y, "cls.predictions.transform.LayerNorm", options);
  const Value logits = tied_projection(b, normed, words);
  return add(b, logits, b.parameter("cls.predictions.bias", {words.shape[0]}));
}

}  // namespace

void bert(Builder& b, const BertOptions& options) {
  b.metadata("sibyl.dim.seq", std::to_string(options.seq));
  const std::int64_t width = options.width;
  const Value ids = b.input("input_ids", {batch_extent, seq_extent}, DType::i64);
  const Value types = b.input("token_type_ids", {batch_extent, seq_extent}, DType::i64);
  const Value words = b.parameter("embeddings.word_embeddings.weight", {options.vocabulary, width});
  const Value word = embedding(b, words, ids);
  const Value type = embedding(b, b.parameter("embeddings.token_type_embeddings.weight", {2, width}), types);
  Value x = add(b, word, type);
  x = add(b, x, position_embedding(b, ids, "embeddings.position_embeddings.weight", options.positions, width));
  x = dropout(b, norm(b, x, "embeddings.LayerNorm", options), bert_dropout);
  AttentionOptions of_attention = {.heads = options.heads, .dropout = bert_dropout};
  if (options.with_mask) of_attention.added_mask = b.input("attention_mask", {batch_extent, 1, 1, seq_extent});
  for (std::int64_t i = 0; i < options.layers; ++i)
    x = encoder_layer(b, x, "encoder.layer." + std::to_string(i), options, of_attention);
  switch (options.head) {
    case BertHead::pooler: return b.output(pooler(b, x, width));
    case BertHead::masked_language_model:
      return b.output(masked_language_model(b, first_positions(b, x, options.predictions), words, options));
    case BertHead::span: return b.output(linear(b, x, "qa_outputs", 2));
  }
}

}  // namespace sibyl::zoo
