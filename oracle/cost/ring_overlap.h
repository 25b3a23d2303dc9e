// What goes round in ring attention while its kernels compute.
//
// A rank computes with one of p parts of the keys and values while the next one comes: kernels of length g hide up to
// g (p - 1) / p of their messages, as far as the two do not slow each other. Beside messages kernels go on at 1/s of
// their speed and messages at 1/r of theirs (`Slowdown`): messages of length c are over after r c, of which kernels
// lose r c (1 - 1/s), if that is within the kernels' s g (p - 1) / p; else what is left of them then is waited for.
#pragma once

#include <vector>

#include "oracle/cost/price.h"
#include "oracle/simulate/streams.h"

namespace sibyl {

// Attention, and the exchanges that go round beside it.
struct Ring {
  std::size_t attention = 0;  // step
  int ranks = 1;
  std::vector<std::size_t> exchanges;  // steps, in their order
};
std::vector<Ring> rings(const Stage& stage);

// One pass of one of them: what its exchanges, one after the other, are waited for.
class BesideAttention {
 public:
  BesideAttention(Seconds kernel, int ranks, const Slowdown& slowdown);  // the last must outlive it
  Seconds waited(Seconds alone);

 private:
  Seconds left_;  // of the kernels
  const Slowdown& slowdown_;
};

// Takes what attention hides off the exchanges that go round; kernels and exchanges are priced.
void hide_behind_attention(const Stage& stage, const Slowdown& slowdown, PricedStage& priced);

}  // namespace sibyl
