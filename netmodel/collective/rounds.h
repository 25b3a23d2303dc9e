// Rounds of an algorithm, one after the other: what they take together. In each a rank sends a message and waits for
// another; where the wire between nodes has a token bucket, what rounds send empties it.
#pragma once

#include "netmodel/collective/wire.h"

namespace sibyl::collective {

class Rounds {
 public:
  explicit Rounds(const Wire& wire) : wire_(wire) {}

  // As Wire's.
  void inside(const Ranged& bytes, int at_once) { rest(wire_.inside(bytes, at_once)); }
  void across(const Ranged& bytes, int flows, int nodes, bool far) { beside(0.0, bytes, flows, nodes, far); }
  // Those that leave the node beside others in it, which take so long.
  void beside(const Ranged& others, const Ranged& bytes, int flows, int nodes, bool far) {
    const Ranged alone = wire_.across(bytes, flows, nodes, far);
    const TokenBucket bucket = wire_.bucket(flows, nodes, far);
    const Ranged takes = bucket.held > 0 ? level_.next(bucket, alone, bytes) : alone;
    empties_ = empties_ || bucket.held > 0;
    seconds_ += takes;
    rest(max(0.0, others - takes));
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
