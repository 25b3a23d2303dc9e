// A tree of switches laid out as a fabric: a fat tree where all branches are alike, else link by link.
//
// What is not said of its links is taken so: every uplink carries what all adapters below it send (non-blocking).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/import/part.h"

namespace sibyl::import {

struct LaidTree {
  std::vector<std::string>
      nodes;  // by number: from one end of the tree to the other, so that neighbours share switches
  fabric::Outside network;
};

// Errors: a switch or node that is listed twice or hangs below two switches, a child that is not listed, a ring, more
// than one switch on top, more than 8 levels.
Result<LaidTree> lay_out(const SwitchTree& tree, const Nics& nics, const std::string& file);

}  // namespace sibyl::import
