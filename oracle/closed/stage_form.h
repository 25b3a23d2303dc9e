// One stage of a pipeline by formula: what its turns take, what follows them, and its memory.
//
// Kernels are added up one by one, with the host's launches beside them; messages go by closed_streams()
// (simulate/streams.h), and where parameters are gathered before use (ZeRO 3) by run_streams() over units instead of
// kernels.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "oracle/closed/memory_table.h"
#include "oracle/closed/program_table.h"
#include "oracle/closed/replicas.h"
#include "oracle/simulate/streams.h"

namespace sibyl::closed {

// Seconds; bytes.
struct StageForm {
  struct Turns {
    double time = 0;
    double messages = 0;  // from its beginning until its last message has ended; 0 without any
  };
  Turns forward, input;
  std::array<Turns, 4>
      backward;     // whole, or its second part; by whether it is the first (+0) or not (+1), the last (+2) or not
  double tail = 0;  // once all messages are there: copies back, updates, gathers
  double alone = 0, alone_once = 0;  // kernels by themselves: of a micro-batch, of updates

  double state = 0;      // weights, optimizer, buffers of messages
  double gradients = 0;  // of parameters
  double kept = 0;       // by one micro-batch between its passes
  double later = 0;      // by one micro-batch between the two parts of its backward
  double pass = 0;       // at most in one micro-batch's backward, of what it keeps and what it works on
  double pass_and_gradients =
      0;  // the same with the gradients that are there by then: where there is one micro-batch alone

  static std::size_t slot(bool first, bool last) { return (first ? 0U : 1U) + (last ? 2U : 0U); }
};

struct Range {
  std::size_t begin = 0, end = 0;
};

class StageFormula {
 public:
  StageFormula(ProgramTable& table, MemoryTable& memory, Replicas& replicas, Slowdown slowdown);

  // A stage of these steps. `split`: its backward is taken in two parts. `alone`: there is no other.
  StageForm stage(Range range, Recompute recompute, bool split, bool alone);
  // The whole of a step of one stage alone, before its tail: the host runs ahead from one turn into the next.
  StageForm::Turns step(Range range, Recompute recompute, std::int64_t micro_batches);

 private:
  struct Host {  // what it has issued by when; when the device is done with that
    double issued = 0, device = 0;
  };
  struct Message {
    double seconds = 0;
    std::size_t step = 0;  // it is complete when backward has done this step
    bool overlapped = true;
  };
  struct Pass {
    bool forward = true, inputs = true, weights = true, first = true, last = true;
  };

  struct Bucket {
    std::int64_t elements = 0;
    DType dtype = DType::f32;
    std::size_t step = 0;  // whose backward completes it
    std::size_t stretch = 0;
  };
  // Parameters, and the steps that complete their gradients.
  using Arrivals = std::vector<std::pair<std::size_t, std::size_t>>;

  void prepare(Range range, Recompute recompute, bool split, bool alone);
  [[nodiscard]] bool tied(const Parameter& parameter) const;
  [[nodiscard]] bool exchanged(const Parameter& parameter) const;
  void add_group(const std::vector<MeshAxis>& axes, const Arrivals& arrivals);
  [[nodiscard]] std::vector<Bucket> in_turn(const Arrivals& arrivals) const;
  [[nodiscard]] std::vector<Bucket> by_unit(const Arrivals& arrivals);
  void find_stretches();
  void add_whole(const Parameter& parameter);
  void add_memory(StageForm& form);
  void add_tail(StageForm& form);

  // Calls begun(step), then task(seconds, launches) for each thing the device does for it, then done(step), in the pass's order. An
  // exchange has no launches.
  void each_task(const Pass& pass, auto&& task, auto&& begun, auto&& done);
  double run(const Pass& pass, Host& host);  // what it computes; moves `host` on
  StageForm::Turns turn(const Pass& pass);
  // Messages and kernels event by event; these one by one where the host holds them up.
  StageForm::Turns streams(std::span<const Pass> passes, bool one_by_one);
  // By formula. `before`: the device has computed so long already; `waited`: for its host, in all.
  StageForm::Turns with_messages(const Pass& pass, double before, double waited);
  StageForm::Turns passes(std::int64_t micro_batches);  // of a stage alone

  ProgramTable& table_;
  MemoryTable& memory_;
  Replicas& replicas_;
  Slowdown slowdown_;
  double dispatch_;
  double factor_;
  // Of the stage at hand:
  Range range_;
  bool alone_ = false;
  const std::vector<Row>* rows_ = nullptr;
  std::vector<Segment> segments_;  // that run again
  std::vector<Message> messages_;
  std::vector<Segment> stretches_;  // of steps that share a bucket where parameters are gathered before use
  struct Unit {
    Segment steps;
    double gather = 0, bytes = 0;
  };
  std::vector<Unit> units_;          // in order of their first step
  std::vector<bool> begins_, ends_;  // by step of the stage: some unit does there
  std::vector<Shape> updated_;       // as the optimizer finds gradients
  double gathers_ = 0, copies_back_ = 0;
  int copied_back_ = 0;
  double weights_ = 0, optimizer_ = 0, buffers_ = 0, gradients_ = 0;
  bool freed_ = false;  // gradients, once they are in their bucket
};

}  // namespace sibyl::closed
