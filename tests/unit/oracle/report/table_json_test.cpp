#include "oracle/report/table_json.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

TEST(TableJson, WordsAreWordsNumbersAreNumbersAndNothingIsNull) {
  Table table;
  table.columns = {{"name", "name", Column::Align::left}, {"in ms", "time_s"}, {"error %", "error"}};
  table.rows = {{"42", Cell("1.2", "0.0012"), ""}, {"b", Cell("3.0", "0.003"), Cell("5.0", "0.05")}};
  EXPECT_EQ(table_json(table, "sibyl-things", "things"), R"({
  "schema": "sibyl-things",
  "version": 1,
  "things": [
    {
      "name": "42",
      "time_s": 0.0012,
      "error": null
    },
    {
      "name": "b",
      "time_s": 0.003,
      "error": 0.05
    }
  ]
}
)");
}

}  // namespace
}  // namespace sibyl
