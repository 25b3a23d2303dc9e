// What a search found, as text, table and JSON. Format: docs/formats/search.md.
#pragma once

#include <string>

#include "oracle/report/report.h"
#include "oracle/search/search.h"

namespace sibyl {

struct SearchReport {
  std::string model;
  std::string cluster;
  std::string command;  // what comes before the words of a strategy: "sibyl predict zoo:gpt2 --cluster dgx-a100 --batch 64"
  SearchResult result;
};

std::string to_text(const SearchReport& report, TextStyle style);
Table to_table(const SearchReport& report);  // the best, one a row
std::string to_json(const SearchReport& report);

}  // namespace sibyl
