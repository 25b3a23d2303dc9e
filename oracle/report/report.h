// A prediction with the names it is shown under, and its spellings: text for people, tables, JSON for programs.
//
// Everything here is a pure function of its arguments: the same bytes for the same report, in any locale, on any
// machine. Text shows quantities with their unit (base/quantity.h); JSON and CSV hold SI numbers. Formats:
// docs/formats/prediction.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/table.h"
#include "oracle/predict.h"
#include "oracle/prediction.h"

namespace sibyl {

struct MemoryHistory;  // oracle/memory/history.h
namespace closed {
struct FirstAnswer;  // oracle/closed/first_answer.h
}

// What fits instead of a plan that does not (oracle/nearest_fit.h).
struct NearestSetting {
  std::string words;  // options that differ: "--zero 3"
  int devices = 1;
  std::int64_t global_batch = 1;
  Bytes memory;  // of the fullest device
};

struct PredictionReport {
  std::string model;  // as the user named it
  std::string cluster;
  Prediction prediction;
  // What was said of the plan on the command line, as --name=value words: what `sibyl train` needs to run it.
  std::vector<std::string> options = {};
  std::optional<NearestSetting> nearest = {};  // of a plan that does not fit, where one was found
};

struct ScaleReport {
  std::string model;
  std::string cluster;
  Scaling scaling = Scaling::weak;
  std::vector<ScalePoint> points;              // ascending in devices
  std::optional<NearestSetting> nearest = {};  // where no point fits, and a setting was found that does
};

std::string_view to_string(Scaling scaling);  // "weak"

struct TextStyle {
  bool color = false;  // ANSI escapes
};

// Text a person reads top to bottom: time, memory, what holds it back, how sure.
std::string to_text(const PredictionReport& report, TextStyle style);
std::string to_text(const ScaleReport& report, TextStyle style);
std::string comparison_text(const PredictionReport& before, const PredictionReport& after, TextStyle style);

// One quantity a row.
Table to_table(const PredictionReport& report);
// One operation a row, in the order they run: name, kind, how it is known, forward, backward, share of all operations'
// time, error, FLOPs, bytes.
Table layer_table(const Prediction& prediction);
// What is alive at the peak, the largest first: name and how many, kind, the operation it belongs to, bytes, share.
Table alive_table(const MemoryHistory& history);
// The same where tensors whose names differ in numbers alone are one row: of how many layers, and the largest of them.
Table alike_table(const MemoryHistory& history);
// One device count a row; counts that cannot be run say why.
Table to_table(const ScaleReport& report);
// One quantity a row: before, after, change.
Table comparison_table(const PredictionReport& before, const PredictionReport& after);
// "The second step is 1.24 times faster.", and whether the intervals leave room for doubt.
std::string comparison_verdict(const PredictionReport& before, const PredictionReport& after);

std::string to_json(const PredictionReport& report);
std::string to_json(const ScaleReport& report);
std::string comparison_json(const PredictionReport& before, const PredictionReport& after);

// One self-contained page: no script, no network.
std::string to_html(const PredictionReport& report);
std::string to_html(const ScaleReport& report);

// A script for Slurm's sbatch that trains this plan for real and measures `steps` steps. Fails where the model has no
// file to be read again.
Result<std::string> to_sbatch(const PredictionReport& report, std::int64_t steps);

// Reads what to_json wrote; `file` stands for the source in messages. An Error's `where` is file and JSON path.
Result<PredictionReport> parse_prediction(std::string_view json, const std::string& file);
Result<ScaleReport> parse_scale(std::string_view json, const std::string& file);
enum class ReportKind { prediction, scale };
Result<ReportKind> report_kind(std::string_view json, const std::string& file);  // from its "schema"

// What the prediction takes for granted, in sentences; shown in text, HTML and JSON.
std::vector<std::string> assumptions(const Prediction& prediction);
// "compute: convolution is 71 % of the step; twice as fast, the step would be 34 % shorter"
std::string bottleneck_sentence(const Bottleneck& bottleneck);
// What follows it: "relieved by fewer bits (--precision bf16), devices that compute faster or the same batch on more
// devices"; empty where nothing is known.
std::string relief_clause(const Bottleneck& bottleneck);
// "82 % measured, 15 % interpolated, 3 % estimated"
std::string provenance_sentence(const ProvenanceShares& provenance);

// What the parts of the breakdown leave of the step time: one rank's typical step is shorter than that of the slowest
// of many.
Seconds slowest_rank_wait(const Prediction& prediction);
Seconds half_interval(const Evaluation& evaluation);  // of the 90 % one
// What people read of an interval: "± 12.5 ms", half of it; "11.2 ms to 36.2 ms", its ends, where it reaches farther to
// one side.
std::string interval_words(Seconds time, Seconds low, Seconds high);
std::string interval_words(const Evaluation& evaluation);
// "18.5 ms ± 1.2 ms", "18.5 ms (11.2 ms to 36.2 ms)"
std::string time_words(Seconds time, Seconds low, Seconds high);
std::string time_words(const Evaluation& evaluation);
// Communication that nobody waits for.
Seconds hidden_communication(const Prediction& prediction);
double throughput_per_device(const Prediction& prediction);  // samples per second

// Now over then.
struct Ratios {
  double step_time = 1, throughput = 1, memory = 1;
};
Ratios ratios(const Evaluation& now, const Evaluation& then);
// A formula knows nothing of what a caching allocator keeps: that is left out of both.
Ratios ratios(const closed::FirstAnswer& now, const Evaluation& then);

// The parts of MemoryBreakdown and TimeBreakdown with their JSON keys and titles, in the order they are shown.
struct MemoryPart {
  std::string_view key, title;
  Bytes MemoryBreakdown::*value;
  char letter;  // in the bar
};
struct TimePart {
  std::string_view key, title;
  Seconds TimeBreakdown::*value;
  bool on_critical_path;  // adds to the step time
  bool always = true;     // files have it also where it is 0
};
const std::vector<MemoryPart>& memory_parts();  // without the total
const std::vector<TimePart>& time_parts();

// What a device must have (MemoryBreakdown::needed()) as what adds up to it: the parts that are not 0, and what the
// allocator keeps beside them.
struct MemorySlice {
  std::string_view key, title;
  Bytes value;
  char letter;
};
std::vector<MemorySlice> memory_slices(const MemoryBreakdown& memory);
inline constexpr std::string_view cache_key = "cached";
inline constexpr std::string_view cache_meaning =
    "free blocks that the allocator keeps for what comes next, and fragments: held by the process, and by no tensor";

}  // namespace sibyl
