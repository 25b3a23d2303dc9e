// Decoders: GPT-2 and GPT-3, Llama, Nemotron, of any size; what is like Llama with experts, too.
#include <fmt/format.h>

#include "models/zoo/families.h"
#include "oracle/validate/published/cells.h"
#include "oracle/validate/published/frameworks.h"
#include "oracle/validate/published/models.h"
#include "oracle/validate/published/transformer_sizes.h"

namespace sibyl::published {
namespace {

// Megatron-LM fills the vocabulary up, so that every rank has a multiple of 128 of it.
std::int64_t padded(std::int64_t vocabulary, const Row& row, FrameworkKind kind, std::vector<std::string>& assumed) {
  if (kind != FrameworkKind::megatron && kind != FrameworkKind::nemo) return vocabulary;
  const std::int64_t multiple = 128 * row.tp.value_or(1);
  const std::int64_t result = (vocabulary + multiple - 1) / multiple * multiple;
  if (result != vocabulary) assumed.push_back(fmt::format("a vocabulary of {}, padded to {}", vocabulary, result));
  return result;
}

ModelRecipe recipe_of(const Row& row, TransformerSizes& s, std::string_view family) {
  ModelRecipe recipe;
  recipe.assumed = std::move(s.assumed);
  s.vocabulary = padded(s.vocabulary, row, framework_of(row).kind, recipe.assumed);
  recipe.name = fmt::format("{} {}x{}/{}:{} ffn {} vocabulary {}", family, s.layers, s.width, s.heads, s.kv_heads,
                            s.ffn, s.vocabulary);
  recipe.dims = {{"seq", s.sequence}};
  recipe.items = items_of(row, s.sequence);
  return recipe;
}

// nanoGPT and llm.c pre-train without.
bool trains_without_dropout(const Row& row) {
  const std::string framework = lower_case(row.framework), notes = lower_case(row.notes);
  for (const std::string_view name : {"llm.c", "nanogpt", "train_gpt2"})
    if (has(framework, name)) return true;
  return has(notes, "no dropout") || has(notes, "without dropout");
}

}  // namespace

Result<std::optional<ModelRecipe>> gpt_model(const Row& row) {
  if (!is_transformer(row)) return std::nullopt;
  SIBYL_TRY(TransformerSizes s, transformer_sizes(row));
  if (s.kind != TransformerKind::decoder) return std::nullopt;
  const FrameworkRecipe said = framework_of(row);
  const FrameworkKind framework = said.kind;
  ModelRecipe recipe = recipe_of(row, s, "gpt");
  zoo::Gpt2Options options{.layers = s.layers, .width = s.width, .heads = s.heads, .seq = s.sequence};
  options.positions = s.sequence;
  options.vocabulary = s.vocabulary;
  options.ffn_width = s.ffn;
  options.fused_softmax = framework == FrameworkKind::megatron && said.apart.attention;
  const bool drops = framework != FrameworkKind::nemo && framework != FrameworkKind::fsdp &&
                     framework != FrameworkKind::jax && !trains_without_dropout(row);
  options.dropout = drops ? 0.1 : 0.0;
  recipe.assumed.push_back(drops ? "dropout of 0.1" : "no dropout");
  recipe.name += fmt::format(" dropout {} fused {}", options.dropout, options.fused_softmax);
  recipe.build = [options](zoo::Builder& b) { zoo::gpt2(b, options); };
  recipe.layers = s.layers, recipe.layer_prefix = "h.", recipe.layer_start = ".ln_1";
  return recipe;
}

Result<std::optional<ModelRecipe>> llama_model(const Row& row) {
  if (!is_transformer(row)) return std::nullopt;
  SIBYL_TRY(TransformerSizes s, transformer_sizes(row));
  if (s.kind != TransformerKind::llama && s.kind != TransformerKind::nemotron) return std::nullopt;
  ModelRecipe recipe = recipe_of(row, s, s.kind == TransformerKind::llama ? "llama" : "nemotron");
  zoo::LlamaOptions options{.layers = s.layers,
                            .width = s.width,
                            .heads = s.heads,
                            .kv_heads = s.kv_heads,
                            .ffn_width = s.ffn,
                            .seq = s.sequence};
  options.vocabulary = s.vocabulary;
  options.feed_forward = s.kind == TransformerKind::llama ? zoo::FeedForward::swiglu : zoo::FeedForward::squared_relu;
  options.biases = s.biases;
  options.tied = s.tied;
  options.head_width = s.head_width;
  options.head_norms = s.head_norms;
  options.experts = s.experts;
  if (s.head_width > 0 || s.biases || s.head_norms || s.tied)
    recipe.name += fmt::format(" heads of {} biases {} norms {} tied {}", s.head_width, s.biases, s.head_norms, s.tied);
  if (s.experts.count > 0) {
    recipe.name += fmt::format(" experts {}/{}x{}+{} behind {} normalized {}", s.experts.chosen, s.experts.count,
                               s.experts.width, s.experts.shared_width, s.experts.dense_layers, s.experts.normalized);
    recipe.assumed.emplace_back("tokens spread evenly over experts");
  }
  recipe.build = [options](zoo::Builder& b) { zoo::llama(b, options); };
  recipe.layers = s.layers, recipe.layer_prefix = "layers.", recipe.layer_start = ".input_layernorm";
  recipe.fused_attention = framework_of(row).kind != FrameworkKind::hugging_face;
  return recipe;
}

}  // namespace sibyl::published
