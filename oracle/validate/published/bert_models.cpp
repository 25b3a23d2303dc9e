// Encoders: BERT pre-trained (the masked language model's head on the masked positions) or fine-tuned on SQuAD.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "models/zoo/families.h"
#include "oracle/validate/published/cells.h"
#include "oracle/validate/published/frameworks.h"
#include "oracle/validate/published/models.h"
#include "oracle/validate/published/transformer_sizes.h"

namespace sibyl::published {
namespace {

// "encoder, MLM+NSP, max_pred 20".
std::int64_t stated_predictions(const std::string& kind) {
  constexpr std::string_view word = "max_pred";
  const std::size_t at = kind.find(word);
  return at == std::string::npos ? 0 : std::strtoll(kind.c_str() + at + word.size(), nullptr, 10);
}

// Google's and NVIDIA's scripts: 20 of 128 tokens, 76 or 80 of 512; 15 % of others.
std::int64_t usual_predictions(std::int64_t sequence) {
  if (sequence == 128) return 20;
  return sequence == 512 ? 80 : std::max<std::int64_t>(1, sequence * 3 / 20);
}

}  // namespace

Result<std::optional<ModelRecipe>> bert_model(const Row& row) {
  if (!is_transformer(row)) return std::nullopt;
  SIBYL_TRY(TransformerSizes s, transformer_sizes(row));
  if (s.kind != TransformerKind::encoder) return std::nullopt;
  const FrameworkRecipe framework = framework_of(row);
  const std::string name = lower_case(row.model), kind = lower_case(row.architecture.text("kind"));
  ModelRecipe recipe;
  recipe.assumed = std::move(s.assumed);
  zoo::BertOptions options{.layers = s.layers, .width = s.width, .heads = s.heads, .seq = s.sequence};
  options.ffn_width = s.ffn;
  options.vocabulary = s.vocabulary;
  options.positions = std::max<std::int64_t>(512, s.sequence);
  options.with_mask = true;
  options.of_tensorflow = framework.kind == FrameworkKind::tensorflow;
  if (has(name, "squad") || has(kind, "squad")) {
    options.head = zoo::BertHead::span;
    recipe.optimizer = OptimizerKind::adam;
  } else {
    options.head = zoo::BertHead::masked_language_model;
    const bool everywhere = framework.kind == FrameworkKind::hugging_face || framework.every_logit;
    options.predictions = everywhere ? 0 : stated_predictions(kind);
    if (everywhere) {
      recipe.assumed.push_back("logits at every position");
    } else if (options.predictions <= 0) {
      options.predictions = usual_predictions(s.sequence);
      recipe.assumed.push_back(fmt::format("{} masked positions of {}", options.predictions, s.sequence));
    }
    options.predictions = std::min(options.predictions, s.sequence);
    recipe.optimizer = has(lower_case(row.notes), "lamb") ? OptimizerKind::lamb : OptimizerKind::adam;
  }
  recipe.name =
      fmt::format("bert {}x{}/{} ffn {} vocabulary {} head {}:{}{}", s.layers, s.width, s.heads, s.ffn, s.vocabulary,
                  static_cast<int>(options.head), options.predictions, options.of_tensorflow ? " of TensorFlow" : "");
  recipe.build = [options](zoo::Builder& b) { zoo::bert(b, options); };
  recipe.dims = {{"seq", s.sequence}};
  recipe.items = items_of(row, s.sequence);
  return recipe;
}

}  // namespace sibyl::published
