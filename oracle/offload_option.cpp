// What --offload says, read and written.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "oracle/strategy.h"

namespace sibyl {
namespace {

constexpr std::array<std::string_view, 3> tier_names = {"device", "host", "nvme"};
constexpr const char* spelling =
    "optimizer, parameters, activations or several, each followed by :host or :nvme; as optimizer:nvme,activations";

struct Part {
  std::string_view name;
  Tier Strategy::*tier;
};
constexpr std::array<Part, 3> offloadable = {{{"optimizer", &Strategy::optimizer_tier},
                                              {"parameters", &Strategy::parameter_tier},
                                              {"activations", &Strategy::activation_tier}}};

Result<void> parse_part(std::string_view text, Strategy& strategy) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view what = text.substr(0, colon);
  const auto part = std::ranges::find(offloadable, what, &Part::name);
  if (part == offloadable.end())
    return fail(ErrorCode::usage, fmt::format("'{}' is nothing that can lie outside the device", what), "--offload",
                spelling);
  const std::string_view tier = colon == text.size() ? tier_names[1] : text.substr(colon + 1);
  if (tier != tier_names[1] && tier != tier_names[2])
    return fail(ErrorCode::usage, fmt::format("'{}' is no place outside the device", tier), "--offload", spelling);
  if (strategy.*part->tier != Tier::device)
    return fail(ErrorCode::usage, fmt::format("'{}' is said twice", what), "--offload", spelling);
  strategy.*part->tier = tier == tier_names[1] ? Tier::host : Tier::nvme;
  return {};
}

}  // namespace

std::string_view to_string(Tier tier) { return tier_names[static_cast<std::size_t>(tier)]; }

std::string offload_text(const Strategy& strategy) {
  std::string text;
  for (const Part& part : offloadable) {
    const Tier tier = strategy.*part.tier;
    if (tier == Tier::device) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", part.name);
    if (tier != Tier::host) text += fmt::format(":{}", to_string(tier));
  }
  return text;
}

Result<void> parse_offload(std::string_view text, Strategy& strategy) {
  Strategy read = strategy;
  for (const Part& part : offloadable) read.*part.tier = Tier::device;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    SIBYL_CHECK(parse_part(text.substr(begin, end - begin), read));
    begin = end + 1;
  }
  strategy = std::move(read);
  return {};
}

}  // namespace sibyl
