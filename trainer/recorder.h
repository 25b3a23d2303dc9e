// What one rank does in one step, as spans on the clock of that step: filled where things happen, written as a timeline
// (base/trace.h) with the names that predicted timelines use (oracle/plan/names.h).
//
// Steps that are timed run without a recorder, so that recording disturbs none of them.
#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"

namespace sibyl::trainer {

class Recorder {
 public:
  enum class Track { turns, sends, compute, communication, copies, host };

  // The step begins now. Nothing may be recorded by another thread meanwhile.
  void start();
  [[nodiscard]] Seconds now() const;  // since start()
  // By any thread.
  void add(Track track, TraceSpan span);

  // What was recorded, once no thread records; each track in order of start. `source` stands beside the rank.
  [[nodiscard]] TraceProcess process(int rank, std::string_view source = "measured") const;

 private:
  std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::array<std::vector<TraceSpan>, 6> spans_;  // by Track
};

// Records its own lifetime; does nothing without a recorder.
class Recording {
 public:
  Recording(Recorder* recorder, Recorder::Track track, std::string_view name, std::string_view category)
      : recorder_(recorder), track_(track), name_(name), category_(category) {
    if (recorder_ != nullptr) start_ = recorder_->now();
  }
  ~Recording() {
    if (recorder_ != nullptr)
      recorder_->add(track_, {std::string(name_), std::string(category_), start_, recorder_->now(), {}});
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder* recorder_;
  Recorder::Track track_;
  std::string_view name_, category_;
  Seconds start_;
};

}  // namespace sibyl::trainer
