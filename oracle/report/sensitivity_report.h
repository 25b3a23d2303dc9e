// What each input is worth, as text, table and JSON. Format: docs/formats/sensitivity.md.
#pragma once

#include <string>

#include "oracle/report/report.h"
#include "oracle/sensitivity.h"

namespace sibyl {

struct SensitivityReport {
  std::string model;
  std::string cluster;
  Sensitivities result;
};

std::string to_text(const SensitivityReport& report, TextStyle style);
Table to_table(const SensitivityReport& report);  // one input a row
std::string to_json(const SensitivityReport& report);

}  // namespace sibyl
