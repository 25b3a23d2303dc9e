// What choosing the layout of a result must know of the operations that come after: choices are made forward.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

struct LookAhead {
  LookAhead(const Stage& stage, int ways);

  // Extents in which a Split, or slices side by side, take a layer's features apart, behind elementwise operations or
  // none, or behind what gives the pieces an axis of their own (q, k and v of the heads, [B, S, 3 H D], as
  // [3, B, H, S, D], or as [3, B, S, H D] whose heads come apart next).
  std::vector<Ints> pieces;  // by LocalTensorId
  // Losses alone read it, as their logits, maybe scaled; the classes are its last dimension, and few would be added by
  // rounding them up.
  std::vector<bool> logits;  // by LocalTensorId
  // A table worth sharing by its rows: words, and not the places in a sentence, of which there are no more than tokens.
  // Every operation that reads it can do so.
  std::vector<bool> table;  // by LocalTensorId
  // It says which experts a token goes to, and how much each counts, and nothing else.
  std::vector<bool> routes;  // by LocalTensorId
  // Looked up, and read by a sum or mean over the places of a bag alone.
  std::vector<bool> bags;  // by LocalTensorId
};

}  // namespace sibyl
