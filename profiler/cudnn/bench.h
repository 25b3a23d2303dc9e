// A program set up on the device, in copies, and the clock that times its runs. Of this folder alone.
#pragma once

#include <memory>
#include <vector>

#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {

// Device time between two points of a stream: all that lies between is enqueued behind a gate before the clock starts,
// and what two events cost without anything between them is subtracted.
class Stopwatch {
 public:
  explicit Stopwatch(const Libraries& libraries);
  // Seconds; never below what events resolve.
  template <class F>
  double time(F&& enqueue) {
    gate_.set(0);
    wait_for(gate_.word(), stream_);
    start_.record(stream_);
    enqueue();
    stop_.record(stream_);
    gate_.set(1);
    stop_.wait();
    const double seconds = stop_.since(start_) - empty_;
    return seconds > shortest ? seconds : shortest;
  }
  static constexpr double shortest = 1e-7;

 private:
  cudaStream_t stream_;
  Flag gate_;
  Event start_, stop_;
  double empty_ = 0;
};

class Bench {
 public:
  // Runs each step's first choice once, so that libraries load what they need.
  Bench(const Libraries& libraries, Program program, int copies, std::size_t padding, std::size_t lap);

  // The steps as a framework takes them; seconds.
  double run(int copy) { return run(copy, program_.steps); }
  double run_fused(int copy) { return run(copy, program_.fused); }
  double run_choice(int copy, std::size_t step, std::size_t choice);
  [[nodiscard]] const Program& program() const { return program_; }
  // Of the steps' first choices.
  [[nodiscard]] std::size_t workspace() const;

 private:
  double run(int copy, const std::vector<Step>& steps);
  [[nodiscard]] Run operands(int copy) const;
  void prepare(int copy);  // cache as a step leaves it
  void fill(int copy);

  const Libraries& libraries_;
  Program program_;
  std::vector<Memory> copies_;
  std::vector<std::vector<void*>> buffers_;
  Memory workspace_, pad_;
  std::size_t padding_, next_ = 0;
  Stopwatch stopwatch_;
};

}  // namespace sibyl::cudnn
