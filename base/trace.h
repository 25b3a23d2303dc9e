// A timeline of one training step, and its spelling as a Chrome trace, which Perfetto (ui.perfetto.dev) and
// chrome://tracing open.
//
// `sibyl trace` writes predicted steps and `sibyl train --trace` real ones, with the same names for the same things
// (oracle/plan/names.h). The events of one rank's predicted and measured process differ in their process id, so that
// the "traceEvents" of two files put into one list show both, rank by rank.
//
// Format: "Trace Event Format" (Google, 2016): metadata events (ph M) name processes and threads, complete events (ph
// X) are the spans, times in microseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"

namespace sibyl {

// A number in SI units or a word, shown when a span is selected.
struct TraceArgument {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

// Copies share what a span is, which they cannot change, and differ in when it was: of a long pipeline's hundreds of
// thousands of spans few differ in more.
class TraceSpan {
 public:
  // `category`: "forward", "backward", "communication", …: what viewers filter by.
  TraceSpan(std::string name, std::string category, Seconds from, Seconds to,
            std::vector<TraceArgument> arguments = {});

  [[nodiscard]] const std::string& name() const { return subject_->name; }
  [[nodiscard]] const std::string& category() const { return subject_->category; }
  [[nodiscard]] const std::vector<TraceArgument>& arguments() const { return subject_->arguments; }

  Seconds start, end;                   // since the step began
  std::optional<int> micro_batch = {};  // of a pass; written as one more argument
  bool critical = false;                // of a predicted step: one of the chain of spans that makes it as long as it is

 private:
  struct Subject {
    std::string name, category;
    std::vector<TraceArgument> arguments;
  };
  std::shared_ptr<const Subject> subject_;
};

// Spans of one stream of a device or a host; none overlaps another of the same track.
struct TraceTrack {
  std::string name;
  std::vector<TraceSpan> spans;
};

enum class TraceSource { predicted, measured };

struct TraceProcess {
  TraceSource source = TraceSource::predicted;
  int rank = 0;
  std::string name;                // "rank 0 (and 63 alike), predicted"
  std::vector<TraceTrack> tracks;  // shown in this order
};

// The process's events, separated by commas and line ends, without brackets.
std::string trace_events(const TraceProcess& process);

// The whole file. `events`: what trace_events gave for each process. `about`: facts of the run, shown with the file.
std::string trace_file(const std::vector<std::string>& events, const std::vector<TraceArgument>& about);

}  // namespace sibyl
