// The blocks a program is made of, found from the program alone: transformer layers, residual blocks.
//
// A program can be parted where at most one tensor that has a gradient lives (weights' casts aside): such cuts part it
// into regions with one way in and one way out. Regions of the same operations and shapes in a row, alone or several
// together, repeat: each repetition is a block (a transformer's layer is two regions or four). A region that branches
// and does not repeat (a residual block that halves the image) is one, with the activation or normalisation behind it.
// Where neither is found, a chain, blocks of about the square root of its steps are as good as any (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016, section 3).
//
// Steps that stages of a pipeline make again (pipeline/cut.h) count for nothing: views of a mask that every layer reads
// stand in the first one alone, and leave it a layer like the others.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

class Blocks {
 public:
  // Which must outlive it. `like`: by step, an earlier one that runs the same, or itself; empty where that is not
  // known.
  explicit Blocks(const Stage& stage, const std::vector<std::size_t>& like = {});

  // A position between steps. It is narrow for a stage that ends at `until` or before: of the tensors with a gradient
  // that are made before it, the stage reads one behind it at most.
  struct Narrow {
    std::size_t at = 0, until = 0;
  };

  // Of steps [begin, stage_end): what find_blocks() finds of a stage that is these steps. Ascending and apart; the loss
  // is in none.
  [[nodiscard]] std::vector<Segment> within(std::size_t begin, std::size_t stage_end) const;

 private:
  const Stage& stage_;
  std::size_t loss_;                  // its step
  std::vector<Narrow> cuts_;          // ascending
  std::vector<bool> apart_;           // by step: counts for nothing
  std::vector<std::uint64_t> kinds_;  // by step: equal ones run the same
};

std::vector<Segment> find_blocks(const Stage& stage, const std::vector<std::size_t>& like = {});

}  // namespace sibyl
