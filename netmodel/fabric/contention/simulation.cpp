#include "netmodel/fabric/contention/simulation.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "netmodel/fabric/contention/sharing.h"

namespace sibyl::fabric {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double same_moment = 1e-9;  // relative: events this near are one

std::vector<Flow> flows_of(const Round& round, double amount, double start) {
  std::vector<Flow> flows;
  flows.reserve(round.messages.size());
  for (const Message& message : round.messages)
    flows.push_back({message.from, message.to, message.bytes * amount, start});
  return flows;
}

double latency_of(const Round& round, const FlowSet& set) {
  double sum = 0.0, most = 0.0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    sum += set.latency(i);
    most = std::max(most, set.latency(i));
  }
  if (round.kind == Round::Kind::stream || set.size() == 0) return 0.0;
  return round.kind == Round::Kind::pipelined ? sum / static_cast<double>(set.size()) : most;
}

double needs(double left, double rate) { return left <= 0 ? 0.0 : rate > 0 ? left / rate : never; }

// The flows that move now, and what is left of each.
class Clock {
 public:
  Clock(const FlowSet& set, std::span<const Flow> flows) : set_(set), flows_(flows), moving_(set.size(), false) {
    for (std::size_t i = 0; i < flows.size(); ++i) {
      begins_.push_back(flows[i].start + set.latency(i));
      left_.push_back(flows[i].bytes);
      waiting_.push_back(i);
    }
    std::ranges::sort(waiting_, std::greater<>{}, [&](std::size_t i) { return begins_[i]; });
  }

  std::vector<double> run() {
    std::vector<double> ends(flows_.size(), 0.0);
    while (!waiting_.empty() || !running_.empty()) {
      if (running_.empty()) now_ = begins_[waiting_.back()];
      admit();
      const std::vector<double> rates = fair_rates(set_, moving_);
      advance(rates);
      retire(rates, ends);
    }
    return ends;
  }

 private:
  void admit() {
    while (!waiting_.empty() && begins_[waiting_.back()] <= now_ * (1 + same_moment)) {
      running_.push_back(waiting_.back());
      moving_[waiting_.back()] = true;
      waiting_.pop_back();
    }
  }

  void advance(const std::vector<double>& rates) {
    span_ = waiting_.empty() ? never : begins_[waiting_.back()] - now_;
    for (const std::size_t i : running_) span_ = std::min(span_, needs(left_[i], rates[i]));
    now_ += span_;
  }

  void retire(const std::vector<double>& rates, std::vector<double>& ends) {
    std::erase_if(running_, [&](std::size_t i) {
      const bool over = needs(left_[i], rates[i]) <= span_ * (1 + same_moment);
      if (over) {
        ends[i] = now_;
        moving_[i] = false;
      } else {
        left_[i] -= rates[i] * span_;
      }
      return over;
    });
  }

  const FlowSet& set_;
  std::span<const Flow> flows_;
  std::vector<bool> moving_;
  std::vector<double> begins_, left_;
  std::vector<std::size_t> waiting_, running_;  // waiting: the next at the end
  double now_ = 0.0, span_ = 0.0;
};

// One collective's rounds, as they come up.
struct Progress {
  std::size_t round = 0;
  double latency_until = 0.0;  // nothing moves before
  std::vector<Flow> flows;
  double ended = -1.0;
};

}  // namespace

std::vector<double> finish_times(const FlowSet& set, std::span<const Flow> flows) { return Clock(set, flows).run(); }

double simulated_seconds(const Fabric& fabric, std::span<const double> capacities, const Schedule& schedule,
                         double bytes) {
  double total = 0.0;
  for (const Round& round : schedule.rounds) {
    const std::vector<Flow> flows = flows_of(round, schedule.amount(round.of, bytes), 0.0);
    const FlowSet set(fabric, capacities, flows);
    // Latency is the round's, not each flow's: parts that go round a ring meet each link's in turn.
    const std::vector<double> ends = finish_times(set.without_latency(), flows);
    const double last = ends.empty() ? 0.0 : *std::ranges::max_element(ends);
    total += round.times * (latency_of(round, set) + last);
  }
  return total;
}

std::vector<double> simulated_together(const Fabric& fabric, std::span<const double> capacities,
                                       std::span<const Running> collectives) {
  std::vector<Progress> all(collectives.size());
  double now = 0.0;
  const auto begin_round = [&](std::size_t i) {
    const Schedule& schedule = *collectives[i].schedule;
    Progress& it = all[i];
    if (it.round == schedule.rounds.size()) {
      it.ended = now;
      it.flows.clear();
      return;
    }
    const Round& round = schedule.rounds[it.round];
    it.flows = flows_of(round, schedule.amount(round.of, collectives[i].bytes) * round.times, 0.0);
    it.latency_until = now + round.times * latency_of(round, FlowSet(fabric, capacities, it.flows));
  };
  for (std::size_t i = 0; i < all.size(); ++i) begin_round(i);
  while (std::ranges::any_of(all, [](const Progress& it) { return it.ended < 0; })) {
    // Up to the next end of any collective's round or latency, all that move share. The span counts, not the moment at
    // its end: far from 0 that may be the same number as now, and what is left of a flow would never be over.
    std::vector<Flow> moving;
    std::vector<std::pair<std::size_t, std::size_t>> owner;
    double next_latency = never;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].ended >= 0) continue;
      if (all[i].latency_until > now) {
        next_latency = std::min(next_latency, all[i].latency_until);
        continue;
      }
      for (std::size_t f = 0; f < all[i].flows.size(); ++f)
        if (all[i].flows[f].bytes > 0) moving.push_back(all[i].flows[f]), owner.emplace_back(i, f);
    }
    const FlowSet set(fabric, capacities, moving);
    const std::vector<double> rates = fair_rates(set);
    double span = never;
    for (std::size_t f = 0; f < moving.size(); ++f) span = std::min(span, needs(moving[f].bytes, rates[f]));
    const bool latency_first = next_latency - now <= span;
    if (latency_first) span = next_latency - now;
    if (span == never) span = 0.0;  // only rounds of no bytes
    for (std::size_t f = 0; f < moving.size(); ++f) {
      double& left = all[owner[f].first].flows[owner[f].second].bytes;
      const bool over = needs(moving[f].bytes, rates[f]) <= span * (1 + same_moment);
      left = over ? 0.0 : left - rates[f] * span;
    }
    now = latency_first && next_latency != never ? next_latency : now + span;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool moves = std::ranges::any_of(all[i].flows, [](const Flow& flow) { return flow.bytes > 0; });
      if (all[i].ended >= 0 || moves || all[i].latency_until > now) continue;
      ++all[i].round;
      begin_round(i);
    }
  }
  std::vector<double> ends;
  for (const Progress& it : all) ends.push_back(it.ended);
  return ends;
}

}  // namespace sibyl::fabric
