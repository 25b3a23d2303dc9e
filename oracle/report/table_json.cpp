#include "oracle/report/table_json.h"

#include <nlohmann/json.hpp>

namespace sibyl {
namespace {

nlohmann::ordered_json cell_json(const Column& column, const std::string& value) {
  if (value.empty()) return nullptr;
  if (column.align == Column::Align::left) return value;
  return nlohmann::ordered_json::parse(value);
}

}  // namespace

std::string table_json(const Table& table, const std::string& schema, const std::string& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::vector<Cell>& row : table.rows) {
    nlohmann::ordered_json one;
    for (std::size_t i = 0; i < row.size(); ++i) one[table.columns[i].key] = cell_json(table.columns[i], row[i].value);
    list.push_back(std::move(one));
  }
  return nlohmann::ordered_json{{"schema", schema}, {"version", 1}, {rows, std::move(list)}}.dump(2) + "\n";
}

}  // namespace sibyl
