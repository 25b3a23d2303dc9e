#include "oracle/memory/reuse.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sibyl {
namespace {

// Sums over the bytes that were last touched behind a place in the order of touches (Fenwick 1994).
class LastTouched {
 public:
  explicit LastTouched(std::size_t places) : sums_(places + 1, 0.0) {}

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

}  // namespace

Reuse::Address Reuse::take(double bytes) {
  std::vector<Address>& alike = free_[bytes];
  if (alike.empty()) {
    pieces_.push_back({bytes, 0, true});
    return pieces_.size() - 1;
  }
  const Address address = alike.back();
  alike.pop_back();
  pieces_[address].taken = true;
  return address;
}

void Reuse::give(Address address) {
  Piece& piece = pieces_[address];
  if (!std::exchange(piece.taken, false)) return;
  free_[piece.bytes].push_back(address);
}

Reuse::Address Reuse::fixed(const MemoryOwner& owner, double bytes) {
  const auto [entry, added] = fixed_.try_emplace({owner, bytes}, pieces_.size());
  if (added) pieces_.push_back({bytes, 0, false});
  return entry->second;
}

void Reuse::kernel(const Stage* stage, std::optional<StageKernels::Index> key, Seconds time) {
  began_.push_back({stage, key, touches_.size(), now_});
  now_ += time;
}

void Reuse::touch(Address address, Warm warm) {
  Piece& piece = pieces_[address];
  if (piece.bytes <= 0 || piece.touched_by == began_.size()) return;
  piece.touched_by = began_.size();
  touches_.push_back({address, warm});
}

void Reuse::again() {
  for (Address address = 0; address < pieces_.size(); ++address) give(address);
  kernel(nullptr, {});
  step_begun_ = began_.size() - 1;
}

std::vector<Reuse::Run> Reuse::runs() const {
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  struct Last {
    std::size_t touch = 0;
    Seconds at;
  };
  const std::vector<Bytes> apart = apart_in_a_step();
  std::vector<Run> runs;
  std::vector<std::optional<Last>> last(pieces_.size());
  LastTouched since(touches_.size());
  for (std::size_t r = 0; r < began_.size(); ++r) {
    const Began& began = began_[r];
    const std::size_t end = r + 1 < began_.size() ? began_[r + 1].first : touches_.size();
    const bool counts = r >= step_begun_ && began.key;
    if (counts) runs.push_back({began.stage, *began.key, {}});
    for (std::size_t t = began.first; t < end; ++t) {
      const double bytes = pieces_[touches_[t].address].bytes;
      std::optional<Last>& touched = last[touches_[t].address];
      if (const Warm warm = touches_[t].warm; counts && warm != Warm::always) {
        ReuseCurve::Since how_long{Bytes{unlimited}, {}};
        if (touched) how_long = {Bytes{since.from(touched->touch)}, began.at - touched->at};
        runs.back().touches.push_back({Bytes{bytes}, how_long, apart[touches_[t].address], warm == Warm::when_timed});
      }
      if (touched) since.add(touched->touch, -bytes);
      touched = Last{t, began.at};
      since.add(t, bytes);
    }
  }
  return runs;
}

// What was made right before comes from the cache's first levels: the last one does not see it.
std::vector<Bytes> Reuse::apart_in_a_step() const {
  std::vector<int> times(pieces_.size(), 0);
  double all = 0;
  for (std::size_t t = began_[step_begun_].first; t < touches_.size(); ++t) {
    if (touches_[t].warm == Warm::always) continue;
    ++times[touches_[t].address];
    all += pieces_[touches_[t].address].bytes;
  }
  std::vector<Bytes> apart;
  for (const int n : times) apart.emplace_back(all / std::max(1, n));
  return apart;
}

Bytes Reuse::step() const {
  std::vector<bool> seen(pieces_.size(), false);
  double all = 0;
  for (std::size_t t = began_[step_begun_].first; t < touches_.size(); ++t) {
    const Address address = touches_[t].address;
    if (!seen[address]) all += pieces_[address].bytes;
    seen[address] = true;
  }
  return Bytes{all};
}

}  // namespace sibyl
