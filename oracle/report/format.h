// How reports write numbers that base/quantity.h does not: shares, changes, counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/table.h"
#include "oracle/prediction.h"

namespace sibyl {

std::string percent(double fraction);         // 0.342 -> "34 %", 0.0342 -> "3.4 %"
std::string signed_percent(double fraction);  // "+12 %", "-3.4 %", "0 %"
std::string ratio_text(double ratio);         // 1.12 -> "+12 %", 0.88 -> "-12 %", 23 -> "× 23", 1/2308 -> "÷ 2,308"
std::string grouped(std::int64_t value);      // 25557032 -> "25,557,032"
std::string samples_per_second(double throughput);
Cell percent_cell(double fraction);  // 0.342 -> "34.2", for columns whose title says %
Cell count_cell(std::size_t count);
std::string plural(std::int64_t count, std::string_view noun);  // "1 node", "16 nodes"

// How the model and what is kept for it are split: "data=8, ZeRO 1, recompute full".
std::string splitting(const Prediction& prediction);

// What limits the plan (docs/limits.md), one a row; those of which hardly anything is used are left out.
Table limits_table(const std::vector<Limit>& limits);

}  // namespace sibyl
