#include "netmodel/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "netmodel/fabric/contention/simulation.h"
#include "netmodel/fabric/contention/steps.h"
#include "netmodel/fabric/costs.h"
#include "netmodel/network_model.h"

namespace sibyl {
namespace {

// Of a round: flows that end one after another share anew each time, so time grows with the square of them.
constexpr std::size_t most_flows = 1 << 15;
// Step by step, some seconds of them.
constexpr std::int64_t most_messages = 1 << 26;

Result<void> check_flows(const fabric::Schedule& schedule) {
  for (const fabric::Round& round : schedule.rounds)
    if (round.messages.size() > most_flows)
      return fail(ErrorCode::infeasible, fmt::format("{} messages at once are too many to simulate: {} at most",
                                                     round.messages.size(), most_flows),
                  {}, "fewer ranks");
  return {};
}

}  // namespace

Result<std::vector<SimulatedExchange>> Network::simulate(std::vector<SimulatedExchange> exchanges,
                                                         bool step_by_step) const {
  const Model& model = *model_;
  if (!model.costs)
    return fail("only a fabric's links can be simulated", {}, "say in the cluster file how links run: fabric");
  const fabric::Costs& costs = *model.costs;
  std::vector<fabric::Schedule> schedules;
  for (SimulatedExchange& it : exchanges) {
    if (!model.shared) it.placement.groups_per_node = 1;
    it.algorithm = collective(it.collective, it.bytes, it.placement, it.algorithm).algorithm;
    if (it.algorithm == Algorithm::in_network)
      return fail(ErrorCode::infeasible, "what switches add is no flow that could be simulated", {},
                  "ask for another --algorithm");
    schedules.push_back(it.placement.size() > 1 ? costs.schedule_of(it.collective, it.algorithm, it.placement,
                                                                    Algorithm::ring, {it.imbalance})
                                                : fabric::Schedule{});
    SIBYL_CHECK(check_flows(schedules.back()));
  }
  if (step_by_step && !exchanges.empty()) {
    SimulatedExchange& asked = exchanges.front();
    if (const std::int64_t messages = fabric::messages_of(schedules.front()); messages > most_messages)
      return fail(ErrorCode::infeasible,
                  fmt::format("{} messages are too many to simulate step by step: {} at most", messages, most_messages),
                  {}, "fewer ranks, or --simulate, which takes rounds that are alike for one");
    const fabric::Steps steps = fabric::step_by_step(*costs.fabric(), costs.capacities(), schedules.front(),
                                                     std::max(0.0, asked.bytes.value()));
    asked.steps = {Seconds{steps.seconds}, steps.messages};
  }
  std::vector<fabric::Running> running;
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    const double bytes = std::max(0.0, exchanges[i].bytes.value());
    running.push_back({&schedules[i], bytes});
    exchanges[i].closed_form = Seconds{costs.seconds(schedules[i], bytes)};
    exchanges[i].alone =
        Seconds{fabric::simulated_seconds(*costs.fabric(), costs.capacities(), schedules[i], bytes)};
    exchanges[i].at_once = exchanges[i].alone;
  }
  if (exchanges.size() < 2) return exchanges;
  const std::vector<double> ends = fabric::simulated_together(*costs.fabric(), costs.capacities(), running);
  for (std::size_t i = 0; i < ends.size(); ++i) exchanges[i].at_once = Seconds{ends[i]};
  return exchanges;
}

}  // namespace sibyl
