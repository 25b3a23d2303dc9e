// Published rows against predictions.
//
// Each row is priced by itself, on shipped calibrations alone: nothing is fitted to what it measured. What a row does
// not state is assumed and said; one that states too little, or what is not modelled, is not priced and says why.
// Errors are (predicted - measured) / measured of the row's own metric. Sources are never pooled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "oracle/prediction.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {

struct Verdict {
  Row row;
  std::string why_not;  // empty: it is priced
  std::vector<std::string> assumed;
  // In SI units of the metric: seconds, bytes, samples or tokens a second.
  double measured = 0, predicted = 0, low = 0, high = 0;  // low, high: 90 % interval
  Prediction prediction;

  [[nodiscard]] bool priced() const { return why_not.empty(); }
  [[nodiscard]] double error() const { return (predicted - measured) / measured; }
};

// In the rows' order, on as many threads as there are processors.
std::vector<Verdict> judge(const std::vector<Row>& rows);

// Of one source's priced rows; errors are absolute, the bias is their signed mean.
struct SourceSummary {
  std::string source;
  std::size_t rows = 0, priced = 0;
  double mean_error = 0, median_error = 0, p90_error = 0, max_error = 0, bias = 0;
  double inside_interval = 0;  // share of them
};
std::vector<SourceSummary> summarize(const std::vector<Verdict>& verdicts);  // in order of appearance

// "megatron-22B on 8 A100-SXM-80GB, data=1 tensor=8, batch 4".
std::string case_name(const Row& row);

Table sources_table(const std::vector<SourceSummary>& summaries);
Table rows_table(const std::vector<Verdict>& verdicts);
// Reasons why rows are not priced, and how many rows each has.
std::string reasons_text(const std::vector<Verdict>& verdicts);
std::string to_json(const std::vector<Verdict>& verdicts);

}  // namespace sibyl::published
