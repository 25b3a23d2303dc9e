#include "netmodel/fabric/schedule/rounds.h"

namespace sibyl::fabric {

void fold(Rounds& rounds, const collective::Fold& fold, double bytes, const At& at, bool back) {
  if (fold.extra == 0) return;
  Round& round = rounds.add(back ? "sums go back to those that folded" : "fold to a power of two");
  for (int rank = 0; rank < 2 * fold.extra; rank += 2)
    round.messages.push_back(back ? Message{at(rank + 1), at(rank), bytes} : Message{at(rank), at(rank + 1), bytes});
}

void exchange(Rounds& rounds, const std::string& what, const collective::Fold& fold, int distance,
              const std::function<double(int number)>& bytes, const At& at) {
  Round& round = rounds.add(what);
  for (int number = 0; number < fold.core; ++number)
    round.messages.push_back({at(fold.outer(number)), at(fold.outer(number ^ distance)), bytes(number)});
}

void recursive_doubling(Rounds& rounds, int size, const At& at) {
  const collective::Fold core = collective::Fold::of(size);
  fold(rounds, core, 1.0, at, false);
  for (int distance = 1; distance < core.core; distance *= 2)
    exchange(
        rounds, "exchange all with the rank at distance " + std::to_string(distance), core, distance,
        [](int) { return 1.0; }, at);
  fold(rounds, core, 1.0, at, true);
}

void rabenseifner(Rounds& rounds, double share, int size, const At& at) {
  const collective::Fold core = collective::Fold::of(size);
  fold(rounds, core, share, at, false);
  std::vector<collective::Halving> held(static_cast<std::size_t>(core.core), collective::Halving(core.core));
  const auto bytes_of = [&](const collective::Range& parts) {
    return share * static_cast<double>(parts.size()) / core.core;
  };
  const auto held_by = [&](int number) -> collective::Halving& { return held[static_cast<std::size_t>(number)]; };
  int steps = 0;
  for (int distance = 1; distance < core.core; distance *= 2, ++steps) {
    exchange(
        rounds, "halving with the rank at distance " + std::to_string(distance), core, distance,
        [&](int number) { return bytes_of(held_by(number).given(number, steps)); }, at);
    for (int number = 0; number < core.core; ++number) held_by(number).parts = held_by(number).kept(number, steps);
  }
  double parts = share / core.core;
  for (int distance = core.core / 2; distance >= 1; distance /= 2, parts *= 2)
    exchange(
        rounds, "doubling with the rank at distance " + std::to_string(distance), core, distance,
        [&](int) { return parts; }, at);
  fold(rounds, core, share, at, true);
}

}  // namespace sibyl::fabric
