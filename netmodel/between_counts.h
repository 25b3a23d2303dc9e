// Collectives measured among few ranks of a node and among many: what they say of a count between.
//
// The shortest times grow with the steps, which are proportional to the ranks: a straight line. What more bytes take is
//   * where each byte is as fast or faster among many: a straight line in 1/p. A rank moves (p - 1)/p of the bytes over
//     its links and copies 1/p of them in its memory; either is straight in 1/p, and so is their sum.
//   * where each byte is slower among many: ways are shared (a host bridge), as a power of the ranks. The byte is one
//   of
//     the (p - 1)/p that are moved.
// Derivation and errors: docs/models/network.md.
#pragma once

#include "netmodel/collective_table.h"

namespace sibyl {

// `fewer` and `more` are of one node and of fewer and more than `ranks` ranks. At the sizes of both as far as both
// reach; of sizes that do not meet, at the ends of the gap.
MeasuredPlacement between_counts(const MeasuredPlacement& fewer, const MeasuredPlacement& more, int ranks);

}  // namespace sibyl
