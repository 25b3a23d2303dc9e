// What a pipeline's stage keeps of a micro-batch between its passes and works on in its backward, of all stages of a
// program: sums over its places.
//
// A stage of places [b, e) keeps what it receives and what its own backward wants. A storage that some backward wants
// is made at one place, and alive up to the last that reads it. Those made before e and not dead at b are what the
// stage makes and keeps, or sends, or receives; so
//   kept(b, e) = made(e) - dead(b),
// two sums over places. What is freed once it is sent counts where it is first wanted, not where it is made. Of what
// the places of a stage make for themselves out of weights and inputs, each stage that wants it has its own. Of a
// segment that runs again what it reads is wanted in the place of what its steps want.
//
// Of what lies outside the device between passes what a stage receives is left out: a stage of more places, which takes
// no less by these sums, may receive less.
//
// Steps' own blocks are taken to be those of the whole program: a cut inside one of them moves both ends of those that
// its stage finds.
#pragma once

#include <cstddef>
#include <vector>

#include "oracle/plan/backward_memory.h"
#include "oracle/plan/pipeline/places.h"
#include "oracle/plan/pipeline/range_maximum.h"

namespace sibyl {

class KeptSums {
 public:
  // `strategy`: any that runs the same again, and shares the program.
  KeptSums(const BackwardMemory& backward, const Places& places, const Strategy& strategy,
           const std::vector<std::size_t>& like);

  // Of one micro-batch, bytes: between its passes; between the two parts of its backward; and in its backward, beyond
  // what is kept.
  [[nodiscard]] double kept(std::size_t begin, std::size_t end) const {
    double bytes = made_[end] - dead_[begin];
    for (const WantedBySeveral& shared : shared_)
      if (shared.in(begin, end)) bytes += shared.bytes;
    return bytes;
  }
  [[nodiscard]] double later(std::size_t begin, std::size_t end) const { return later_[end] - later_[begin]; }
  [[nodiscard]] double passing(std::size_t begin, std::size_t end) const {
    const double beyond = pass_.of(begin, end) - made_[end];
    return beyond > 0 ? beyond : 0;
  }

 private:
  std::vector<double> made_, dead_, later_;  // before a place
  RangeMaximum pass_;                        // by place: what is made by then, made again, and worked on
  std::vector<WantedBySeveral> shared_;
};

}  // namespace sibyl
