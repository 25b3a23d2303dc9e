// What --offload says, read and written.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "oracle/strategy.h"

namespace sibyl {
namespace {

constexpr std::array<std::string_view, 3> tier_names = {"device", "host", "nvme"};
constexpr const char* spelling = "optimizer, optimizer:host or optimizer:nvme";

}  // namespace

std::string_view to_string(Tier tier) { return tier_names[static_cast<std::size_t>(tier)]; }

std::string offload_text(const Strategy& strategy) {
  if (strategy.optimizer_tier == Tier::device) return {};
  return strategy.optimizer_tier == Tier::host ? "optimizer"
                                               : fmt::format("optimizer:{}", to_string(strategy.optimizer_tier));
}

Result<void> parse_offload(std::string_view text, Strategy& strategy) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view what = text.substr(0, colon);
  if (what != "optimizer") {
    const bool known = what.find("parameters") != what.npos || what.find("activations") != what.npos;
    return fail(ErrorCode::usage,
                known ? fmt::format("'{}': of these only the optimizer's state can lie outside the device", what)
                      : fmt::format("'{}' is nothing that can lie outside the device", what),
                "--offload",
                known ? fmt::format("{}; --zero 3 and --recompute save device memory, too", spelling) : spelling);
  }
  const std::string_view tier = colon == text.size() ? tier_names[1] : text.substr(colon + 1);
  if (tier != tier_names[1] && tier != tier_names[2])
    return fail(ErrorCode::usage, fmt::format("'{}' is no place outside the device", tier), "--offload", spelling);
  strategy.optimizer_tier = tier == tier_names[1] ? Tier::host : Tier::nvme;
  return {};
}

}  // namespace sibyl
