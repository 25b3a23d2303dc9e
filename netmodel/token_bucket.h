// A token bucket, as shaped wires have one (tc tbf, virtual NICs of clouds): after a pause so many bytes pass at once,
// the burst; what follows goes at the wire's rate, at which the bucket fills again. A message alone, after a pause, of
// s bytes takes a + max(0, s - burst) * pace. Of n that follow one another as soon as each has arrived the bucket helps
// once: they take no less than a + (n s - burst) * pace, however short each of them is.
//
// Held as time: what the wire takes for the burst. k flows that share a wire have 1/k of burst and rate each, and so
// the same time.
#pragma once

#include "netmodel/ranged.h"

namespace sibyl {

struct TokenBucket {
  double pace = 0.0;  // seconds a byte of the wire
  double held = 0.0;  // seconds of the wire that pass at once; 0: there is no bucket

  [[nodiscard]] double burst() const { return pace > 0 ? held / pace : 0.0; }

  // Rounds of messages of `bytes`, each of which takes `alone` after a pause, one after the other from a full bucket.
  [[nodiscard]] Ranged rounds(const Ranged& alone, const Ranged& bytes, int times) const {
    const Ranged each = times * alone;
    if (held <= 0 || times <= 1) return each;
    const Ranged wire = bytes * pace;
    return max(each, alone + (times - 1) * wire - max(0.0, held - wire));
  }
};

// What rounds of unlike messages, one after the other, have left of a bucket.
class BucketLevel {
 public:
  // What the next round takes, of messages of `bytes` that take `alone` after a pause.
  Ranged next(const TokenBucket& bucket, const Ranged& alone, const Ranged& bytes) {
    const Ranged wire = bytes * bucket.pace, left = max(0.0, bucket.held - spent_);
    const Ranged takes = alone + max(0.0, min(bucket.held, wire) - left);
    spent_ = min(bucket.held, max(0.0, spent_ + wire - takes));
    return takes;
  }
  // Time in which nothing is sent.
  void passes(const Ranged& seconds) { spent_ = max(0.0, spent_ - seconds); }

 private:
  Ranged spent_;  // seconds of the wire
};

}  // namespace sibyl
