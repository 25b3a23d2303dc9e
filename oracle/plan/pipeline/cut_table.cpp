#include "oracle/plan/pipeline/cut_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "models/training/training.h"
#include "oracle/plan/offload.h"

namespace sibyl {
namespace {

constexpr double near_best = 1.02;

double flops(const Stage& stage, const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  if (!compute) return 0;
  const TrainingRule rule = training_rule(signature(stage, *compute), compute->gradients, Backend::cpu);
  return rule.forward.flops.value() + (compute->gradients != 0 ? rule.backward.flops.value() : 0.0);
}

// f32 tensors of a parameter's size: itself, its gradient, the optimizer's unless they lie elsewhere.
int copies_of_weights(const Strategy& strategy) {
  return 2 + (strategy.optimizer_tier == Tier::device ? optimizer_states(strategy.optimizer) : 0);
}

}  // namespace

bool trains(const Stage& whole, const Step& step) {
  bool any = false;
  each_gradient(whole, step, [&](LocalTensorId) { any = true; });
  return any;
}

MemoryEstimate::MemoryEstimate(const Stage& whole, const Strategy& strategy, Backend backend,
                               const std::vector<std::size_t>& like)
    : fixed_(1), kept_(1) {
  const double copies = copies_of_weights(strategy);
  std::vector<std::vector<Saved>> saved_by(whole.steps.size());
  std::vector<bool> counted(whole.tensors.size(), false), kept(whole.tensors.size(), false);
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    const Step& step = whole.steps[i];
    const std::size_t same = like.empty() ? i : like[i];
    Bytes fixed = fixed_.back(), saved = kept_.back();
    for (const LocalTensorId in : inputs_of(step)) {
      if (!in.valid() || whole[in].kind != TensorKind::parameter || counted[in.index()]) continue;
      counted[in.index()] = true;
      fixed += tensor_bytes(whole[in]) * copies;
    }
    const auto keep = [&](LocalTensorId id) {
      if (!id.valid() || whole[id].kind != TensorKind::activation || kept[id.index()]) return;
      kept[id.index()] = true;
      saved += tensor_bytes(whole[id]);
    };
    if (const auto* compute = std::get_if<Compute>(&step); compute && compute->gradients != 0) {
      if (same == i) saved_by[i] = training_rule(signature(whole, *compute), compute->gradients, backend).saved;
      for (const Saved& s : saved_by[same]) {
        if (s.what == Saved::What::extra) saved += s.bytes;
        if (s.what == Saved::What::input && s.index < compute->inputs.size()) keep(compute->inputs[s.index]);
        if (s.what == Saved::What::output && s.index < compute->outputs.size()) keep(compute->outputs[s.index]);
      }
    }
    fixed_.push_back(fixed);
    kept_.push_back(saved);
  }
}

MemoryEstimate MemoryEstimate::at(const std::vector<std::size_t>& positions) const {
  MemoryEstimate there;
  for (const std::size_t position : positions) {
    there.fixed_.push_back(fixed_[position]);
    there.kept_.push_back(kept_[position]);
  }
  return there;
}

namespace {

// Where a stage may begin, and the program's end.
std::vector<std::size_t> places_of(const Stage& whole) {
  std::vector<std::size_t> places;
  const std::vector<OperationId> operations = beginnings(whole);
  for (std::size_t i = 0; i <= whole.steps.size(); ++i)
    if (i == whole.steps.size() || operations[i].valid()) places.push_back(i);
  return places;
}

}  // namespace

CutTable::CutTable(const Stage& whole, const Crossing& crossing, const Strategy& strategy, const CutCosts& costs,
                   const std::vector<std::size_t>& like)
    : position_(places_of(whole)), memory_(MemoryEstimate(whole, strategy, costs.backend, like).at(position_)) {
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
    longest_link_ = std::max(longest_link_, link(i));
    if (position_[time_.size()] == i) {
      sent_.push_back(crossing.bytes(i).value());
      time_.push_back(time);
      trains_.push_back(trained);
      link_.push_back(link(i));
    }
    if (i == steps) break;
    const Step& step = whole.steps[i];
    const bool known = !like.empty() && like[i] != i;
    times.push_back(known ? times[like[i]] : costs.time ? costs.time(whole, step) : flops(whole, step));
    time += times.back();
    trained += trains(whole, step) ? 1 : 0;
  }
  done_.assign(places(), time);
  for (std::size_t p = places() - 1; p-- > 0;) done_[p] = std::min(done_[p + 1], time_[p] + link_[p]);
}

// One cut. The later a stage begins, the later it may end. So stages laid from the front, each as far as it goes, tell
// how late each of them can end, and stages laid from the back how early.
class CutTable::Search {
 public:
  Search(const CutTable& table, const std::vector<int>& in_flight, Bytes capacity)
      : table_(table),
        in_flight_(in_flight),
        capacity_(capacity),
        stages_(in_flight.size()),
        end_(table.places() - 1) {}

  // Places where stages after the first begin.
  [[nodiscard]] std::vector<std::size_t> run() const {
    if (stages_ > end_ || static_cast<int>(stages_) > table_.trained_steps()) return {};
    const double best = slowest();
    return best < infinite ? narrowest(best * near_best) : std::vector<std::size_t>{};
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  // The slowest stage where each ends as soon as its even share is done: what the best cut is at least as good as.
  [[nodiscard]] double of_even_shares() const {
    double slowest = 0;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      const double share = table_.time_.back() * static_cast<double>(s + 1) / static_cast<double>(stages_);
      const std::size_t end = s + 1 == stages_ ? end_ : last_done_by(share);
      const bool stands = end > begin && trains(begin, end) && within(s, begin, end, infinite);
      if (!stands) return infinite;
      slowest = std::max(slowest, table_.cost(begin, end));
      begin = end;
    }
    return slowest;
  }

  [[nodiscard]] bool trains(std::size_t begin, std::size_t end) const {
    return table_.trains_[begin] < table_.trains_[end];
  }
  [[nodiscard]] bool holds(std::size_t stage, std::size_t begin, std::size_t end, double tolerance = 0) const {
    return capacity_.value() <= 0 || table_.memory_.of(begin, end, in_flight_[stage]) <= capacity_ * (1 + tolerance);
  }
  [[nodiscard]] bool within(std::size_t stage, std::size_t begin, std::size_t end, double limit) const {
    return table_.cost(begin, end) <= limit && holds(stage, begin, end);
  }
  // The last place before which no more time than this goes by.
  [[nodiscard]] std::size_t last_done_by(double time) const {
    const auto after = std::upper_bound(table_.time_.begin(), table_.time_.end(), time);
    return static_cast<std::size_t>(after - table_.time_.begin()) - 1;
  }

  // Sums are rounded: what bounds where stages may end must not be too strict.
  static constexpr double rounding = 1e-9;

  // Places [first, last] where a stage may end.
  struct Ends {
    std::size_t first, last;
  };
  // By stage, in so much time each: as far as those up to it come, if some were empty, and where those after it come to
  // the program's end; none where there is no cut.
  [[nodiscard]] std::vector<Ends> ends(double limit) const {
    limit *= 1 + rounding;
    std::vector<Ends> ends(stages_, {end_, end_});
    for (std::size_t s = stages_; s-- > 1;) {
      ends[s - 1].first = std::max(nearest(s, ends[s].first, limit), s);
      ends[s - 1].last = latest_begin(s, ends[s].last, limit);
    }
    for (std::size_t s = 0, begin = 0; s < stages_; ++s) {
      begin = furthest(s, begin, limit, rounding);
      ends[s].last = std::min(begin, ends[s].last);
      if (ends[s].last < ends[s].first) return {};
    }
    return ends;
  }

  // Where a stage begins last, if it ends here or earlier and trains something; the last one ends here. 0: nowhere.
  [[nodiscard]] std::size_t latest_begin(std::size_t stage, std::size_t end, double limit) const {
    const std::vector<int>& trains = table_.trains_;
    for (; trains[end] > 0; --end) {
      const auto from = std::lower_bound(trains.begin(), trains.end(), trains[end]) - trains.begin() - 1;
      const auto begin = static_cast<std::size_t>(from);
      if (table_.cost(begin, end) <= limit && holds(stage, begin, end, rounding)) return begin;
      if (stage + 1 == stages_) break;
    }
    return 0;
  }

  // How far a stage goes; to its begin where there is no end within limits.
  [[nodiscard]] std::size_t furthest(std::size_t stage, std::size_t begin, double limit, double tolerance = 0) const {
    std::size_t end = begin, beyond = last_done_by(table_.time_[begin] + limit) + 1;
    while (beyond <= end_ && table_.time_[beyond] - table_.time_[begin] <= limit) ++beyond;  // rounding
    if (holds(stage, begin, beyond - 1, tolerance)) end = beyond - 1;
    while (end + 1 < beyond) {
      const std::size_t middle = (end + beyond) / 2;
      (holds(stage, begin, middle, tolerance) ? end : beyond) = middle;
    }
    while (end > begin && table_.cost(begin, end) > limit) --end;
    return end;
  }
  // Before which place no stage begins that ends here or later.
  [[nodiscard]] std::size_t nearest(std::size_t stage, std::size_t end, double limit) const {
    const std::vector<double>& time = table_.time_;
    const auto found = std::lower_bound(time.begin(), time.end(), table_.done_[end] - limit);
    auto begin = static_cast<std::size_t>(found - time.begin());
    std::size_t last = end;
    while (begin < last) {
      const std::size_t middle = (begin + last) / 2;
      if (holds(stage, middle, end, rounding))
        last = middle;
      else
        begin = middle + 1;
    }
    return begin;
  }

  // Each stage as far as it goes among the places allowed; empty where one finds none.
  template <class Allowed>
  [[nodiscard]] std::vector<std::size_t> laid(double limit, const std::vector<Ends>& ends, Allowed&& allowed) const {
    std::vector<std::size_t> begins;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      std::size_t end = std::min(furthest(s, begin, limit), ends[s].last);
      while (end >= ends[s].first && trains(begin, end) && !(allowed(s, end) && table_.cost(begin, end) <= limit))
        --end;
      if (end < ends[s].first || !trains(begin, end)) return {};
      begins.push_back(begin = end);
    }
    begins.pop_back();
    return begins;
  }

  // Can every stage be done in so much time?
  [[nodiscard]] bool possible(double limit) const {
    const std::vector<Ends> ends = this->ends(limit);
    if (ends.empty()) return false;
    if (stages_ == 1 || !laid(limit, ends, [](std::size_t, std::size_t) { return true; }).empty()) return true;
    return !narrowest(limit, ends).empty();
  }

  // The least time of the slowest stage.
  [[nodiscard]] double slowest() const {
    constexpr double precision = 1e-3;
    double low = table_.time_.back() / static_cast<double>(stages_);
    double high = table_.time_.back() + table_.longest_link_;
    const double enough = of_even_shares();
    if (high < enough && !possible(high)) return infinite;
    while (high - low > precision * low) {
      const double middle = high > 2 * low ? low * std::sqrt(high / low) : (low + high) / 2;
      (middle >= enough || possible(middle) ? high : low) = middle;
    }
    return high;
  }

  // The cut that sends least where no stage takes longer than `limit`; of equal ones that of the latest begins. Where
  // stages laid over each one's narrowest places come to the end, there is none that sends less, and none later.
  [[nodiscard]] std::vector<std::size_t> narrowest(double limit) const {
    const std::vector<Ends> ends = this->ends(limit);
    const std::vector<double> least = least_sent(ends);
    std::vector<std::size_t> begins =
        laid(limit, ends, [&](std::size_t s, std::size_t end) { return table_.sent_[end] == least[s]; });
    return begins.empty() && stages_ > 1 ? narrowest(limit, ends) : begins;
  }

  // By stage: of the places where it may end.
  [[nodiscard]] std::vector<double> least_sent(const std::vector<Ends>& ends) const {
    std::vector<double> least;
    std::vector<std::size_t> rising;  // of the places so far, those that send less than all later ones
    std::size_t scanned = 0, kept = 0;
    for (const Ends& of : ends) {
      for (scanned = std::max(scanned, of.first); scanned <= of.last; ++scanned) {
        while (rising.size() > kept && table_.sent_[rising.back()] >= table_.sent_[scanned]) rising.pop_back();
        rising.push_back(scanned);
      }
      while (rising[kept] < of.first) ++kept;
      least.push_back(table_.sent_[rising[kept]]);
    }
    return least;
  }

  // Of any places within `ends`, stage after stage: a table over where the stages so far may end leads to that of one
  // stage more. Empty where no cut is within limits.
  [[nodiscard]] std::vector<std::size_t> narrowest(double limit, const std::vector<Ends>& ends) const {
    std::vector<std::vector<std::size_t>> from(stages_);                // by stage, and place from its first on
    std::vector<double> before(table_.places()), now(table_.places());  // bytes; good where they were reached
    const std::vector<double>& time = table_.time_;
    before[0] = 0;
    Ends reached{0, 0};
    std::vector<std::size_t> best;  // of the places before, those that send less than all later ones
    for (std::size_t s = 0; s < stages_; ++s) {
      const auto [first, last] = ends[s];
      bool any = false;
      best.clear();
      std::size_t scanned = reached.first, kept = 0;
      for (std::size_t end = first; end <= last; ++end) {
        for (; scanned < end && scanned <= reached.last && trains(scanned, end); ++scanned) {
          if (before[scanned] == infinite) continue;
          while (best.size() > kept && before[best.back()] >= before[scanned]) best.pop_back();
          best.push_back(scanned);
        }
        const auto too_far = [&](std::size_t begin) {
          return time[end] - time[begin] > limit || !holds(s, begin, end);
        };
        while (kept < best.size() && too_far(best[kept])) ++kept;
        std::size_t from_here = kept;
        while (from_here < best.size() && table_.cost(best[from_here], end) > limit) ++from_here;
        const bool stands = from_here < best.size();
        now[end] = stands ? before[best[from_here]] + table_.sent_[end] : infinite;
        from[s].push_back(stands ? best[from_here] : 0);
        any = any || stands;
      }
      if (!any) return {};
      reached = ends[s];
      std::swap(before, now);
    }
    std::vector<std::size_t> begins(stages_ - 1);
    std::size_t end = end_;
    for (std::size_t s = stages_; s-- > 1;) begins[s - 1] = end = from[s][end - ends[s].first];
    return begins;
  }

  const CutTable& table_;
  const std::vector<int>& in_flight_;
  Bytes capacity_;
  std::size_t stages_;
  std::size_t end_;  // the last place
};

std::vector<std::size_t> CutTable::cut(const std::vector<int>& in_flight, Bytes capacity) {
  const auto [unlimited, added] = unlimited_.try_emplace(in_flight.size());
  if (added) unlimited->second = Search(*this, in_flight, Bytes{}).run();
  std::vector<std::size_t> begins = unlimited->second;
  if (capacity.value() > 0 && !begins.empty() && !fits(begins, in_flight, capacity))
    begins = Search(*this, in_flight, capacity).run();
  for (std::size_t& begin : begins) begin = position_[begin];
  return begins;
}

bool CutTable::fits(const std::vector<std::size_t>& begins, const std::vector<int>& in_flight, Bytes capacity) const {
  for (std::size_t s = 0; s < in_flight.size(); ++s) {
    const std::size_t begin = s == 0 ? 0 : begins[s - 1], end = s < begins.size() ? begins[s] : places() - 1;
    if (memory_.of(begin, end, in_flight[s]) > capacity) return false;
  }
  return true;
}

}  // namespace sibyl
