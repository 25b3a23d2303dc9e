// What goes round in ring attention while its kernels compute.
//
// A rank computes with one of p parts of the keys and values while the next one comes: kernels of length g hide up to
// g (p - 1) / p of their messages, as far as the two do not slow each other. Beside messages kernels go on at 1/s of
// their speed and messages at 1/r of theirs (`Slowdown`): messages of length c are over after r c, of which kernels
// lose r c (1 - 1/s), if that is within the kernels' s g (p - 1) / p; else what is left of them then is waited for.
#pragma once

#include "oracle/cost/price.h"
#include "oracle/simulate/streams.h"

namespace sibyl {

// Takes what attention hides off the exchanges that go round; kernels and exchanges are priced.
void hide_behind_attention(const Stage& stage, const Slowdown& slowdown, PricedStage& priced);

}  // namespace sibyl
