// What can hold a step back, and how a bottleneck of each kind is called: "compute: linear".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sibyl {

enum class BottleneckKind {
  compute,           // of kernels, and
  memory_bandwidth,  //   the family of operations that takes most
  dispatch,
  exchanges,    // between operations
  stage_links,  // between a pipeline's stages
  gradients,    // and how they are exchanged
  imbalance,
  bubble,
  reading,  // samples
  storage,  // of what lies outside the device, and what that is
  host_link,
};

// `what`: of those kinds that have something of their own to say.
std::string bottleneck_name(BottleneckKind kind, std::string_view what = {});

// The name taken apart. Nothing: another version's.
struct BottleneckParts {
  BottleneckKind kind = BottleneckKind::compute;
  std::string_view what;  // into the name
};
std::optional<BottleneckParts> parts_of_bottleneck(std::string_view name);

}  // namespace sibyl
