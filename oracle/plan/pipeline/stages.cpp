#include "oracle/plan/pipeline/stages.h"

#include <fmt/format.h>

#include "oracle/plan/buckets.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/pipeline/balance.h"
#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/plan/whole_program.h"

namespace sibyl {

// A coordinate has one copy of a parameter for each of its stages that use it, and sums over coordinates, not over copies.
Result<void> check_ties(const Graph& graph, const Stage& whole, const Ties& ties, int coordinates) {
  for (const auto& [parameter, stages] : ties)
    for (std::size_t i = 1; i < stages.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (stages[i] % coordinates == stages[j] % coordinates)
          return fail(
              ErrorCode::infeasible,
              fmt::format("the parameter '{}' is used by stages {} and {}, which are both on pipeline coordinate {}",
                          graph[whole[parameter].origin].name, stages[j], stages[i], stages[i] % coordinates),
              "--schedule", "use 1f1b, or place the stages by hand with --stages");
  return {};
}

namespace {

std::map<LocalTensorId, Tie> ties_of(const CutProgram& program, std::size_t stage) {
  std::map<LocalTensorId, Tie> result;
  for (std::size_t t = 0; t < program.whole_id[stage].size(); ++t)
    if (const auto tie = program.ties.find(program.whole_id[stage][t]); tie != program.ties.end())
      result[LocalTensorId{t}] = {tie->second, tie->first.index()};
  return result;
}

}  // namespace

Result<void> add_stages(const Graph& graph, const Stage& whole, const CutCosts& costs, Plan& plan) {
  const Strategy& strategy = plan.strategy;
  const PipelineShape shape{strategy.pipeline, strategy.chunks, static_cast<int>(strategy.accumulation)};
  SIBYL_CHECK(check_shape(strategy.schedule, shape));
  if (!costs.begins && strategy.stage_starts.empty()) SIBYL_CHECK(check_stages(whole, strategy));
  SIBYL_TRY(plan.schedule, make_schedule(strategy.schedule, shape));
  SIBYL_TRY(const std::vector<std::size_t> begins,
            costs.begins                      ? Result<std::vector<std::size_t>>(*costs.begins)
            : strategy.stage_starts.empty() ? balanced(whole, strategy, plan.schedule, costs)
                                              : by_name(graph, whole, strategy));
  CutProgram program = cut(whole, begins);
  SIBYL_CHECK(check_ties(graph, whole, program.ties, strategy.pipeline));
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    Stage& stage = program.stages[s];
    stage.first = beginnings(whole)[s == 0 ? 0 : begins[s - 1]];
    add_state(stage, strategy, ties_of(program, s));
    for (const Turn& turn : plan.schedule[s % plan.schedule.size()])
      if (turn.stage == static_cast<int>(s)) stage.schedule.push_back(turn);
  }
  plan.stages = std::move(program.stages);
  join_clips(plan);
  return {};
}

std::vector<std::string> stage_starts(const Graph& graph, const Plan& plan) {
  std::vector<std::string> names;
  for (std::size_t s = 1; s < plan.stages.size(); ++s) names.push_back(graph[plan.stages[s].first].name);
  return names;
}

}  // namespace sibyl
