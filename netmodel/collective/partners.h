// Who meets whom in algorithms whose distances double, over nodes of several ranks: of a node's ranks how many find
// their partner in it, and how many on another node, which share its NICs meanwhile. Where ranks and nodes are powers
// of two either all do or none; else nodes differ, and the one with the most counts.
#pragma once

#include "netmodel/collective/partition.h"

namespace sibyl::collective {

struct Partners {
  int inside = 0, outside = 0;
};

// Between core ranks at that distance; 0: between those that fold, or unfold. It takes a time in proportion to all
// ranks where counts are no powers of two.
Partners partners(const Fold& fold, const GroupPlacement& placement, int distance);

}  // namespace sibyl::collective
