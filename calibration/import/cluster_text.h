// A cluster file (docs/formats/cluster.md) from what other programs' files say of a cluster.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/cluster_file.h"
#include "calibration/import/part.h"

namespace sibyl::import {

struct Source {
  std::string file;
  Part part;
};

struct Wanted {
  std::string name = "imported";
  std::string calibration;          // empty: that of `like`
  std::optional<int> nodes;         // where no file says it
  // Whose node is taken where no file describes one, and what it says of its software: which library and algorithms
  // exchange, and, of its own devices, what steps and messages beside kernels cost.
  std::optional<ClusterFile> like;
};

// What is taken for granted stands in comments at its head. What two files say, and what none says but must be said, is
// an Error. The text is one that parse_cluster_file() reads.
Result<std::string> cluster_text(const std::vector<Source>& sources, const Wanted& wanted);

}  // namespace sibyl::import
