#include "oracle/validate/published/transformer_sizes.h"

#include <fmt/format.h>

#include <array>

namespace sibyl::published {
namespace {

struct Known {
  std::string_view name;  // normalized; the longest that begins the row's
  TransformerKind kind;
  std::int64_t layers, width, heads, kv_heads, ffn, vocabulary, sequence;
};

// Sources: the papers and the released configurations.
constexpr auto known = std::to_array<Known>({
    {"bertbase", TransformerKind::encoder, 12, 768, 12, 12, 3072, 30522, 0},
    {"bertlarge", TransformerKind::encoder, 24, 1024, 16, 16, 4096, 30522, 0},
    {"gpt2", TransformerKind::decoder, 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2small", TransformerKind::decoder, 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2med", TransformerKind::decoder, 24, 1024, 16, 16, 4096, 50257, 1024},
    {"gpt2large", TransformerKind::decoder, 36, 1280, 20, 20, 5120, 50257, 1024},
    {"gpt2xl", TransformerKind::decoder, 48, 1600, 25, 25, 6400, 50257, 1024},
    {"gpt3175b", TransformerKind::decoder, 96, 12288, 96, 96, 49152, 51200, 2048},
    {"llama7b", TransformerKind::llama, 32, 4096, 32, 32, 11008, 32000, 2048},
    {"llama13b", TransformerKind::llama, 40, 5120, 40, 40, 13824, 32000, 2048},
    {"llama65b", TransformerKind::llama, 80, 8192, 64, 64, 22016, 32000, 2048},
    {"llama27b", TransformerKind::llama, 32, 4096, 32, 32, 11008, 32000, 4096},
    {"llama213b", TransformerKind::llama, 40, 5120, 40, 40, 13824, 32000, 4096},
    {"llama270b", TransformerKind::llama, 80, 8192, 64, 8, 28672, 32000, 4096},
    {"llama38b", TransformerKind::llama, 32, 4096, 32, 8, 14336, 128256, 8192},
    {"llama370b", TransformerKind::llama, 80, 8192, 64, 8, 28672, 128256, 8192},
    {"llama318b", TransformerKind::llama, 32, 4096, 32, 8, 14336, 128256, 8192},
    {"llama3170b", TransformerKind::llama, 80, 8192, 64, 8, 28672, 128256, 8192},
    {"llama31405b", TransformerKind::llama, 126, 16384, 128, 8, 53248, 128256, 8192},
});

const Known* known_by_name(const std::string& model) {
  const std::string name = normalized(model);
  const Known* best = nullptr;
  for (const Known& entry : known)
    if (name.starts_with(entry.name) && (!best || entry.name.size() > best->name.size())) best = &entry;
  return best;
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
  const bool experts = a.number("experts").value_or(0) > 1 || a.number("num_experts").value_or(0) > 1;
  if (experts || named("mixtral") || named("moe") || named("switch"))
    return fail("mixtures of experts are not modelled");
  const bool t5 = named("t5") && !named("pt5");  // nor GPT-530B, nor OPT
  if (t5 || named("bart") || named("gnmt") || kind.find("encoder-decoder") != std::string::npos)
    return fail("encoders with decoders are not modelled");
  if (name.starts_with("vit") || name.starts_with("deit") || named("swin") || a.has("patch"))
    return fail("no recipe for vision transformers");
  return {};
}

Result<void> check(const TransformerSizes& s) {
  if (s.layers == 0 || s.width == 0 || s.heads == 0)
    return fail("the source does not state the model's layers, width and heads");
  if (s.sequence == 0) return fail("the source does not state how long sequences are");
  constexpr std::int64_t most_layers = 10'000, most_width = 1 << 20, most_sequence = 1 << 24;
  if (s.layers > most_layers || s.width > most_width || s.sequence > most_sequence || s.ffn > 16 * most_width ||
      s.vocabulary > 16 * most_width)
    return fail(
        fmt::format("{} layers of width {} over {} tokens are no known transformer", s.layers, s.width, s.sequence));
  if (s.width % s.heads != 0 || s.heads % s.kv_heads != 0)
    return fail(fmt::format("a width of {} is not divided by {} heads and {} of keys", s.width, s.heads, s.kv_heads));
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
  const bool named_heads = entry && !row.architecture.has("heads");
  s.kv_heads = row.architecture.integer("kv_heads").value_or(named_heads ? entry->kv_heads : s.heads);
  s.ffn = size("ffn", &Known::ffn, 4 * s.width);
  if (row.sequence_length)
    s.sequence = *row.sequence_length;
  else
    s.sequence = size("seq", &Known::sequence, 0);
  SIBYL_CHECK(check(s));
  return s;
}

double items_of(const Row& row, std::int64_t sequence) {
  return lower_case(row.unit).find("token") != std::string::npos ? static_cast<double>(sequence) : 1.0;
}

}  // namespace sibyl::published
