// A table as a JSON document: {"schema": …, "version": 1, "rows": [{key: value}, …]}. Columns aligned to the left hold
// words, the others numbers; an empty cell is null.
#pragma once

#include <string>

#include "base/table.h"

namespace sibyl {

std::string table_json(const Table& table, const std::string& schema, const std::string& rows = "rows");

}  // namespace sibyl
