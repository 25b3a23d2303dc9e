#include "netmodel/fabric/costs.h"

#include <algorithm>

namespace sibyl::fabric {
namespace {

// Loads of one round on all channels; those it touched are cleared for the next.
class Loads {
 public:
  explicit Loads(std::size_t channels) : load_(channels, 0.0) {}

  void add(ChannelId channel, double bytes) {
    if (load_[channel] == 0.0) touched_.push_back(channel);
    load_[channel] += bytes;
  }
  // The channel that needs longest, the first of them.
  [[nodiscard]] ChannelId busiest(const std::vector<double>& capacities) const {
    ChannelId most = touched_.empty() ? 0 : touched_.front();
    for (const ChannelId channel : touched_)
      if (load_[channel] / capacities[channel] > load_[most] / capacities[most] * (1 + 1e-12)) most = channel;
    return most;
  }
  [[nodiscard]] double operator[](ChannelId channel) const { return load_[channel]; }
  void clear() {
    for (const ChannelId channel : touched_) load_[channel] = 0.0;
    touched_.clear();
  }

 private:
  std::vector<double> load_;
  std::vector<ChannelId> touched_;
};

class Pricer {
 public:
  Pricer(const Fabric& fabric, const std::vector<double>& capacities)
      : fabric_(fabric), capacities_(capacities), loads_(capacities.size()) {}

  RoundCost price(const Round& round, bool with_example) {
    RoundCost cost;
    cost.what = round.what;
    cost.times = round.times;
    cost.of = round.of;
    cost.messages = round.messages.size();
    double sum = 0.0, most = 0.0, crossings = 0.0;
    for (std::size_t i = 0; i < round.messages.size(); ++i) {
      route(round, i);
      for (const Step& step : steps_)
        loads_.add(fabric_.graph().edges()[step.edge].channel, step.share * round.messages[i].bytes);
      const double latency = fabric_.latency(steps_);
      sum += latency;
      most = std::max(most, latency);
      crossings += crosses(round.messages[i]) ? 1.0 : 0.0;
    }
    const bool waits = round.kind != Round::Kind::stream && !round.messages.empty();
    const auto count = static_cast<double>(std::max<std::size_t>(1, round.messages.size()));
    if (waits && round.kind == Round::Kind::exchange) cost.latency = most, cost.across = crossings > 0 ? 1.0 : 0.0;
    if (waits && round.kind == Round::Kind::pipelined) cost.latency = sum / count, cost.across = crossings / count;
    if (waits) cost.inside = 1.0 - cost.across;
    cost.busiest = loads_.busiest(capacities_);
    cost.busiest_load = loads_[cost.busiest];
    cost.per_byte = cost.busiest_load / capacities_[cost.busiest];
    loads_.clear();
    if (with_example) cost.over_busiest = example(round, cost.busiest);
    return cost;
  }

 private:
  void route(const Round& round, std::size_t i) {
    steps_.clear();
    fabric_.route(round.messages[i].from, round.messages[i].to, i, steps_);
  }

  [[nodiscard]] bool crosses(const Message& message) const {
    return message.from / fabric_.devices_per_node() != message.to / fabric_.devices_per_node();
  }

  Message example(const Round& round, ChannelId busiest) {
    for (std::size_t i = 0; i < round.messages.size(); ++i) {
      route(round, i);
      if (std::ranges::any_of(steps_,
                              [&](const Step& s) { return fabric_.graph().edges()[s.edge].channel == busiest; }))
        return round.messages[i];
    }
    return {};
  }

  const Fabric& fabric_;
  const std::vector<double>& capacities_;
  Loads loads_;
  std::vector<Step> steps_;
};

Compiled::Line line_of(const Fabric& fabric, const std::vector<double>& capacities, const Schedule& schedule) {
  Pricer pricer(fabric, capacities);
  Compiled::Line line;
  for (const Round& round : schedule.rounds) {
    const RoundCost cost = pricer.price(round, false);
    line.fixed += cost.times * cost.latency;
    line.inside += cost.times * cost.inside;
    line.across += cost.times * cost.across;
    const double slope = cost.times * cost.per_byte;
    switch (round.of) {
      case Round::Of::whole: line.per_byte += slope; break;
      case Round::Of::chunk: line.per_chunk += slope; break;
      case Round::Of::rest: line.per_byte += slope * schedule.tree_share, line.per_chunk -= slope; break;
    }
  }
  return line;
}

}  // namespace

std::vector<RoundCost> round_costs(const Fabric& fabric, const std::vector<double>& capacities,
                                   const Schedule& schedule) {
  Pricer pricer(fabric, capacities);
  std::vector<RoundCost> result;
  for (const Round& round : schedule.rounds) result.push_back(pricer.price(round, true));
  return result;
}

Costs::Costs(std::shared_ptr<const Fabric> fabric, const Use& use)
    : fabric_(std::move(fabric)),
      use_(use),
      capacities_(fabric_->capacities(use.inside_efficiency, use.outside_efficiency)) {}

std::size_t Costs::Hash::operator()(const Key& key) const {
  const auto bits = [](auto value) { return static_cast<std::uint64_t>(value); };
  return mixed(mixed(bits(key.placement.nodes) << 32 | bits(key.placement.ranks_per_node)) ^
               (bits(key.placement.groups_per_node) << 16 | bits(key.collective) << 8 | bits(key.algorithm)));
}

Schedule Costs::schedule_of(Collective collective, Algorithm algorithm, const GroupPlacement& placement,
                            Algorithm between, const collective::Imbalance& imbalance) const {
  return schedule(collective, algorithm, Layout(*fabric_, placement, use_.nodes), use_.chains, between, imbalance);
}

double Costs::seconds(const Schedule& schedule, double bytes) const {
  Pricer pricer(*fabric_, capacities_);
  double total = 0.0;
  for (const Round& round : schedule.rounds) {
    const RoundCost cost = pricer.price(round, false);
    total += cost.times * (cost.latency + cost.per_byte * schedule.amount(cost.of, bytes));
  }
  return total;
}

Compiled Costs::compile(const Key& key) const {
  const Schedule first = schedule_of(key.collective, key.algorithm, key.placement);
  const Compiled::Line line = line_of(*fabric_, capacities_, first);
  Compiled result{{line, line}, first.tree_share, first.chunk};
  if (key.algorithm == Algorithm::hierarchical && key.collective == Collective::all_reduce)
    result.ways[1] = line_of(*fabric_, capacities_,
                             schedule_of(key.collective, key.algorithm, key.placement, Algorithm::rabenseifner));
  return result;
}

const Compiled& Costs::compiled(Collective collective, Algorithm algorithm, const GroupPlacement& placement) const {
  const Key key{collective, algorithm, placement};
  return known_.get(key, [&] { return compile(key); });
}

double Costs::seconds(Collective collective, Algorithm algorithm, double bytes, const GroupPlacement& placement,
                      const collective::ProtocolCost& cost) const {
  return compiled(collective, algorithm, placement).seconds(bytes, cost);
}

Schedule Costs::messages(bool same_node, int pairs) const {
  const int devices = fabric_->devices_per_node(), nodes = std::min(std::max(2, use_.nodes), fabric_->nodes());
  Round round{same_node ? "to the next device" : "to the next node", 1, Round::Kind::pipelined, Round::Of::whole, {}};
  for (int node = 0; node + (same_node ? 0 : 1) < nodes && round.messages.size() < Layout::most_ranks; ++node)
    for (int i = 0; i < std::min(pairs, devices); ++i) {
      const int from = node * devices + i;
      const double bytes = static_cast<double>(pairs) / std::min(pairs, devices);
      round.messages.push_back({from, same_node ? node * devices + (i + 1) % devices : from + devices, bytes});
    }
  return {{std::move(round)}, 1.0, 0.0};
}

double Costs::message_seconds(double bytes, bool same_node, int pairs) const {
  // No collective has no ranks: the key says which messages.
  const Key key{Collective::send_receive, Algorithm::automatic, {same_node ? 1 : 0, 0, pairs}};
  const auto compile_line = [&] {
    const Compiled::Line line = line_of(*fabric_, capacities_, messages(same_node, pairs));
    return Compiled{{line, line}, 1.0, 0.0};
  };
  return known_.get(key, compile_line).seconds(bytes);
}

}  // namespace sibyl::fabric
