// What the closed form knows of a program's memory: bytes that each step's forward leaves for backward, and what is
// alive while its backward runs. About what StepWalk (memory/step_walk.h) finds, without walking any strategy's own
// steps.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/closed/program_table.h"

namespace sibyl::closed {

// Of a stage and one micro-batch.
struct Kept {
  std::vector<double> until;  // by step: what was received, and what forward keeps up to the step and with it
  std::vector<double> again;  // by step, in its backward: made again by then, by what runs again around it
  double all = 0;             // between the passes: what is sent, too, where it is not freed
  double later = 0;           // between the parts of backward: what gradients of weights need
};

class MemoryTable {
 public:
  MemoryTable(ProgramTable& table, const Strategy& strategy);

  // Of the stage of steps [begin, end), of which `segments` run again.
  Kept kept(std::size_t begin, std::size_t end, const std::vector<Segment>& segments);
  // What the stage reads of parameters and buffers.
  [[nodiscard]] double weights(std::size_t begin, std::size_t end) const;
  // By step, while its backward runs: gradients of activations, and the kernel's workspace.
  [[nodiscard]] const std::vector<double>& working() const { return working_; }
  [[nodiscard]] double rounded(double bytes) const;
  [[nodiscard]] double inputs() const { return inputs_; }  // of one micro-batch

 private:
  // A storage that a step's backward wants, by its tensor; an extra has none.
  struct Wanted {
    std::size_t storage = 0;
    double bytes = 0;
  };
  // Of one step, whichever it is of those that run the same.
  struct Facts {
    TrainingRule rule;
    double workspace = 0;              // of its backward
    std::uint32_t passed_through = 0;  // operands to which it hands the gradient that comes in
  };
  void find_facts(const Strategy& strategy);
  [[nodiscard]] const Facts& facts(std::size_t step) const { return facts_[like_.empty() ? step : like_[step]]; }
  void find_storages();
  void find_wanted(const Strategy& strategy);
  void find_later();
  void find_working();
  [[nodiscard]] double bytes_of(LocalTensorId id) const;

  ProgramTable& table_;
  bool frees_sent_;
  const std::vector<std::size_t>& like_;
  Backend backend_;
  double granularity_;
  std::vector<Facts> facts_;
  std::vector<std::size_t> storage_;         // by tensor: the tensor whose memory it shares
  std::vector<std::vector<Wanted>> wanted_;  // by step
  std::vector<double> working_;
  std::vector<double> later_;  // by step: the gradient that came in, where that of a weight is put off
  double inputs_ = 0;
  std::vector<std::uint32_t> known_;  // by tensor: in which call it was kept
  std::uint32_t call_ = 0;
};

}  // namespace sibyl::closed
