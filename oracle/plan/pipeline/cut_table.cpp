#include "oracle/plan/pipeline/cut_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "models/training/training.h"

namespace sibyl {
namespace {

constexpr double near_best = 1.02;

double flops(const Stage& stage, const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  if (!compute) return 0;
  const TrainingRule rule = training_rule(signature(stage, *compute), compute->gradients, Backend::cpu);
  return rule.forward.flops.value() + (compute->gradients != 0 ? rule.backward.flops.value() : 0.0);
}

}  // namespace

bool trains(const Stage& whole, const Step& step) {
  bool any = false;
  each_gradient(whole, step, [&](LocalTensorId) { any = true; });
  return any;
}

CutTable::CutTable(const Stage& whole, const Places& places, const Crossing& crossing, const CutCosts& costs,
                   const std::vector<std::size_t>& like)
    : places_(places) {
  const std::size_t steps = whole.steps.size();
  std::unordered_map<double, double> links;  // by bytes: at most positions the same
  const auto link = [&](std::size_t position) {
    if (!costs.link || position == 0 || position == steps) return 0.0;
    const Bytes bytes = crossing.bytes(position);
    const auto [known, added] = links.try_emplace(bytes.value(), 0.0);
    if (added) known->second = costs.link(bytes);
    return known->second;
  };
  std::vector<double> times;
  double time = 0;
  int trained = 0;
  for (std::size_t i = 0; i <= steps; ++i) {
    at_.longest_link = std::max(at_.longest_link, link(i));
    if (places.position(at_.time.size()) == i) {
      at_.sent.push_back(crossing.bytes(i).value());
      at_.time.push_back(time);
      at_.trains.push_back(trained);
      at_.link.push_back(link(i));
    }
    if (i == steps) break;
    const Step& step = whole.steps[i];
    const bool known = !like.empty() && like[i] != i;
    times.push_back(known ? times[like[i]] : costs.time ? costs.time(whole, step) : flops(whole, step));
    time += times.back();
    trained += trains(whole, step) ? 1 : 0;
  }
  at_.begins.assign(at_.time.size(), 0);
  for (std::size_t p = 1; p < at_.time.size(); ++p)
    at_.begins[p] = at_.trains[p] > at_.trains[p - 1] ? p : at_.begins[p - 1];
  at_.done.assign(at_.time.size(), time);
  for (std::size_t p = at_.time.size() - 1; p-- > 0;)
    at_.done[p] = std::min(at_.done[p + 1], at_.time[p] + at_.link[p]);
}

// One cut.
class CutTable::Search {
 public:
  Search(const CutPlaces& at, NarrowestCut& narrowest, std::size_t stages, const MemoryLimit* limit)
      : at_(at),
        narrowest_(narrowest),
        memory_(stages, limit),
        bounds_(at, memory_, stages),
        stages_(stages),
        end_(at.count() - 1) {}

  // `without`: what was found without a limit, or null.
  [[nodiscard]] Found run(const Found* without) const {
    if (stages_ > end_ || static_cast<int>(stages_) > at_.trains.back()) return {};
    Found found = slowest(without);
    if (found.done < infinite) found.begins = narrowest(found.done * near_best);
    return found;
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  using Ends = CutBounds::Ends;

  // The slowest stage where each ends as soon as its even share is done: what the best cut is at least as good as.
  [[nodiscard]] double of_even_shares() const {
    double slowest = 0;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      const double share = at_.time.back() * static_cast<double>(s + 1) / static_cast<double>(stages_);
      const std::size_t end = s + 1 == stages_ ? end_ : bounds_.last_done_by(share, begin);
      const bool stands = end > begin && bounds_.trains(begin, end) && within(s, begin, end, infinite);
      if (!stands) return infinite;
      slowest = std::max(slowest, at_.cost(begin, end));
      begin = end;
    }
    return slowest;
  }

  [[nodiscard]] bool within(std::size_t stage, std::size_t begin, std::size_t end, double limit) const {
    return at_.cost(begin, end) <= limit && memory_.holds(stage, begin, end);
  }

  // Each stage as far as it goes among the places allowed; empty where one finds none.
  template <class Allowed>
  [[nodiscard]] std::vector<std::size_t> laid(double limit, const std::vector<Ends>& ends, Allowed&& allowed) const {
    std::vector<std::size_t> begins;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      std::size_t end = std::min(bounds_.furthest(s, begin, limit), ends[s].last);
      while (end >= ends[s].first && bounds_.trains(begin, end) && !(allowed(s, end) && at_.cost(begin, end) <= limit))
        --end;
      if (end < ends[s].first || !bounds_.trains(begin, end)) return {};
      begins.push_back(begin = end);
    }
    begins.pop_back();
    return begins;
  }

  // Can every stage be done in so much time?
  [[nodiscard]] bool possible(double limit) const {
    const std::vector<Ends> ends = bounds_.ends(limit);
    if (ends.empty()) return false;
    return stages_ == 1 || reach_end(limit, ends) || bounds_.reachable(limit, ends);
  }

  // Do stages come to the end that are laid each as far as it goes, or a little less? Where a stage's last places send
  // much, the one before it may have to leave it less. False does not say that there is no cut.
  [[nodiscard]] bool reach_end(double limit, const std::vector<Ends>& ends) const {
    constexpr std::size_t most = 8;
    std::vector<std::size_t> begins{0}, reached;  // the last first
    for (std::size_t s = 0; s < stages_; ++s) {
      reached.clear();
      std::size_t end = std::min(bounds_.furthest(s, begins.front(), limit), ends[s].last);
      for (; end >= ends[s].first && reached.size() < most; --end) {
        const auto begin =
            std::ranges::find_if(begins, [&](std::size_t b) { return b < end && bounds_.trains(b, end); });
        if (begin == begins.end()) break;
        if (within(s, *begin, end, limit)) reached.push_back(end);
      }
      if (reached.empty()) return false;
      std::swap(begins, reached);
    }
    return true;
  }

  // The least time of the slowest stage. A limit never lets a cut be faster; often it lets it be as fast.
  [[nodiscard]] Found slowest(const Found* without) const {
    constexpr double precision = 1e-3;
    double low = at_.time.back() / static_cast<double>(stages_);
    double high = at_.time.back() + at_.longest_link;
    double enough = of_even_shares();
    if (without && without->done < enough && possible(without->done)) enough = without->done;
    if (high < enough && !possible(high)) return {};
    while (high - low > precision * low) {
      const double middle = high > 2 * low ? low * std::sqrt(high / low) : (low + high) / 2;
      const bool too_fast = without && middle <= without->too_fast;
      (middle >= enough || (!too_fast && possible(middle)) ? high : low) = middle;
    }
    return {low, high, {}};
  }

  // The cut that sends least where no stage takes longer than `limit`; of equal ones that of the latest begins. Where
  // stages laid over each one's narrowest places come to the end, there is none that sends less, and none later.
  [[nodiscard]] std::vector<std::size_t> narrowest(double limit) const {
    const std::vector<Ends> ends = bounds_.ends(limit);
    const std::vector<double> least = least_sent(ends);
    std::vector<std::size_t> begins =
        laid(limit, ends, [&](std::size_t s, std::size_t end) { return at_.sent[end] == least[s]; });
    return begins.empty() && stages_ > 1 ? narrowest_.find(memory_, limit, ends) : begins;
  }

  // By stage: of the places where it may end.
  [[nodiscard]] std::vector<double> least_sent(const std::vector<Ends>& ends) const {
    std::vector<double> least;
    std::vector<std::size_t> rising;  // of the places so far, those that send less than all later ones
    std::size_t scanned = 0, kept = 0;
    for (const Ends& of : ends) {
      for (scanned = std::max(scanned, of.first); scanned <= of.last; ++scanned) {
        while (rising.size() > kept && at_.sent[rising.back()] >= at_.sent[scanned]) rising.pop_back();
        rising.push_back(scanned);
      }
      while (rising[kept] < of.first) ++kept;
      least.push_back(at_.sent[rising[kept]]);
    }
    return least;
  }

  const CutPlaces& at_;
  NarrowestCut& narrowest_;
  StageLimits memory_;
  CutBounds bounds_;
  std::size_t stages_;
  std::size_t end_;  // the last place
};

const CutTable::Found& CutTable::unlimited(std::size_t stages) {
  const auto [known, added] = unlimited_.try_emplace(stages);
  if (added) known->second = Search(at_, narrowest_, stages, nullptr).run(nullptr);
  return known->second;
}

bool CutTable::possible(std::size_t stages, const MemoryLimit& limit) {
  if (stages >= at_.count() || static_cast<int>(stages) > trained_steps()) return false;
  const StageLimits memory(stages, &limit);
  return CutBounds(at_, memory, stages).come_to_beginning();
}

std::vector<std::size_t> CutTable::cut(std::size_t stages, const MemoryLimit* limit) {
  const Found& without = unlimited(stages);
  std::vector<std::size_t> begins = without.begins;
  if (limit && !begins.empty() && !fits(begins, *limit))
    begins = Search(at_, narrowest_, stages, limit).run(&without).begins;
  for (std::size_t& begin : begins) begin = places_.position(begin);
  return begins;
}

bool CutTable::fits(const std::vector<std::size_t>& begins, const MemoryLimit& limit) const {
  for (std::size_t device = 0; device < limit.devices; ++device) {
    StageMemory::Need all;
    for (std::size_t s = device; s <= begins.size(); s += limit.devices) {
      const std::size_t begin = s == 0 ? 0 : begins[s - 1], end = s < begins.size() ? begins[s] : at_.count() - 1;
      const StageMemory::Need own = limit.memory.of(begin, end, limit.micro_batches[s]);
      all.resting += own.resting;
      all.passing = std::max(all.passing, own.passing);
    }
    if (all.resting + all.passing > limit.each.value()) return false;
  }
  return true;
}

}  // namespace sibyl
