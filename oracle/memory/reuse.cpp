#include "oracle/memory/reuse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace sibyl {
namespace {

double bytes_of(const Reuse::Memory& memory) { return static_cast<double>(memory.end - memory.begin); }

// Sums over the bytes that were last touched behind a place in the order of touches (Fenwick 1994).
class BytesSince {
 public:
  explicit BytesSince(std::size_t places) : sums_(places + 1, 0.0) {}

  void add(std::size_t place, double bytes) {
    for (std::size_t i = place + 1; i < sums_.size(); i += i & -i) sums_[i] += bytes;
    all_ += bytes;
  }
  [[nodiscard]] double from(std::size_t place) const {
    double before = 0;
    for (std::size_t i = place; i > 0; i -= i & -i) before += sums_[i];
    return all_ - before;
  }

 private:
  std::vector<double> sums_;
  double all_ = 0;
};

// Which touch of each byte was the last, whatever lay there.
class LastTouches {
 public:
  explicit LastTouches(std::size_t touches) : since_(touches) {}

  // Tells of each part of one past; what was never touched has none.
  template <typename Tell>
  void touch(const Reuse::Memory& memory, std::size_t number, Seconds now, Tell tell) {
    cut(memory.begin);
    cut(memory.end);
    auto part = parts_.lower_bound(memory.begin);
    for (Heap::Address at = memory.begin; at < memory.end;) {
      const bool known = part != parts_.end() && part->first == at;
      const Heap::Address ends = known                  ? part->second.end
                                 : part == parts_.end() ? memory.end
                                                        : std::min(part->first, memory.end);
      std::optional<ReuseCurve::Since> last;
      if (known) last = {Bytes{since_.from(part->second.touch)}, now - part->second.at};
      tell(Reuse::Memory{at, ends}, last);
      if (known) ++part;
      at = ends;
    }
    for (auto old = parts_.lower_bound(memory.begin); old != part; old = parts_.erase(old))
      since_.add(old->second.touch, -bytes_of({old->first, old->second.end}));
    parts_.emplace(memory.begin, Part{memory.end, number, now});
    since_.add(number, bytes_of(memory));
  }

 private:
  struct Part {
    Heap::Address end = 0;
    std::size_t touch = 0;
    Seconds at;
  };
  void cut(Heap::Address at) {
    auto part = parts_.lower_bound(at);
    if (part == parts_.begin()) return;
    --part;
    if (part->first == at || part->second.end <= at) return;
    Part behind = part->second;
    part->second.end = at;
    parts_.emplace(at, behind);
  }

  std::map<Heap::Address, Part> parts_;
  BytesSince since_;
};

// How often bytes were touched.
class Counts {
 public:
  void add(const Reuse::Memory& memory) {
    changes_[memory.begin] += 1;
    changes_[memory.end] -= 1;
  }
  void sum_up() {
    int times = 0;
    double all = 0;
    std::optional<Heap::Address> from;
    for (const auto& [at, change] : changes_) {
      if (from) all += times * bytes_of({*from, at});
      times += change;
      from = at;
      sums_.push_back({at, times, all});
    }
    changes_.clear();
  }
  [[nodiscard]] double all() const { return sums_.empty() ? 0 : sums_.back().all; }
  [[nodiscard]] double mean(const Reuse::Memory& memory) const {
    return (before(memory.end) - before(memory.begin)) / bytes_of(memory);
  }

 private:
  struct Sum {
    Heap::Address from = 0;
    int times = 0;   // from here on
    double all = 0;  // of all bytes before
  };
  [[nodiscard]] double before(Heap::Address at) const {
    const auto next =
        std::upper_bound(sums_.begin(), sums_.end(), at, [](Heap::Address a, const Sum& s) { return a < s.from; });
    if (next == sums_.begin()) return 0;
    const Sum& sum = *std::prev(next);
    return sum.all + sum.times * bytes_of({sum.from, at});
  }

  std::map<Heap::Address, int> changes_;
  std::vector<Sum> sums_;
};

}  // namespace

Reuse::Memory Reuse::take(double bytes) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(bytes));
  if (whole == 0) return {};
  const Heap::Address begin = heap_.take(whole);
  return {begin, begin + whole};
}

void Reuse::give(const Memory& memory) {
  if (memory != Memory{}) heap_.give(memory.begin);
}

Reuse::Memory Reuse::fixed(const MemoryOwner& owner, double bytes) {
  const auto [entry, added] = fixed_.try_emplace({owner, bytes});
  if (added) {
    entry->second.begin = fixed_end_;
    entry->second.end = fixed_end_ += static_cast<std::uint64_t>(std::ceil(bytes));
  }
  return entry->second;
}

void Reuse::kernel(const Stage* stage, std::optional<StageKernels::Index> key, Seconds time) {
  began_.push_back({stage, key, touches_.size(), now_});
  touched_by_kernel_.clear();
  now_ += time;
}

void Reuse::touch(const Memory& memory, Warm warm) {
  if (memory.begin < memory.end && touched_by_kernel_.insert(memory.begin).second) touches_.push_back({memory, warm});
}

void Reuse::again() {
  heap_.give_all();
  kernel(nullptr, {});
  step_begun_ = began_.size() - 1;
}

// What was made right before comes from the cache's first levels: the last one does not see it.
std::vector<Reuse::Run> Reuse::runs() const {
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  Counts counts;
  for (std::size_t t = began_[step_begun_].first; t < touches_.size(); ++t)
    if (touches_[t].warm != Warm::always) counts.add(touches_[t].memory);
  counts.sum_up();
  std::vector<Run> runs;
  LastTouches last_touches(touches_.size());
  for (std::size_t r = 0; r < began_.size(); ++r) {
    const Began& began = began_[r];
    const std::size_t end = r + 1 < began_.size() ? began_[r + 1].first : touches_.size();
    const bool counts_here = r >= step_begun_ && began.key;
    if (counts_here) runs.push_back({began.stage, *began.key, {}});
    for (std::size_t t = began.first; t < end; ++t)
      last_touches.touch(touches_[t].memory, t, began.at,
                         [&](const Memory& part, const std::optional<ReuseCurve::Since>& last) {
                           const Warm warm = touches_[t].warm;
                           if (!counts_here || warm == Warm::always) return;
                           runs.back().touches.push_back(
                               {Bytes{bytes_of(part)}, last.value_or(ReuseCurve::Since{Bytes{unlimited}, {}}),
                                Bytes{counts.all() / std::max(1.0, counts.mean(part))}, warm == Warm::when_timed});
                         });
  }
  return runs;
}

Bytes Reuse::step() const {
  std::vector<Memory> touched;
  for (std::size_t t = began_[step_begun_].first; t < touches_.size(); ++t) touched.push_back(touches_[t].memory);
  std::sort(touched.begin(), touched.end(), [](const Memory& a, const Memory& b) { return a.begin < b.begin; });
  double all = 0;
  Heap::Address counted = 0;
  for (const Memory& memory : touched) {
    const Heap::Address begin = std::max(counted, memory.begin);
    if (begin < memory.end) all += bytes_of({begin, memory.end});
    counted = std::max(counted, memory.end);
  }
  return Bytes{all};
}

}  // namespace sibyl
