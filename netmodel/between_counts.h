// Collectives measured among few ranks of a node and among many: what they say of a count between.
//
// Of S bytes each of p ranks holds, sends and receives parts of S/p, and those decide how a library sends them.
//   * Where each byte is as fast or faster among many, links are the devices' own: with parts of one size an exchange is
//     p - 1 steps of one length and a part that is copied, whatever either takes: straight in p. 4 ranks with S bytes
//     lie between 2 with S/2 and 8 with 2 S.
//   * Where each byte is slower among many, ways are shared (a host bridge): beyond the shortest time, which is straight
//     in p, a byte takes as a power of the ranks, of the (p - 1)/p of S that are moved.
// Which of the two a node is, the longest of both say. Derivation and errors: docs/models/network.md.
#pragma once

#include "netmodel/collective_table.h"

namespace sibyl {

// `fewer` and `more` are of one node and of fewer and more than `ranks` ranks. At the sizes of both (on own links,
// those of as large parts, and the ends of all sizes of both) as far as both reach; of sizes that do not meet, at the
// ends of the gap.
MeasuredPlacement between_counts(const MeasuredPlacement& fewer, const MeasuredPlacement& more, int ranks);

}  // namespace sibyl
