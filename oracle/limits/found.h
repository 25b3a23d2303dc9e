// What limits are found from, and how they are put down; for the files of this folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/limits.h"
#include "oracle/remedy.h"

namespace sibyl::limits {

struct Found : PricedPlan {
  [[nodiscard]] int degree(MeshAxis axis) const { return plan.strategy.degree(axis); }
  [[nodiscard]] double micro_batches() const { return static_cast<double>(plan.strategy.accumulation); }
  // Does a rank have several samples at once, of which smaller micro-batches would have fewer?
  [[nodiscard]] bool has_samples_to_part() const { return plan.micro_batch > plan.strategy.samplers(); }
  // Do groups of the axis reach over several nodes?
  [[nodiscard]] bool spans_nodes(MeshAxis axis) const;

  // Calls visit(stage, its prices) for each stage of the coordinate that ends last.
  void each_slowest(const std::function<void(const Stage&, const PricedStage&)>& visit) const;
};
using Limits = std::vector<Limit>;

// A cost in time, as a share of the step; nothing where it is none.
void add_cost(const Found& f, Seconds time, std::string_view name, std::string where, std::string relief,
              Limits& limits);

// "data, height": of these the axes that the plan splits, nearest first.
std::string axes_text(const Found& f, const std::vector<MeshAxis>& axes);

}  // namespace sibyl::limits
