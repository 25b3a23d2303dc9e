// Rounds of an algorithm, one after the other: what they take together. In each a rank sends a message and waits for
// another; where the wire between nodes has a token bucket, what rounds send empties it.
#pragma once

#include "netmodel/collective/wire.h"

namespace sibyl::collective {

class Rounds {
 public:
  explicit Rounds(const Wire& wire) : wire_(wire) {}

  // As Wire's.
  void inside(double bytes, int at_once) { rest(wire_.inside(bytes, at_once)); }
  void across(double bytes, int flows, int nodes, bool far) { beside(0.0, bytes, flows, nodes, far); }
  // Those that leave the node beside others in it, which take so long.
  void beside(double others, double bytes, int flows, int nodes, bool far) {
    const double alone = wire_.across(bytes, flows, nodes, far);
    const TokenBucket bucket = wire_.bucket(flows, nodes, far);
    const double takes = bucket.held > 0 ? level_.next(bucket, alone, bytes) : alone;
    empties_ = empties_ || bucket.held > 0;
    seconds_ += takes;
    if (others > takes) rest(others - takes);
  }
  [[nodiscard]] double seconds() const { return seconds_; }
  // Whether the same rounds once more may take longer.
  [[nodiscard]] bool empties() const { return empties_; }

 private:
  void rest(double seconds) {
    seconds_ += seconds;
    level_.passes(seconds);
  }

  const Wire& wire_;
  BucketLevel level_;
  double seconds_ = 0.0;
  bool empties_ = false;
};

}  // namespace sibyl::collective
