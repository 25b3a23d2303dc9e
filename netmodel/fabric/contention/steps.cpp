#include "netmodel/fabric/contention/steps.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "netmodel/fabric/contention/flow_set.h"
#include "netmodel/fabric/contention/sharing.h"

namespace sibyl::fabric {
namespace {

using WayId = std::uint32_t;

constexpr double rounding = 1e-12;  // relative: times this near are one moment

// What happens when: a way's message was sent, or arrived. Of one moment together.
class Agenda {
 public:
  struct Event {
    WayId way = 0;
    bool arrives = false;
  };

  void add(double time, Event event) { events_[moment(time)].push_back(event); }
  [[nodiscard]] bool empty() const { return first_ == moments_.size(); }
  // The next moment, and what happens then.
  double next(std::vector<Event>& events) {
    const Moment now = moments_[first_++];
    events.clear();
    events.swap(events_[now.events]);
    free_.push_back(now.events);
    constexpr std::size_t much = 4096;
    if (first_ == moments_.size() || first_ == much) {
      moments_.erase(moments_.begin(), moments_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return now.time;
  }

 private:
  struct Moment {
    double time = 0.0;
    std::size_t events = 0;  // place in events_
  };

  std::size_t moment(double time) {
    const auto from = moments_.begin() + static_cast<std::ptrdiff_t>(first_);
    auto at = std::ranges::lower_bound(from, moments_.end(), time * (1 - rounding), {}, &Moment::time);
    if (at != moments_.end() && at->time <= time * (1 + rounding)) return at->events;
    if (free_.empty()) {
      free_.push_back(events_.size());
      events_.emplace_back();
    }
    at = moments_.insert(at, Moment{time, free_.back()});
    free_.pop_back();
    return at->events;
  }

  std::vector<Moment> moments_;  // by time, from `first_` on
  std::size_t first_ = 0;
  std::vector<std::vector<Event>> events_;
  std::vector<std::size_t> free_;
};

// Ways that cross channels in common, directly or by others.
struct Common {
  std::vector<WayId> ways;
  FlowSet flows;
  std::vector<bool> busy, shared;  // now, and when rates were shared last
  std::vector<double> rates;
  std::size_t unlike = 0;  // those busy now or then, and not both
  std::vector<WayId> begun;
  bool touched = false;
};

class RoundSteps {
 public:
  RoundSteps(const Fabric& fabric, std::span<const double> capacities, const Round& round, double amount) {
    std::vector<Flow> flows;
    flows.reserve(round.messages.size());
    for (const Message& message : round.messages)
      flows.push_back({message.from, message.to, message.bytes * amount, 0.0});
    const FlowSet set(fabric, capacities, flows);
    join(round);
    for (WayId i = 0; i < ways_.size(); ++i) {
      ways_[i].bytes = flows[i].bytes;
      ways_[i].latency = round.kind == Round::Kind::stream ? 0.0 : set.latency(i);
    }
    find_commons(set);
    const bool all_receive = std::ranges::none_of(ways_, [&](const Way& way) { return places_[way.from].in.empty(); });
    goes_round_ = round.kind == Round::Kind::pipelined && all_receive;
  }

  // So many rounds, until the last message has arrived.
  double run(int times) {
    if (goes_round_) return run_together(times);
    double total = 0.0;
    for (int i = 0; i < times; ++i) total += run_together(1);
    return total;
  }

 private:
  static constexpr std::int32_t alone = -1;
  struct Way {
    double bytes = 0.0, latency = 0.0;
    double seconds = 0.0;                        // of one message, where no other way crosses its channels
    double left = 0.0, rate = 0.0, since = 0.0;  // else: of the one that moves
    double end = 0.0;
    std::uint32_t from = 0, to = 0;  // places
    std::int32_t common = alone;
    std::uint32_t index = 0;  // among those it shares with
    int sent = 0, arrived = 0;
    bool moving = false;
  };
  struct Place {
    std::vector<WayId> in, out;
    int complete = 0;         // rounds of which all has arrived
    std::size_t missing = 0;  // of the next one
  };

  // Who waits for whom: by senders, or as a ring goes round, where the places in it stand for them.
  void join(const Round& round) {
    ways_.resize(round.messages.size());
    int most = -1;
    for (WayId i = 0; i < ways_.size(); ++i) {
      const Message& message = round.messages[i];
      ways_[i].from = round.after.empty() ? static_cast<std::uint32_t>(message.from) : i;
      if (round.after.empty())
        ways_[i].to = static_cast<std::uint32_t>(message.to);
      else
        ways_[round.after[i]].to = i;
      most = std::max({most, message.from, message.to});
    }
    places_.resize(round.after.empty() ? static_cast<std::size_t>(most + 1) : ways_.size());
    for (WayId i = 0; i < ways_.size(); ++i) {
      places_[ways_[i].from].out.push_back(i);
      places_[ways_[i].to].in.push_back(i);
    }
  }

  void find_commons(const FlowSet& set) {
    std::vector<WayId> leader(ways_.size());
    std::iota(leader.begin(), leader.end(), WayId{0});
    const auto find = [&](WayId way) {
      while (leader[way] != way) way = leader[way] = leader[leader[way]];
      return way;
    };
    for (std::size_t channel = 0; channel < set.capacities().size(); ++channel) {
      const auto over = set.flows_over(channel);
      for (const WayId way : over) leader[find(way)] = find(over.front());
    }
    std::vector<std::vector<WayId>> together(ways_.size());
    for (WayId way = 0; way < ways_.size(); ++way) together[find(way)].push_back(way);
    for (std::vector<WayId>& ways : together) {
      if (ways.empty()) continue;
      if (ways.size() == 1) {
        double rate = std::numeric_limits<double>::infinity();
        for (const FlowSet::Use& use : set.uses(ways.front()))
          rate = std::min(rate, set.capacities()[use.channel] / use.share);
        ways_[ways.front()].seconds = ways_[ways.front()].bytes / rate;
        continue;
      }
      for (std::uint32_t i = 0; i < ways.size(); ++i) {
        ways_[ways[i]].common = static_cast<std::int32_t>(commons_.size());
        ways_[ways[i]].index = i;
      }
      const std::size_t size = ways.size();
      FlowSet flows = only(set, ways);
      commons_.push_back({std::move(ways),
                          std::move(flows),
                          std::vector<bool>(size),
                          std::vector<bool>(size),
                          std::vector<double>(size),
                          0,
                          {},
                          false});
    }
  }

  static FlowSet only(const FlowSet& set, const std::vector<WayId>& ways) {
    std::vector<std::uint32_t> used;
    for (const WayId way : ways)
      for (const FlowSet::Use& use : set.uses(way)) used.push_back(use.channel);
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    std::vector<double> capacities;
    for (const std::uint32_t channel : used) capacities.push_back(set.capacities()[channel]);
    std::vector<std::vector<FlowSet::Use>> uses;
    for (const WayId way : ways) {
      uses.emplace_back();
      for (const FlowSet::Use& use : set.uses(way)) {
        const auto at = std::ranges::lower_bound(used, use.channel) - used.begin();
        uses.back().push_back({static_cast<std::uint32_t>(at), use.share});
      }
    }
    return {std::move(capacities), uses, std::vector<double>(ways.size(), 0.0)};
  }

  double run_together(int times) {
    times_ = times;
    now_ = 0.0;
    double last = 0.0;
    for (Way& way : ways_) way.sent = way.arrived = 0;
    for (Place& place : places_) place.complete = place.in.empty() ? times : 0, place.missing = place.in.size();
    for (WayId way = 0; way < ways_.size(); ++way) begin_if_due(way);
    settle();
    std::vector<Agenda::Event> events;
    while (!agenda_.empty()) {
      now_ = agenda_.next(events);
      for (const Agenda::Event& event : events) {
        if (event.arrives) last = now_;
        event.arrives ? arrive(event.way) : end(event.way);
      }
      settle();
    }
    return last;
  }

  void begin_if_due(WayId id) {
    Way& way = ways_[id];
    if (way.moving || way.sent == times_ || places_[way.from].complete < way.sent) return;
    way.moving = true;
    if (way.common == alone) {
      way.end = now_ + way.seconds;
      agenda_.add(way.end, {id, false});
      return;
    }
    way.left = way.bytes;
    way.rate = 0.0;
    toggle(way).begun.push_back(id);
  }

  // Its last byte was sent, if that has not been put off by others that came in between.
  void end(WayId id) {
    Way& way = ways_[id];
    if (!way.moving || way.end > now_ * (1 + 2 * rounding)) return;
    way.moving = false;
    ++way.sent;
    if (way.common != alone) toggle(way);
    agenda_.add(now_ + way.latency, {id, true});
    begin_if_due(id);
  }

  void arrive(WayId id) {
    Place& place = places_[ways_[id].to];
    if (ways_[id].arrived++ != place.complete || --place.missing > 0) return;
    while (place.missing == 0) {
      ++place.complete;
      for (const WayId way : place.in) place.missing += ways_[way].arrived == place.complete ? 1U : 0U;
    }
    for (const WayId way : place.out) begin_if_due(way);
  }

  Common& toggle(const Way& way) {
    const auto id = static_cast<std::size_t>(way.common);
    Common& common = commons_[id];
    common.busy[way.index] = way.moving;
    if (way.moving == common.shared[way.index])
      --common.unlike;
    else
      ++common.unlike;
    if (!std::exchange(common.touched, true)) touched_.push_back(id);
    return common;
  }

  // Rates, where at this moment messages began or ended.
  void settle() {
    for (const std::size_t id : touched_) {
      Common& common = commons_[id];
      common.touched = false;
      if (common.unlike > 0) share(common);
      for (const WayId way : common.begun)
        if (ways_[way].rate == 0.0) set_rate(way, common.rates[ways_[way].index]);
      common.begun.clear();
    }
    touched_.clear();
  }

  void share(Common& common) {
    if (std::ranges::none_of(common.busy, std::identity())) return;
    common.rates = fair_rates(common.flows, common.busy);
    common.shared = common.busy;
    common.unlike = 0;
    for (const WayId id : common.ways) {
      const double rate = common.rates[ways_[id].index];
      if (ways_[id].moving && rate != ways_[id].rate) set_rate(id, rate);
    }
  }

  void set_rate(WayId id, double rate) {
    Way& way = ways_[id];
    if (way.rate > 0) way.left = std::max(0.0, way.left - way.rate * (now_ - way.since));
    way.rate = rate;
    way.since = now_;
    way.end = rate > 0 ? now_ + way.left / rate : std::numeric_limits<double>::infinity();
    if (rate > 0) agenda_.add(way.end, {id, false});
  }

  std::vector<Way> ways_;
  std::vector<Place> places_;  // by device, or of rings
  std::vector<Common> commons_;
  std::vector<std::size_t> touched_;
  Agenda agenda_;
  bool goes_round_ = false;
  int times_ = 1;
  double now_ = 0.0;
};

}  // namespace

Steps step_by_step(const Fabric& fabric, std::span<const double> capacities, const Schedule& schedule, double bytes) {
  Steps result{0.0, messages_of(schedule)};
  for (const Round& round : schedule.rounds)
    result.seconds += RoundSteps(fabric, capacities, round, schedule.amount(round.of, bytes)).run(round.times);
  return result;
}

std::int64_t messages_of(const Schedule& schedule) {
  std::int64_t messages = 0;
  for (const Round& round : schedule.rounds) messages += static_cast<std::int64_t>(round.messages.size()) * round.times;
  return messages;
}

}  // namespace sibyl::fabric
