#include "oracle/validate/published/transformer_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace sibyl::published {
namespace {

struct Known {
  std::string_view name;  // as name_key() has it; the longest that is in the row's
  TransformerKind kind;
  std::int64_t layers, width, heads, kv_heads, ffn, vocabulary, sequence;
  std::int64_t head_width = 0;
  bool biases = false, head_norms = false;
  zoo::ExpertOptions experts = {};
  bool tied = false;
};

constexpr auto encoder = TransformerKind::encoder, decoder = TransformerKind::decoder, llama = TransformerKind::llama,
               nemotron = TransformerKind::nemotron;

// Sources: the papers and the released configurations. GPT-3's smaller sizes by the head counts that implementations
// take (its paper's do not divide the widths).
// clang-format off
constexpr auto known = std::to_array<Known>({
    {"bertbase", encoder, 12, 768, 12, 12, 3072, 30522, 0},
    {"bertlarge", encoder, 24, 1024, 16, 16, 4096, 30522, 0},
    {"distilbert", encoder, 6, 768, 12, 12, 3072, 30522, 0},
    {"robertabase", encoder, 12, 768, 12, 12, 3072, 50265, 0},
    {"robertalarge", encoder, 24, 1024, 16, 16, 4096, 50265, 0},
    {"gpt2", decoder, 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2small", decoder, 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2med", decoder, 24, 1024, 16, 16, 4096, 50257, 1024},
    {"gpt2117m", decoder, 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2124m", decoder, 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2345m", decoder, 24, 1024, 16, 16, 4096, 50257, 1024},
    {"gpt2large", decoder, 36, 1280, 20, 20, 5120, 50257, 1024},
    {"gpt2774m", decoder, 36, 1280, 20, 20, 5120, 50257, 1024},
    {"gpt2xl", decoder, 48, 1600, 25, 25, 6400, 50257, 1024},
    {"gpt21.5b", decoder, 48, 1600, 25, 25, 6400, 50257, 1024},
    {"distilgpt2", decoder, 6, 768, 12, 12, 3072, 50257, 1024},
    {"gpt3125m", decoder, 12, 768, 12, 12, 3072, 50257, 2048},
    {"gpt3350m", decoder, 24, 1024, 16, 16, 4096, 50257, 2048},
    {"gpt3760m", decoder, 24, 1536, 16, 16, 6144, 50257, 2048},
    {"gpt31.3b", decoder, 24, 2048, 16, 16, 8192, 50257, 2048},
    {"gpt32.7b", decoder, 32, 2560, 32, 32, 10240, 50257, 2048},
    {"gpt36.7b", decoder, 32, 4096, 32, 32, 16384, 50257, 2048},
    {"gpt313b", decoder, 40, 5120, 40, 40, 20480, 50257, 2048},
    {"gpt3175b", decoder, 96, 12288, 96, 96, 49152, 51200, 2048},
    {"mtnlg530b", decoder, 105, 20480, 128, 128, 81920, 51200, 2048},
    {"opt125m", decoder, 12, 768, 12, 12, 3072, 50272, 2048},
    {"opt350m", decoder, 24, 1024, 16, 16, 4096, 50272, 2048},
    {"opt1.3b", decoder, 24, 2048, 32, 32, 8192, 50272, 2048},
    {"opt2.7b", decoder, 32, 2560, 32, 32, 10240, 50272, 2048},
    {"opt6.7b", decoder, 32, 4096, 32, 32, 16384, 50272, 2048},
    {"opt13b", decoder, 40, 5120, 40, 40, 20480, 50272, 2048},
    {"opt30b", decoder, 48, 7168, 56, 56, 28672, 50272, 2048},
    {"opt66b", decoder, 64, 9216, 72, 72, 36864, 50272, 2048},
    {"opt175b", decoder, 96, 12288, 96, 96, 49152, 50272, 2048},
    {"bloom560m", decoder, 24, 1024, 16, 16, 4096, 250880, 2048},
    {"bloom7b1", decoder, 30, 4096, 32, 32, 16384, 250880, 2048},
    {"bloom7.1b", decoder, 30, 4096, 32, 32, 16384, 250880, 2048},
    {"bloom176b", decoder, 70, 14336, 112, 112, 57344, 250880, 2048},
    {"llama7b", llama, 32, 4096, 32, 32, 11008, 32000, 2048},
    {"llama13b", llama, 40, 5120, 40, 40, 13824, 32000, 2048},
    {"llama30b", llama, 60, 6656, 52, 52, 17920, 32000, 2048},
    {"llama33b", llama, 60, 6656, 52, 52, 17920, 32000, 2048},
    {"llama65b", llama, 80, 8192, 64, 64, 22016, 32000, 2048},
    {"llama27b", llama, 32, 4096, 32, 32, 11008, 32000, 4096},
    {"llama213b", llama, 40, 5120, 40, 40, 13824, 32000, 4096},
    {"llama270b", llama, 80, 8192, 64, 8, 28672, 32000, 4096},
    {"codellama34b", llama, 48, 8192, 64, 8, 22016, 32000, 4096},
    {"llama38b", llama, 32, 4096, 32, 8, 14336, 128256, 8192},
    {"llama370b", llama, 80, 8192, 64, 8, 28672, 128256, 8192},
    {"llama318b", llama, 32, 4096, 32, 8, 14336, 128256, 8192},
    {"llama3170b", llama, 80, 8192, 64, 8, 28672, 128256, 8192},
    {"llama31405b", llama, 126, 16384, 128, 8, 53248, 128256, 8192},
    {"llama3405b", llama, 126, 16384, 128, 8, 53248, 128256, 8192},
    {"llama321b", llama, 16, 2048, 32, 8, 8192, 128256, 8192, 0, false, false, {}, true},
    {"llama323b", llama, 28, 3072, 24, 8, 8192, 128256, 8192, 0, false, false, {}, true},
    {"llama3370b", llama, 80, 8192, 64, 8, 28672, 128256, 8192},
    {"tinyllama1.1b", llama, 22, 2048, 32, 4, 5632, 32000, 2048},
    {"mistral7b", llama, 32, 4096, 32, 8, 14336, 32000, 4096},
    {"mixtral8x7b", llama, 32, 4096, 32, 8, 14336, 32000, 4096, 0, false, false,
     {.count = 8, .chosen = 2, .width = 14336}},
    {"mixtral8x22b", llama, 56, 6144, 48, 8, 16384, 32000, 4096, 0, false, false,
     {.count = 8, .chosen = 2, .width = 16384}},
    {"deepseekmoe16b", llama, 28, 2048, 16, 16, 10944, 102400, 4096, 0, false, false,
     {.count = 64, .chosen = 6, .width = 1408, .normalized = false, .shared_width = 2816, .dense_layers = 1}},
    {"qwen250.5b", llama, 24, 896, 14, 2, 4864, 151936, 4096, 0, true, false, {}, true},
    {"qwen251.5b", llama, 28, 1536, 12, 2, 8960, 151936, 4096, 0, true, false, {}, true},
    {"qwen253b", llama, 36, 2048, 16, 2, 11008, 151936, 4096, 0, true, false, {}, true},
    {"qwen257b", llama, 28, 3584, 28, 4, 18944, 152064, 4096, 0, true},
    {"qwen2514b", llama, 48, 5120, 40, 8, 13824, 152064, 4096, 0, true},
    {"qwen2532b", llama, 64, 5120, 40, 8, 27648, 152064, 4096, 0, true},
    {"qwen2572b", llama, 80, 8192, 64, 8, 29568, 152064, 4096, 0, true},
    {"qwen27b", llama, 28, 3584, 28, 4, 18944, 152064, 4096, 0, true},
    {"qwen272b", llama, 80, 8192, 64, 8, 29568, 152064, 4096, 0, true},
    {"qwen38b", llama, 36, 4096, 32, 8, 12288, 151936, 4096, 128, false, true},
    {"qwen314b", llama, 40, 5120, 40, 8, 17408, 151936, 4096, 128, false, true},
    {"qwen332b", llama, 64, 5120, 64, 8, 25600, 151936, 4096, 128, false, true},
    {"qwen330ba3b", llama, 48, 2048, 32, 4, 6144, 151936, 4096, 128, false, true,
     {.count = 128, .chosen = 8, .width = 768}},
    {"qwen3235ba22b", llama, 94, 4096, 64, 4, 12288, 151936, 4096, 128, false, true,
     {.count = 128, .chosen = 8, .width = 1536}},
    {"nemotron8b", nemotron, 32, 4096, 32, 32, 16384, 256000, 4096},
    {"nemotron22b", nemotron, 40, 6144, 48, 48, 24576, 256000, 4096},
    {"nemotron415b", nemotron, 32, 6144, 48, 8, 24576, 256000, 4096},
    {"nemotron340b", nemotron, 96, 18432, 96, 8, 73728, 256000, 4096},
    {"nemotron4340b", nemotron, 96, 18432, 96, 8, 73728, 256000, 4096},
});
// clang-format on

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Like normalized(), but 1.3 and 13 billions or millions stay different numbers; versions lose their points.
std::string name_key(std::string_view name) {
  const std::string lower = lower_case(name);
  std::string key;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    std::size_t end = i + 1;
    while (end < lower.size() && is_digit(lower[end])) ++end;
    const bool counts = end > i + 1 && end < lower.size() && (lower[end] == 'b' || lower[end] == 'm');
    if (lower[i] == '.' && i > 0 && is_digit(lower[i - 1]) && counts)
      key += '.';
    else
      key += normalized(lower.substr(i, 1));
  }
  return key;
}

// The entry with the longest name that is in this one.
const Known* longest_within(const std::string& name) {
  const Known* best = nullptr;
  for (const Known& entry : known) {
    const std::size_t at = name.find(entry.name);
    if (at == std::string::npos || (best && entry.name.size() <= best->name.size())) continue;
    // Another size or version that only begins alike: "gpt2" in "gpt20b" and "gpt2.7b".
    const std::size_t end = at + entry.name.size();
    const bool number_goes_on =
        end < name.size() && (is_digit(name[end]) || name[end] == '.') && is_digit(entry.name.back());
    if (!number_goes_on) best = &entry;
  }
  return best;
}

// Some names hold others' of which they are no size.
const Known* known_by_name(const std::string& model) {
  const std::string key = name_key(model);
  for (const std::string_view other :
       {"albert", "deberta", "visualbert", "vilbert", "hubert", "camembert", "xlm", "nemotronh"})
    if (key.find(other) != std::string::npos) return nullptr;
  return longest_within(key);
}

TransformerKind kind_of(const Row& row, const Known* entry) {
  const Architecture& a = row.architecture;
  const std::string activation = normalized(a.text("act")), name = normalized(row.model);
  const bool encodes = a.flag("bert") || lower_case(a.text("kind")).find("encoder") != std::string::npos;
  if (encodes || name.find("bert") != std::string::npos) return TransformerKind::encoder;
  if (activation == "swiglu" || activation == "silu") return TransformerKind::llama;
  if (activation.starts_with("squaredrelu") || activation == "relu2") return TransformerKind::nemotron;
  if (activation.empty() && entry) return entry->kind;
  return name.find("llama") != std::string::npos ? TransformerKind::llama : TransformerKind::decoder;
}

// Transformers that no recipe builds; taken for plain decoders they would be priced wrong.
Result<void> check_modelled(const Row& row) {
  const Architecture& a = row.architecture;
  const std::string name = normalized(row.model), kind = lower_case(a.text("kind"));
  const auto named = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (named("switch") || named("gptoss") || named("deepseekv"))
    return fail(fmt::format("the model '{}' has parts that no recipe builds", row.model));
  const bool t5 = named("t5") && !named("pt5");  // nor GPT-530B, nor OPT
  if (t5 || named("bart") || named("gnmt") || kind.find("encoder-decoder") != std::string::npos)
    return fail("encoders with decoders are not modelled");
  if (named("swin") || a.has("patch")) return fail("no recipe for this vision transformer");
  return {};
}

Result<void> check(const TransformerSizes& s) {
  if (s.layers == 0 || s.width == 0 || s.heads == 0)
    return fail("the source does not state the model's layers, width and heads");
  if (s.sequence == 0) return fail("the source does not state how long sequences are");
  constexpr std::int64_t most_layers = 10'000, most_width = 1 << 20, most_sequence = 1 << 24;
  const zoo::ExpertOptions& e = s.experts;
  const std::int64_t widest = std::max({s.width, s.heads, s.head_width, e.count, e.width, e.shared_width});
  if (std::max(s.layers, e.dense_layers) > most_layers || widest > most_width || s.sequence > most_sequence ||
      s.ffn > 16 * most_width || s.vocabulary > 16 * most_width)
    return fail(
        fmt::format("{} layers of width {} over {} tokens are no known transformer", s.layers, s.width, s.sequence));
  const bool gated = s.kind == TransformerKind::llama || s.kind == TransformerKind::nemotron;
  if (s.head_width > 0 && !gated) return fail("heads that are not together as wide as the model are not modelled here");
  if ((s.head_width == 0 && s.width % s.heads != 0) || s.heads % s.kv_heads != 0)
    return fail(fmt::format("a width of {} is not divided by {} heads and {} of keys", s.width, s.heads, s.kv_heads));
  return {};
}

// As configurations of Hugging Face, Megatron-Core and papers call them.
std::optional<std::int64_t> first_of(const Architecture& a, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto value = a.integer(key)) return value;
  return std::nullopt;
}

// Of each layer's experts: what is stated, or known of the model's name.
Result<void> set_experts(const Row& row, const Known* entry, TransformerSizes& s) {
  const Architecture& a = row.architecture;
  if (entry) s.experts = entry->experts;
  const auto count = first_of(a, {"experts", "num_experts", "n_experts", "num_local_experts", "n_routed_experts"});
  if (count.value_or(1) > 1) {
    const bool other = s.experts.count != *count;
    s.experts.count = *count;
    const auto chosen = first_of(a, {"top_k", "topk", "experts_per_token", "num_experts_per_tok"});
    if (other && !chosen) return fail("the source does not state how many experts a token goes to");
    s.experts.chosen = chosen.value_or(s.experts.chosen);
    const auto width = first_of(a, {"expert_ffn", "moe_ffn", "moe_intermediate_size", "moe_ffn_hidden_size"});
    s.experts.width = width.value_or(other ? s.ffn : s.experts.width);
    s.experts.shared_width = first_of(a, {"shared_ffn", "shared_expert_ffn"}).value_or(s.experts.shared_width);
    s.experts.dense_layers = first_of(a, {"dense_layers", "first_k_dense_replace"}).value_or(s.experts.dense_layers);
  }
  if (first_of(a, {"moe_layer_freq", "expert_interval"}).value_or(1) > 1)
    return fail("experts in some layers alone are not modelled");
  const std::string name = normalized(row.model);
  if (s.experts.count == 0 && (name.find("moe") != std::string::npos || name.find("mixtral") != std::string::npos))
    return fail("the source does not state the model's experts");
  if (s.experts.count > 0 && s.experts.chosen > s.experts.count)
    return fail(fmt::format("a token cannot go to {} of {} experts", s.experts.chosen, s.experts.count));
  if (s.experts.count > 0 && s.kind != TransformerKind::llama)
    return fail("experts whose feed-forward is not gated are not modelled");
  return {};
}

}  // namespace

bool is_transformer(const Row& row) {
  const Architecture& a = row.architecture;
  if (a.has("cnn")) return false;
  return (a.has("layers") && (a.has("hidden") || a.has("heads"))) || known_by_name(row.model) != nullptr ||
         lower_case(row.family) == "transformer";
}

Result<TransformerSizes> transformer_sizes(const Row& row) {
  SIBYL_CHECK(check_modelled(row));
  const Known* entry = known_by_name(row.model);
  TransformerSizes s;
  s.kind = kind_of(row, entry);
  bool by_name = false;
  const auto size = [&](const char* key, std::int64_t Known::*value, std::int64_t otherwise) {
    if (const auto stated = row.architecture.integer(key)) return *stated;
    by_name = by_name || (entry && entry->*value > 0);
    return entry && entry->*value > 0 ? entry->*value : otherwise;
  };
  s.layers = size("layers", &Known::layers, 0);
  s.width = size("hidden", &Known::width, 0);
  s.heads = size("heads", &Known::heads, 0);
  s.vocabulary = size("vocab", &Known::vocabulary, 50257);
  if (by_name) s.assumed.push_back(fmt::format("sizes published under the name {}", row.model));
  if (!row.architecture.has("vocab") && !entry) s.assumed.push_back("a vocabulary of 50257");
  // What the row does not state is the named model's where it is that model by what it does.
  const bool is_entry = entry && s.layers == entry->layers && s.width == entry->width && s.heads == entry->heads;
  s.kv_heads = row.architecture.integer("kv_heads").value_or(is_entry ? entry->kv_heads : s.heads);
  s.ffn = size("ffn", &Known::ffn, 4 * s.width);
  s.head_width = row.architecture.integer("head_dim").value_or(is_entry ? entry->head_width : 0);
  if (s.head_width > 0 && s.width / s.head_width == s.heads && s.width % s.head_width == 0) s.head_width = 0;
  s.biases = is_entry && entry->biases;
  s.head_norms = is_entry && entry->head_norms;
  s.tied = is_entry && entry->tied;
  if (row.sequence_length)
    s.sequence = *row.sequence_length;
  else
    s.sequence = size("seq", &Known::sequence, 0);
  SIBYL_CHECK(set_experts(row, is_entry ? entry : nullptr, s));
  SIBYL_CHECK(check(s));
  return s;
}

double items_of(const Row& row, std::int64_t sequence) {
  return lower_case(row.unit).find("token") != std::string::npos ? static_cast<double>(sequence) : 1.0;
}

}  // namespace sibyl::published
