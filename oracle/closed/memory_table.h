// What the closed form knows of a program's memory: bytes that each step's forward leaves for backward, and what is
// alive while its backward runs. About what StepWalk (memory/step_walk.h) finds, without walking any strategy's own
// steps.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/closed/program_table.h"
#include "oracle/plan/backward_memory.h"

namespace sibyl::closed {

// Of a stage and one micro-batch.
struct Kept {
  std::vector<double> until;  // by step: what was received, and what forward keeps up to the step and with it
  std::vector<double> again;  // by step, in its backward: made again by then, by what runs again around it, and held
                              // until that is done
  std::vector<double> put_off;  // by step, in the first part of its backward: what gradients of weights behind it need
  double all = 0;             // between the passes: what is sent, too, where it is not freed
  double later = 0;           // between the parts of backward: what gradients of weights need
};

class MemoryTable {
 public:
  MemoryTable(ProgramTable& table, const Strategy& strategy);

  // What may lie outside the device between the passes of segments that run again, of a stage that begins so.
  [[nodiscard]] std::vector<std::vector<LocalTensorId>> outside(std::size_t begin,
                                                                const std::vector<Segment>& segments) const;
  // Of the stage of steps [begin, end), of which `segments` run again. `outside`: what of each lies there; empty where
  // nothing does.
  Kept kept(std::size_t begin, std::size_t end, const std::vector<Segment>& segments,
            const std::vector<std::vector<LocalTensorId>>& outside = {});
  // What the stage reads of parameters and buffers.
  [[nodiscard]] double weights(std::size_t begin, std::size_t end) const;
  // By step, as of BackwardMemory.
  [[nodiscard]] const std::vector<double>& working() const { return backward_.working(); }
  // By step: buffers of an exchange, beside what it takes and gives.
  [[nodiscard]] const std::vector<double>& packing() const { return packing_; }
  [[nodiscard]] double rounded(double bytes) const { return backward_.rounded(bytes); }
  [[nodiscard]] double inputs() const { return inputs_; }  // of one micro-batch
  [[nodiscard]] const BackwardMemory& backward() const { return backward_; }

 private:
  [[nodiscard]] double results(const Segment& segment) const;  // that others read
  // By step of the stage: of what lies outside, that which is here in its backward.
  [[nodiscard]] std::vector<double> brought(std::size_t begin, std::size_t end, const std::vector<Segment>& segments,
                                            const std::vector<std::vector<LocalTensorId>>& outside) const;

  ProgramTable& table_;
  BackwardMemory backward_;
  bool frees_sent_;
  double inputs_ = 0;
  std::vector<double> packing_;
  std::vector<std::size_t> made_;     // by tensor: in which step
  std::vector<std::uint32_t> known_;  // by tensor: in which call it was kept
  std::uint32_t call_ = 0;
};

}  // namespace sibyl::closed
