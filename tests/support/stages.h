// What a stage has, in words that tests compare.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl::test {

// "forward/backward" of each exchange, or of those of one axis, in order.
inline std::vector<std::string> exchanges(const Stage& stage, std::optional<MeshAxis> axis = {}) {
  std::vector<std::string> result;
  for (const Step& step : stage.steps)
    if (const auto* e = std::get_if<Exchange>(&step); e && (!axis || e->axis == *axis))
      result.push_back(std::string(to_string(e->forward.motion)) + "/" + std::string(to_string(e->backward.motion)));
  return result;
}

inline std::ptrdiff_t count(const std::vector<std::string>& list, std::string_view entry) {
  return std::count(list.begin(), list.end(), entry);
}

// Of the tensors that these carry, as the graph calls them.
inline std::vector<std::string> carried(const Graph& graph, const Stage& stage, const std::vector<Link>& links) {
  std::vector<std::string> names;
  for (const Link& link : links) names.push_back(graph[stage[link.tensor].origin].name);
  return names;
}

// The signature of the first computation of the operation with this name, shapes only.
inline std::string local(const Graph& graph, const Stage& stage, std::string_view name) {
  for (const Step& step : stage.steps)
    if (const auto* compute = std::get_if<Compute>(&step); compute && graph[compute->operation].name == name) {
      Signature s = signature(stage, *compute);
      s.attributes = Copy{};
      return to_string(s).substr(4);
    }
  return "absent";
}

}  // namespace sibyl::test
