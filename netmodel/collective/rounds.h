// Rounds of an algorithm, one after the other: what they take together. In each a rank sends a message and waits for
// another; where the wire between nodes has a token bucket, what rounds send empties it.
#pragma once

#include <algorithm>

#include "netmodel/collective/wire.h"

namespace sibyl::collective {

class Rounds {
 public:
  explicit Rounds(const Wire& wire) : wire_(wire) {}

  // As Wire's.
  void inside(const Ranged& bytes, int at_once) { rest(wire_.inside(bytes, at_once)); }
  void across(const Ranged& bytes, int flows, int nodes, Reach reach) { beside(0.0, bytes, flows, nodes, reach); }
  // Those that leave the node beside others in it, which take so long.
  void beside(const Ranged& others, const Ranged& bytes, int flows, int nodes, Reach reach) {
    const int stripes = wire_.stripes(1);
    const Ranged part = bytes / stripes, alone = wire_.across(part, flows * stripes, nodes, reach);
    const TokenBucket bucket = wire_.bucket(flows * stripes, nodes, reach);
    const Ranged takes = bucket.held > 0 ? level_.next(bucket, alone, part) : alone;
    empties_ = empties_ || bucket.held > 0;
    seconds_ += takes;
    rest(max(0.0, others - takes));
  }
  // Of those that are partners at that distance (0: that fold), in the node or outside.
  void between_partners(const Ranged& bytes, const Fold& fold, const GroupPlacement& placement, int distance) {
    const auto [ranks, nodes, groups, missing] = placement;
    const Partners they = wire_.meet(fold, placement, distance);
    if (they.outside == 0) return inside(bytes, they.inside * groups);
    // They lie in one block of twice that many; where some folded, every other rank of it counts.
    const int block = distance == 0 ? 2 : distance * (fold.extra > 0 ? 4 : 2);
    const Ranged others = they.inside > 0 ? wire_.inside(bytes, they.inside * groups) : 0.0;
    beside(others, bytes, they.outside * groups, std::clamp((block + ranks - 1) / ranks, 2, nodes), to_the_top);
  }
  [[nodiscard]] const Ranged& seconds() const { return seconds_; }
  // Whether the same rounds once more may take longer.
  [[nodiscard]] bool empties() const { return empties_; }

 private:
  void rest(const Ranged& seconds) {
    seconds_ += seconds;
    level_.passes(seconds);
  }

  const Wire& wire_;
  BucketLevel level_;
  Ranged seconds_;
  bool empties_ = false;
};

}  // namespace sibyl::collective
