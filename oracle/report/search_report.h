// What a search found, as text, table and JSON. Format: docs/formats/search.md.
#pragma once

#include <string>

#include "oracle/cost_of_training.h"
#include "oracle/report/report.h"
#include "oracle/search/search.h"

namespace sibyl {

struct SearchReport {
  std::string model;
  std::string cluster;
  std::string command;  // before the words of a strategy: "sibyl predict zoo:gpt2 --cluster dgx-a100"
  SearchResult result;
  std::int64_t samples = 0;      // whose cost is said, too; 0: none
  double device_hour_price = 0;  // 0: not known, and cost is device-hours alone
  std::vector<Limit> limits{};   // of the recommended one (docs/limits.md), where they are asked for
};

Seconds half_interval(const Candidate& candidate);  // of the 90 % one
std::string interval_words(const Candidate& candidate);
std::string time_words(const Candidate& candidate);
// By what share a step takes longer than another's: 0.12 is 12 %.
double longer_than(const Candidate& candidate, const Candidate& other);
// Of training on the report's samples.
TrainingCost cost_of(const SearchReport& report, const Candidate& candidate);

std::string to_text(const SearchReport& report, TextStyle style);
Table to_table(const SearchReport& report);  // the best, one a row
std::string to_json(const SearchReport& report);

}  // namespace sibyl
