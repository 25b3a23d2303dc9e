// One record of a CSV file, its cells by the names of their columns. A cell that is empty or says "n/a", "not stated",
// "unknown" or "-" is not stated. Errors name file:line and the column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "oracle/validate/published/csv.h"

namespace sibyl::published {

bool is_not_stated(std::string_view cell);
bool has(std::string_view text, std::string_view word);

// All three must outlive it.
class Cells {
 public:
  Cells(const std::vector<std::string>& header, const CsvRecord& record, const std::string& file)
      : header_(header), record_(record), file_(file) {}

  [[nodiscard]] std::string text(std::string_view column) const;  // empty where there is no such column
  [[nodiscard]] Result<std::string> required(std::string_view column) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view column) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view column, std::int64_t least,
                                                            std::int64_t most) const;
  [[nodiscard]] std::string where() const;

 private:
  const std::vector<std::string>& header_;
  const CsvRecord& record_;
  const std::string& file_;
};

// An Error unless the header has all of these.
Result<void> require_columns(const Csv& table, const std::vector<std::string_view>& columns, const std::string& file);

}  // namespace sibyl::published
