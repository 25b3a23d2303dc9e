// Records when each operation of a stage runs, forward and backward.
//
// Forward is timed around each operation. Backward runs inside autograd's engine: each node that it runs carries the
// number it got when forward made it, and forward noted which numbers each operation made. An operation's backward
// lasts from its first node to the first node of another operation, so that what happens in between (gradients summed,
// copied into buckets) counts for it, as it does in predictions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/graph.h"
#include "oracle/plan/plan.h"
#include "trainer/recorder.h"

namespace sibyl::trainer {

class OperationSpans {
 public:
  // The arguments must outlive it. From a turn on the calling thread's backward passes are watched, until the turn of
  // another such object.
  OperationSpans(const Graph& graph, const Stage& stage, Recorder& recorder);
  ~OperationSpans();
  OperationSpans(const OperationSpans&) = delete;
  OperationSpans& operator=(const OperationSpans&) = delete;

  void begin_turn(const Turn& turn);
  // Around each operation of a forward pass over the stage.
  void begin_forward();
  void end_forward(std::size_t step);
  // After a backward pass: its last operation is done.
  void end_backward();

 private:
  struct Made {  // the autograd nodes [first, last) are those of a step's forward
    std::uint64_t first, last;
    std::size_t step;
    int micro_batch;
  };
  struct Running {
    std::size_t step;
    int micro_batch;
    Seconds start;
  };
  friend void backward_node_begins(OperationSpans& spans, std::uint64_t number);
  void add(Turn::Kind kind, const Running& operation);

  const Graph& graph_;
  const Stage& stage_;
  Recorder& recorder_;
  Turn turn_;
  std::uint64_t first_node_ = 0;
  Seconds forward_start_;
  std::vector<Made> made_;  // ascending
  std::optional<Running> backward_;
  std::uint64_t callback_ = 0;
};

}  // namespace sibyl::trainer
