// T5: an encoder and a decoder of as many layers, pre-trained on spans.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/zoo/families.h"
#include "oracle/validate/published/models.h"
#include "oracle/validate/published/transformer_sizes.h"

namespace sibyl::published {
namespace {

struct T5Sizes {
  std::string_view name;
  std::int64_t layers, width, heads, ffn;
};

// Of those published, the ones whose heads are together as wide as the model (3B's and 11B's are not).
constexpr auto t5_sizes = std::to_array<T5Sizes>({
    {"t5small", 6, 512, 8, 2048},
    {"t5base", 12, 768, 12, 3072},
    {"t5large", 24, 1024, 16, 4096},
});

// A decoder's share of the encoder's tokens: 114 of 512, as the targets of spans of 3 that hide 15 % (Raffel et al.,
// 2019).
std::int64_t usual_decoder_sequence(std::int64_t sequence) { return std::max<std::int64_t>(1, sequence * 114 / 512); }

}  // namespace

Result<std::optional<ModelRecipe>> t5_model(const Row& row) {
  const std::string name = normalized(row.model);
  const auto sizes =
      std::find_if(t5_sizes.begin(), t5_sizes.end(), [&](const T5Sizes& one) { return name.starts_with(one.name); });
  if (sizes == t5_sizes.end()) return std::nullopt;
  const Architecture& a = row.architecture;
  const auto differs = [&](const char* key, std::int64_t own) { return a.integer(key).value_or(own) != own; };
  if (differs("layers", sizes->layers) || differs("hidden", sizes->width) || differs("heads", sizes->heads) ||
      differs("ffn", sizes->ffn) || name.find("v11") != std::string::npos)
    return fail(fmt::format("'{}' is no T5 of version 1.0 in its published sizes", row.model));
  zoo::T5Options options{sizes->layers, sizes->width, sizes->heads, sizes->ffn};
  options.seq = row.sequence_length.value_or(a.integer("seq").value_or(512));
  const auto decoder_sequence = a.integer("decoder_seq");
  options.decoder_seq = decoder_sequence.value_or(usual_decoder_sequence(options.seq));
  constexpr std::int64_t most = 1 << 24;
  if (options.seq > most || options.decoder_seq > most)
    return fail(fmt::format("sequences of {} and {} tokens are none of T5's", options.seq, options.decoder_seq));
  ModelRecipe recipe;
  recipe.name = fmt::format("{} {}", sizes->name, options.decoder_seq);
  recipe.build = [options](zoo::Builder& b) { zoo::t5(b, options); };
  recipe.dims = {{"seq", options.seq}, {"decoder_seq", options.decoder_seq}};
  recipe.items = items_of(row, options.seq);
  recipe.assumed.push_back(fmt::format("sizes published under the name {}", row.model));
  if (!decoder_sequence) recipe.assumed.push_back(fmt::format("{} tokens of the decoder", options.decoder_seq));
  return recipe;
}

}  // namespace sibyl::published
