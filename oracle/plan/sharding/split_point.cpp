#include "oracle/plan/sharding/split_point.h"

#include <fmt/format.h>

#include <algorithm>

namespace sibyl {

bool is_meant(std::string_view operation, std::string_view name) {
  constexpr std::string_view separators = "/._:";
  if (!operation.starts_with(name)) return false;
  return operation.size() == name.size() || separators.find(operation[name.size()]) != std::string_view::npos;
}

bool ends_anywhere(const Policy& policy) {
  using W = Policy::Weights;
  return policy.weights == W::columns || policy.weights == W::rows || policy.weights == W::image;
}

Result<OperationId> split_point(const Graph& graph, const Stage& whole, const Strategy& strategy) {
  if (strategy.split_until.empty()) return OperationId{};
  const std::vector<Policy> used = policies(strategy);
  if (std::none_of(used.begin(), used.end(), ends_anywhere))
    return fail(ErrorCode::usage, "nothing is split that could end there", "--split-until",
                "it goes with --parallel filter=N, channel=N or spatial=HxW");
  for (std::size_t i = whole.steps.size(); i-- > 0;)
    if (const auto* compute = std::get_if<Compute>(&whole.steps[i]);
        compute && compute->operation.valid() && is_meant(graph[compute->operation].name, strategy.split_until))
      return compute->operation;
  return fail(ErrorCode::usage, fmt::format("the model has no operation '{}'", strategy.split_until), "--split-until",
              "`sibyl inspect` lists them");
}

}  // namespace sibyl
