#include "oracle/plan/pipeline/balance.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/plan/sharding/split_point.h"

namespace sibyl {

InFlight in_flight(const Turns& turns, int stages) {
  std::vector<int> now(static_cast<std::size_t>(stages), 0), waiting = now;
  InFlight most{now, now};
  for (const std::vector<Turn>& own : turns)
    for (const Turn& turn : own) {
      const auto stage = static_cast<std::size_t>(turn.stage);
      if (turn.kind == Turn::Kind::forward) most.all[stage] = std::max(most.all[stage], ++now[stage]);
      if (turn.kind == Turn::Kind::backward_input) most.later[stage] = std::max(most.later[stage], ++waiting[stage]);
      if (turn.kind == Turn::Kind::backward_weight) --waiting[stage];
      if (turn.kind == Turn::Kind::backward || turn.kind == Turn::Kind::backward_weight) --now[stage];
    }
  return most;
}

namespace {

Failure too_few(int trained, const Strategy& strategy) {
  return fail(
      ErrorCode::infeasible,
      fmt::format("the model has {} operations that train, too few for {} pipeline stages", trained, strategy.stages()),
      "--parallel",
      strategy.chunks > 1 ? fmt::format("at most {} stages, over all devices", trained)
                          : fmt::format("at most pipeline={}", trained));
}

}  // namespace

Result<void> check_stages(const Stage& whole, const Strategy& strategy) {
  const auto trained = std::ranges::count_if(whole.steps, [&](const Step& step) { return trains(whole, step); });
  if (strategy.stages() > trained) return too_few(static_cast<int>(trained), strategy);
  return {};
}

namespace {

std::vector<OnTheWay> on_the_way(const InFlight& in_flight) {
  std::vector<OnTheWay> micro_batches;
  for (std::size_t s = 0; s < in_flight.all.size(); ++s)
    micro_batches.push_back({static_cast<double>(in_flight.all[s]), static_cast<double>(in_flight.later[s])});
  return micro_batches;
}

}  // namespace

bool possible(CutTable& table, const StageMemory& memory, const Strategy& strategy, const InFlight& in_flight,
              Bytes each) {
  const std::vector<OnTheWay> micro_batches = on_the_way(in_flight);
  return table.possible(in_flight.all.size(),
                        {memory, micro_batches, static_cast<std::size_t>(strategy.pipeline), each});
}

Result<std::vector<std::size_t>> balanced(CutTable& table, StageMemories& memories, const Strategy& strategy,
                                          const InFlight& in_flight, Bytes memory) {
  const std::size_t stages = in_flight.all.size();
  std::vector<std::size_t> begins;
  if (memory.value() > 0) {
    const std::vector<OnTheWay> micro_batches = on_the_way(in_flight);
    const MemoryLimit limit{memories.of(strategy), micro_batches, static_cast<std::size_t>(strategy.pipeline), memory};
    begins = table.cut(stages, &limit);
  }
  // What does not fit however it is cut is still priced, and reported as such.
  if (begins.empty()) begins = table.cut(stages);
  if (!begins.empty()) return begins;
  return too_few(table.trained_steps(), strategy);
}

Result<std::vector<std::size_t>> balanced(const Stage& whole, const Strategy& strategy, const Turns& turns,
                                          const CutCosts& costs) {
  const Places places(whole);
  const BackwardMemory backward(whole, strategy, costs.backend, {}, costs.workspace);
  CutTable table(whole, places, Crossing(whole), costs);
  const std::vector<std::size_t> not_known;
  StageMemories memories(backward, places, not_known);
  return balanced(table, memories, strategy, in_flight(turns, strategy.stages()), costs.memory);
}

Result<std::vector<std::size_t>> by_name(const Graph& graph, const Stage& whole, const Strategy& strategy) {
  const std::vector<OperationId> operations = beginnings(whole);
  const auto find = [&](const auto& fits) {
    const auto found = std::find_if(operations.begin(), operations.end(),
                                    [&](OperationId id) { return id.valid() && fits(graph[id].name); });
    return static_cast<std::size_t>(found - operations.begin());
  };
  std::vector<std::size_t> begins;
  for (const std::string& name : strategy.stage_starts) {
    std::size_t at = find([&](const std::string& operation) { return operation == name; });
    if (at == operations.size()) at = find([&](const std::string& operation) { return is_meant(operation, name); });
    if (at == operations.size())
      return fail(ErrorCode::usage, fmt::format("the model has no operation '{}'", name), "--stages",
                  "`sibyl inspect` lists them");
    if (at == 0 || (!begins.empty() && at <= begins.back()))
      return fail(ErrorCode::usage,
                  fmt::format("no stage can begin at '{}': it does not come after the one before", name), "--stages",
                  "name operations in the order in which they run");
    begins.push_back(at);
  }
  return begins;
}

}  // namespace sibyl
