// All that is looked for: each looks into a plan, its prices or its prediction and puts down what it finds. To add one:
// its file in this folder, and its name in both lists here.
#pragma once

#include <array>

#include "oracle/limits/found.h"

namespace sibyl::limits {

using Find = void(const Found&, Limits&);

Find batch, layers, micro_batches;                        // batch.cpp
Find features, experts, tables, heads, sequence, tokens, images;  // extents.cpp
Find memory, fragmentation;                               // memory.cpp
Find repeated_work, recomputation;                        // work.cpp
Find repeated_state;                                      // repeated_state.cpp
Find idling;                                              // pipeline.cpp
Find exchanges;                                           // exchanges.cpp
Find contention;                                          // contention.cpp
Find compression, update;                                 // update.cpp
Find reading, offloading;                                 // storage.cpp

// Extents, then costs: as they are shown.
inline constexpr std::array finders = {
    batch,     layers,     micro_batches, features,      experts,       tables,         heads,         sequence,
    tokens,    images,     memory,        fragmentation, repeated_work, repeated_state, recomputation, idling,
    exchanges, contention, compression,   update,        reading,       offloading};

}  // namespace sibyl::limits
