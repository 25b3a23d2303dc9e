// One published measurement: who trained what, on which machine, how split, and what came out. The columns are those of
// docs/formats/published.md; further ones are ignored.
//
// A cell that is empty or says "n/a", "not stated", "unknown" or "-" is not stated. Errors name file:line and the column.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sibyl::published {

// What the JSON of `arch_params` says: numbers, words, yes or no. What is nested is left out.
class Architecture {
 public:
  using Value = std::variant<double, std::string, bool>;
  void set(const std::string& key, Value value) { values_[key] = std::move(value); }

  [[nodiscard]] bool has(const std::string& key) const { return values_.count(key) > 0; }
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& key) const;
  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  [[nodiscard]] std::string text(const std::string& key) const;  // empty where it is absent or no word
  [[nodiscard]] bool flag(const std::string& key) const;         // true, or a number other than 0

 private:
  std::map<std::string, Value> values_;
};

enum class Metric {
  throughput,          // of all devices: samples or tokens a second
  throughput_per_gpu,  // of one
  iteration_time,      // of one step
  fwd_bwd_time,        // of one step without its update
  memory_activations,  // of the fullest device
  memory,              // all of the fullest device
};
std::string_view to_string(Metric metric);

struct Row {
  int line = 0;
  std::string source, model, family, precision, gpu, framework, intranode, internode, recompute, notes, unit, image;
  std::string metric_name, other_parallel, optimizer;
  Architecture architecture;
  std::optional<Metric> metric;  // of those above; else metric_name is another
  double value = 0;              // as `unit` has it
  int gpus = 0;                  // 0: not stated
  std::optional<std::int64_t> gpus_per_node, global_batch, micro_batch, sequence_length;
  std::optional<std::int64_t> dp, tp, pp, vpp, ep, cp, zero;
  bool sp = false;
};

Result<std::vector<Row>> read_rows(std::string_view csv, const std::string& file);

// Lower case; what is not a letter or a digit is dropped: "A100-SXM4-80GB" -> "a100sxm480gb".
std::string normalized(std::string_view name);
std::string lower_case(std::string_view text);
// Whether the word, in lower case, stands in the text, whatever its case, by itself: "amp" in "fp16 (AMP)", not in "Ampere"; "xla" not in
// "p2.8xlarge".
bool says_word(const std::string& text, std::string_view word);

}  // namespace sibyl::published
