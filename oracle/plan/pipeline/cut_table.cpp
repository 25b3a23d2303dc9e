#include "oracle/plan/pipeline/cut_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>

#include "models/training/training.h"

namespace sibyl {
namespace {

constexpr double near_best = 1.02;

// The first of ascending values that is not below(): looked for from `near` on, in steps that double. Where a stage
// ends is mostly not far from where it begins.
template <class Below>
std::size_t first_not(const std::vector<double>& values, std::size_t near, Below&& below) {
  std::size_t low = 0, high = values.size(), step = 1;
  if (below(values[near])) {
    for (low = near + 1; low + step <= high && below(values[low + step - 1]); step *= 2) low += step;
    high = std::min(high, low + step - 1);
  } else {
    for (high = near; high >= step && !below(values[high - step]); step *= 2) high -= step;
    low = high >= step ? high - step + 1 : 0;
  }
  const auto begin = values.begin();
  return static_cast<std::size_t>(
      std::partition_point(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), below) -
      begin);
}

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
    longest_link_ = std::max(longest_link_, link(i));
    if (places.position(time_.size()) == i) {
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
  begins_.assign(time_.size(), 0);
  for (std::size_t p = 1; p < time_.size(); ++p) begins_[p] = trains_[p] > trains_[p - 1] ? p : begins_[p - 1];
  done_.assign(time_.size(), time);
  for (std::size_t p = time_.size() - 1; p-- > 0;) done_[p] = std::min(done_[p + 1], time_[p] + link_[p]);
}

// One cut. The later a stage begins, the later it may end. So stages laid from the front, each as far as it goes, tell
// how late each of them can end, and stages laid from the back how early.
class CutTable::Search {
 public:
  Search(const CutTable& table, std::size_t stages, const MemoryLimit* limit)
      : table_(table), limit_(limit), stages_(stages), end_(table.places() - 1) {
    if (limit) share_devices();
  }

  // Places where stages after the first begin.
  [[nodiscard]] std::vector<std::size_t> run() const {
    if (stages_ > end_ || static_cast<int>(stages_) > table_.trained_steps()) return {};
    const double best = slowest();
    return best < infinite ? narrowest(best * near_best) : std::vector<std::size_t>{};
  }
  // In any time.
  [[nodiscard]] bool may_be() const {
    return stages_ <= end_ && static_cast<int>(stages_) <= table_.trained_steps() &&
           !ends(2 * (table_.time_.back() + table_.longest_link_)).empty();
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  // A device's stages fill it together: each has a share of it, and as many micro-batches as they have on average.
  void share_devices() {
    const std::size_t devices = limit_->devices, chunks = stages_ / devices;
    share_ = 1.0 / static_cast<double>(chunks);
    micro_batches_.assign(stages_, {0, 0});
    for (std::size_t s = 0; s < stages_; ++s)
      for (std::size_t other = s % devices; other < stages_; other += devices) {
        micro_batches_[s].all += limit_->micro_batches[other].all * share_;
        micro_batches_[s].later += limit_->micro_batches[other].later * share_;
      }
  }

  // The slowest stage where each ends as soon as its even share is done: what the best cut is at least as good as.
  [[nodiscard]] double of_even_shares() const {
    double slowest = 0;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      const double share = table_.time_.back() * static_cast<double>(s + 1) / static_cast<double>(stages_);
      const std::size_t end = s + 1 == stages_ ? end_ : last_done_by(share, begin);
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
    if (!limit_) return true;
    const StageMemory::Need need = limit_->memory.of(begin, end, micro_batches_[stage]);
    return need.resting + need.passing * share_ <= limit_->each.value() * share_ * (1 + tolerance);
  }
  [[nodiscard]] bool within(std::size_t stage, std::size_t begin, std::size_t end, double limit) const {
    return table_.cost(begin, end) <= limit && holds(stage, begin, end);
  }
  // The last place before which no more time than this goes by, looked for from `near` on.
  [[nodiscard]] std::size_t last_done_by(double time, std::size_t near) const {
    return first_not(table_.time_, near, [time](double before) { return before <= time; }) - 1;
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
    // Where one comes no further than those before it, these have to leave it something.
    for (std::size_t s = stages_; s-- > 1;) {
      ends[s - 1].last = std::min(ends[s - 1].last, latest_begin(s, ends[s].last, limit));
      if (ends[s - 1].last < ends[s - 1].first) return {};
    }
    return ends;
  }

  // Where a stage begins last, if it ends here or earlier and trains something; the last one ends here. 0: nowhere.
  [[nodiscard]] std::size_t latest_begin(std::size_t stage, std::size_t end, double limit) const {
    for (; table_.begins_[end] > 0; --end) {
      const std::size_t begin = table_.begins_[end] - 1;
      if (table_.cost(begin, end) <= limit && holds(stage, begin, end, rounding)) return begin;
      if (stage + 1 == stages_) break;
    }
    return 0;
  }

  // How far a stage goes; to its begin where there is no end within limits.
  [[nodiscard]] std::size_t furthest(std::size_t stage, std::size_t begin, double limit, double tolerance = 0) const {
    std::size_t end = begin, beyond = last_done_by(table_.time_[begin] + limit, begin) + 1;
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
    const double from = table_.done_[end] - limit;
    std::size_t begin = first_not(table_.time_, end, [from](double before) { return before < from; });
    if (begin < end && holds(stage, begin, end, rounding)) return begin;  // mostly
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
    return stages_ == 1 || reach_end(limit, ends) || !narrowest(limit, ends).empty();
  }

  // Do stages come to the end that are laid each as far as it goes, or a little less? Where a stage's last places send
  // much, the one before it may have to leave it less. False does not say that there is no cut.
  [[nodiscard]] bool reach_end(double limit, const std::vector<Ends>& ends) const {
    constexpr std::size_t most = 8;
    std::vector<std::size_t> begins{0}, reached;  // the last first
    for (std::size_t s = 0; s < stages_; ++s) {
      reached.clear();
      std::size_t end = std::min(furthest(s, begins.front(), limit), ends[s].last);
      for (; end >= ends[s].first && reached.size() < most; --end) {
        const auto begin = std::ranges::find_if(begins, [&](std::size_t b) { return b < end && trains(b, end); });
        if (begin == begins.end()) break;
        if (within(s, *begin, end, limit)) reached.push_back(end);
      }
      if (reached.empty()) return false;
      std::swap(begins, reached);
    }
    return true;
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
    std::vector<std::size_t> from_at(stages_);  // of `from`: where a stage's begin, less its first place
    std::size_t all = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      from_at[s] = all - ends[s].first;
      all += ends[s].last - ends[s].first + 1;
    }
    const auto from = std::make_unique_for_overwrite<std::uint32_t[]>(all);  // by stage, and place from its first on
    std::vector<double> before(table_.places()), now(table_.places());  // bytes; good where they were reached
    before[0] = 0;
    Ends reached{0, 0};
    std::vector<std::size_t> best;  // of the places before, those that send less than all later ones
    for (std::size_t s = 0; s < stages_; ++s) {
      const auto [first, last] = ends[s];
      bool any = false;
      best.clear();
      std::size_t scanned = reached.first, kept = 0;
      Reach reach(*this, s, limit);
      for (std::size_t end = first; end <= last; ++end) {
        for (const std::size_t to = std::min(table_.begins_[end], reached.last + 1); scanned < to; ++scanned) {
          if (before[scanned] == infinite) continue;
          while (best.size() > kept && before[best.back()] >= before[scanned]) best.pop_back();
          best.push_back(scanned);
        }
        while (kept < best.size() && !reach.covers(best[kept], end)) ++kept;
        const auto too_slow = [&](std::size_t b) { return table_.cost(b, end) > limit; };
        auto from_here = best.begin() + static_cast<std::ptrdiff_t>(kept);
        if (from_here != best.end() && too_slow(*from_here))
          from_here = std::partition_point(from_here, best.end(), too_slow);
        const bool stands = from_here != best.end();
        now[end] = stands ? before[*from_here] + table_.sent_[end] : infinite;
        from[from_at[s] + end] = static_cast<std::uint32_t>(stands ? *from_here : 0);
        any = any || stands;
      }
      if (!any) return {};
      reached = ends[s];
      std::swap(before, now);
    }
    std::vector<std::size_t> begins(stages_ - 1);
    std::size_t end = end_;
    for (std::size_t s = stages_; s-- > 1;) begins[s - 1] = end = from[from_at[s] + end];
    return begins;
  }

  // How far a stage reaches without what it sends, of begins and ends that never fall: a later begin reaches no less.
  // Memory is asked about as far as time allows first, then in steps that double, for it takes the most of a cut's
  // time.
  class Reach {
   public:
    Reach(const Search& search, std::size_t stage, double limit)
        : search_(search), time_(search.table_.time_), stage_(stage), limit_(limit), beyond_(search.end_ + 1) {}

    [[nodiscard]] bool covers(std::size_t begin, std::size_t end) {
      if (time_[end] - time_[begin] > limit_) return false;
      if (end <= known_ || !search_.limit_) return true;
      if (begin == begin_ && end >= beyond_) return false;
      if (begin != begin_) {
        step_ = 1, begin_ = begin, beyond_ = search_.end_ + 1;
        std::size_t far = end;  // as time allows
        while (far < search_.end_ && time_[far + 1] - time_[begin] <= limit_) ++far;
        if (search_.holds(stage_, begin, far)) {
          known_ = far;
          return true;
        }
        beyond_ = far;
        if (far == end) return false;
      }
      if (!search_.holds(stage_, begin, end)) {
        beyond_ = end;
        return false;
      }
      known_ = end;
      for (std::size_t ahead = end + step_; ahead < beyond_ && search_.holds(stage_, begin, ahead); ahead += step_) {
        known_ = ahead;
        step_ *= 2;
      }
      return true;
    }

   private:
    const Search& search_;
    const std::vector<double>& time_;
    std::size_t stage_;
    double limit_;
    std::size_t begin_ = 0, known_ = 0;  // up to there it holds from `begin_`, and from any later one
    std::size_t beyond_, step_ = 1;      // from there on it does not
  };

  const CutTable& table_;
  const MemoryLimit* limit_;
  std::vector<OnTheWay> micro_batches_;  // by stage, where there is a limit
  double share_ = 1;                     // of a device, that a stage has
  std::size_t stages_;
  std::size_t end_;  // the last place
};

bool CutTable::possible(std::size_t stages, const MemoryLimit& limit) const {
  return Search(*this, stages, &limit).may_be();
}

std::vector<std::size_t> CutTable::cut(std::size_t stages, const MemoryLimit* limit) {
  const auto [unlimited, added] = unlimited_.try_emplace(stages);
  if (added) unlimited->second = Search(*this, stages, nullptr).run();
  std::vector<std::size_t> begins = unlimited->second;
  if (limit && !begins.empty() && !fits(begins, *limit)) begins = Search(*this, stages, limit).run();
  for (std::size_t& begin : begins) begin = places_.position(begin);
  return begins;
}

bool CutTable::fits(const std::vector<std::size_t>& begins, const MemoryLimit& limit) const {
  for (std::size_t device = 0; device < limit.devices; ++device) {
    StageMemory::Need all;
    for (std::size_t s = device; s <= begins.size(); s += limit.devices) {
      const std::size_t begin = s == 0 ? 0 : begins[s - 1], end = s < begins.size() ? begins[s] : places() - 1;
      const StageMemory::Need own = limit.memory.of(begin, end, limit.micro_batches[s]);
      all.resting += own.resting;
      all.passing = std::max(all.passing, own.passing);
    }
    if (all.resting + all.passing > limit.each.value()) return false;
  }
  return true;
}

}  // namespace sibyl
