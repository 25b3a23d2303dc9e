#include "oracle/limits/found.h"

#include <algorithm>
#include <utility>

#include "oracle/limits/finders.h"

namespace sibyl {

namespace limits {

void Found::each_slowest(const std::function<void(const Stage&, const PricedStage&)>& visit) const {
  for (std::size_t s = slowest; s < plan.stages.size(); s += plan.schedule.size()) visit(plan.stages[s], priced[s]);
}

bool Found::spans_nodes(MeshAxis axis) const { return placement(plan.mesh, axis, cluster.devices_per_node).nodes > 1; }

void add_cost(const Found& f, Seconds time, std::string_view name, std::string where, std::string relief,
              Limits& limits) {
  constexpr double rounding = 1e-9;
  const Seconds step = f.prediction.step_time;
  if (time <= rounding * step) return;
  limits.push_back({std::string(name), std::move(where), time.value(), "s", time / step, std::move(relief)});
}

std::string axes_text(const Found& f, const std::vector<MeshAxis>& axes) {
  std::string text;
  for (const MeshAxis axis : rank_order(f.plan.strategy))
    if (f.degree(axis) > 1 && std::find(axes.begin(), axes.end(), axis) != axes.end())
      text.append(text.empty() ? "" : ", ").append(to_string(axis));
  return text;
}

}  // namespace limits

std::vector<Limit> find_limits(const PricedPlan& plan) {
  const limits::Found found{plan};
  limits::Limits result;
  for (const auto find : limits::finders) find(found, result);
  return result;
}

}  // namespace sibyl
