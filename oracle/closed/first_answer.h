// What predict() is about to answer, by formula and so at once: for a window in which a slider moves. The exact answer
// takes its place a moment later; docs/search.md tells how far the two are from each other.
#pragma once

#include <memory>
#include <optional>

#include "oracle/closed/closed_form.h"

namespace sibyl::closed {

struct FirstAnswer {
  Seconds step_time;
  double throughput = 0;          // samples per second, over all devices
  Bytes memory, memory_capacity;  // of the fullest device, about; of each, 0 where it is not known

  [[nodiscard]] bool fits() const { return memory_capacity.value() <= 0 || memory <= memory_capacity; }
};

// Not for several threads at once.
class FirstAnswers {
 public:
  FirstAnswers(const Graph& graph, const Cluster& cluster);  // both must outlive it
  FirstAnswers(const FirstAnswers&) = delete;
  FirstAnswers& operator=(const FirstAnswers&) = delete;

  // Nothing where there is no formula, or where the strategy cannot be run.
  std::optional<FirstAnswer> of(const Strategy& strategy);

 private:
  const Graph& graph_;
  const Cluster& cluster_;
  std::optional<Folding> folding_;
  KernelPrices kernels_;
  // What form_ was made from.
  FormKey key_;
  Strategy made_from_;
  std::unique_ptr<ProgramForm> form_;
};

}  // namespace sibyl::closed
