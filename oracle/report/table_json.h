// A table as a JSON document: {"schema": …, "version": 1, "rows": [{key: value}, …]}. Columns aligned to the left hold
// words, the others numbers; an empty cell is null.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "oracle/prediction.h"

namespace sibyl {

std::string table_json(const Table& table, const std::string& schema, const std::string& rows = "rows");

// The text of [{"name", "where", "value", "unit", "share", "relief"}, …], as docs/formats/prediction.md has them.
std::string limits_json(const std::vector<Limit>& limits);

}  // namespace sibyl
