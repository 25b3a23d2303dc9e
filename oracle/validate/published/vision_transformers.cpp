// Vision transformers: ViT and DeiT, by their names or sizes.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "models/zoo/families.h"
#include "oracle/validate/published/models.h"

namespace sibyl::published {
namespace {

struct VitSizes {
  std::string_view name;  // normalized; behind "vit" or "deit"
  std::int64_t layers, width, heads;
};

// Dosovitskiy et al. (2020), Touvron et al. (2020).
constexpr auto named_sizes = std::to_array<VitSizes>({
    {"tiny", 12, 192, 3},
    {"ti", 12, 192, 3},
    {"small", 12, 384, 6},
    {"s", 12, 384, 6},
    {"base", 12, 768, 12},
    {"b", 12, 768, 12},
    {"large", 24, 1024, 16},
    {"l", 24, 1024, 16},
    {"huge", 32, 1280, 16},
    {"h", 32, 1280, 16},
});

std::optional<std::string> behind_family(const std::string& name) {
  for (const std::string_view family : {"visiontransformer", "deit", "vit"})
    if (name.starts_with(family)) return name.substr(family.size());
  return std::nullopt;
}

// "b16", "base16", "basepatch16224", "l": the size, and the digits of a patch (14, 16, 32) if there are any.
std::int64_t patch_in(const std::string& rest) {
  const std::size_t digit = rest.find_first_of("0123456789");
  if (digit == std::string::npos) return rest.starts_with("h") ? 14 : 16;
  for (const std::int64_t patch : {14, 16, 32, 8})
    if (rest.substr(digit).starts_with(std::to_string(patch))) return patch;
  return 16;
}

const VitSizes* sizes_in(const std::string& rest) {
  const std::string letters = rest.substr(0, rest.find_first_of("0123456789"));
  const std::string size = letters.ends_with("patch") ? letters.substr(0, letters.size() - 5) : letters;
  for (const VitSizes& sizes : named_sizes)
    if (sizes.name == size) return &sizes;
  return nullptr;
}

}  // namespace

Result<std::optional<ModelRecipe>> vision_transformer(const Row& row) {
  const std::optional<std::string> rest = behind_family(normalized(row.model));
  const Architecture& a = row.architecture;
  if (!rest) return std::nullopt;
  const VitSizes* named = sizes_in(*rest);
  zoo::VitOptions options{a.integer("layers").value_or(named ? named->layers : 0),
                          a.integer("hidden").value_or(named ? named->width : 0),
                          a.integer("heads").value_or(named ? named->heads : 0)};
  options.patch = a.integer("patch").value_or(patch_in(*rest));
  constexpr std::int64_t most = 1 << 16;
  if (const auto ffn = a.integer("ffn"); ffn && options.width <= most && *ffn != 4 * options.width)
    return fail(fmt::format("a feed-forward of {} is not four times the width of {}", *ffn, options.width));
  constexpr std::int64_t image = 224;
  if (options.layers == 0 || options.width == 0 || options.heads == 0)
    return fail("the source does not state the model's layers, width and heads");
  if (options.layers > most || options.width > most || options.width % options.heads != 0 || options.patch > image)
    return fail(fmt::format("{} layers of width {} with {} heads over patches of {} are no known vision transformer",
                            options.layers, options.width, options.heads, options.patch));
  ModelRecipe recipe;
  recipe.name = fmt::format("vit {}x{}/{} patch {}", options.layers, options.width, options.heads, options.patch);
  recipe.build = [options](zoo::Builder& b) { zoo::vit(b, options); };
  recipe.optimizer = OptimizerKind::adamw;
  recipe.images = true;
  recipe.layers = options.layers, recipe.layer_prefix = "encoder.layers.", recipe.layer_start = ".ln_1";
  if (named && !a.has("layers")) recipe.assumed.push_back(fmt::format("sizes published under the name {}", row.model));
  recipe.assumed.emplace_back("without stochastic depth");
  return recipe;
}

}  // namespace sibyl::published
