#include "oracle/bottleneck_kind.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sibyl {
namespace {

// What names begin with, or are. Where one begins with another the longer stands first.
constexpr std::array kind_names = {
    std::pair{BottleneckKind::compute, std::string_view("compute: ")},
    std::pair{BottleneckKind::memory_bandwidth, std::string_view("memory bandwidth: ")},
    std::pair{BottleneckKind::dispatch, std::string_view("host dispatch")},
    std::pair{BottleneckKind::exchanges, std::string_view("network: exchanges between operations")},
    std::pair{BottleneckKind::stage_links, std::string_view("network: between pipeline stages")},
    std::pair{BottleneckKind::gradients, std::string_view("network: data ")},
    std::pair{BottleneckKind::imbalance, std::string_view("pipeline imbalance: one stage takes longer than the others")},
    std::pair{BottleneckKind::bubble, std::string_view("pipeline bubble: few micro-batches for as many stages")},
    std::pair{BottleneckKind::reading, std::string_view("storage: reading samples")},
    std::pair{BottleneckKind::storage, std::string_view("storage: ")},
    std::pair{BottleneckKind::host_link, std::string_view("host link: ")},
};

}  // namespace

std::string bottleneck_name(BottleneckKind kind, std::string_view what) {
  const auto found = std::ranges::find(kind_names, kind, [](const auto& entry) { return entry.first; });
  return std::string(found->second).append(what);
}

std::optional<BottleneckParts> parts_of_bottleneck(std::string_view name) {
  for (const auto& [kind, begins] : kind_names)
    if (name.starts_with(begins)) return BottleneckParts{kind, name.substr(begins.size())};
  return std::nullopt;
}

}  // namespace sibyl
