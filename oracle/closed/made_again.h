// What a pipeline's stages make again: casts, views and the like of weights, buffers and inputs alone, which are not
// sent (plan/pipeline/cut.h). A stage runs each of them before the first of its steps that wants it, however far before
// the stage it stands in the program.
//
// Of what is made of a weight in several stages, the weight's gradient is taken to be made in the first of them alone.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl::closed {

class MadeAgain {
 public:
  explicit MadeAgain(const Stage& program);

  struct Repeated {
    std::size_t reader = 0, step = 0;  // `step` runs before `reader`
  };
  // Of a stage of steps [begin, end): those that stand before it, as it runs them.
  [[nodiscard]] std::vector<Repeated> of(std::size_t begin, std::size_t end) const;
  // A stage that ends here runs the step, if that is among its own.
  [[nodiscard]] bool runs(std::size_t step, std::size_t end) const { return first_reader_[step] < end; }

 private:
  std::vector<Repeated> wanted_;           // ascending in readers
  std::vector<std::size_t> first_reader_;  // by step, which is not made again itself; 0 for steps that are not either
};

}  // namespace sibyl::closed
