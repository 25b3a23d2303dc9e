// What memory is made of at its peak, as a table.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "oracle/memory/history.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "layers.12.mlp" -> "layers.*.mlp"
std::string without_numbers(const std::string& name) {
  std::string result;
  for (const char c : name)
    if (!is_digit(c))
      result += c;
    else if (!result.ends_with('*'))
      result += '*';
  return result;
}

Bytes each(const AliveMemory& alive) { return alive.bytes * (1.0 / alive.count); }

struct Alike {
  const AliveMemory* largest = nullptr;
  std::size_t names = 0, count = 0;  // of tensors, of which several may have one name
  Bytes bytes;                       // of all
};

}  // namespace

Table alive_table(const MemoryHistory& history) {
  using enum Column::Align;
  Table table{.columns = {{"Alive at the peak", "name", left},
                          {"Kind", "kind", left},
                          {"Layer", "operation", left},
                          {"Memory", "bytes"},
                          {"Share", "share"}},
              .rows = {}};
  const Bytes all = history.footprint.peak.total;
  for (const AliveMemory& alive : history.alive) {
    const std::string name = alive.count == 1 ? alive.name : fmt::format("{} × {}", alive.count, alive.name);
    table.rows.push_back({name, std::string(to_string(alive.kind)), alive.operation,
                          Cell(to_string(alive.bytes), plain_number(alive.bytes.value())),
                          Cell(percent(alive.bytes / all), plain_number(alive.bytes / all))});
  }
  return table;
}

Table alike_table(const MemoryHistory& history) {
  using enum Column::Align;
  std::map<std::pair<MemoryKind, std::string>, Alike> groups;
  for (const AliveMemory& alive : history.alive) {
    Alike& group = groups[{alive.kind, without_numbers(alive.name)}];
    if (!group.largest || each(alive) > each(*group.largest)) group.largest = &alive;
    group.names += 1;
    group.count += static_cast<std::size_t>(alive.count);
    group.bytes += alive.bytes;
  }
  std::vector<std::pair<std::string, Alike>> rows;
  for (const auto& [key, group] : groups) rows.emplace_back(group.names == 1 ? group.largest->name : key.second, group);
  std::ranges::stable_sort(rows, std::greater{}, [](const auto& row) { return row.second.bytes; });

  const Bytes all = history.footprint.peak.total;
  Table table{.columns = {{"Alive at the peak", "name", left},
                          {"Kind", "kind", left},
                          {"Alike", "count"},
                          {"Largest", "largest_bytes"},
                          {"Memory", "bytes"},
                          {"Share", "share"}},
              .rows = {}};
  for (const auto& [name, group] : rows)
    table.rows.push_back({name, std::string(to_string(group.largest->kind)), count_cell(group.count),
                          Cell(to_string(each(*group.largest)), plain_number(each(*group.largest).value())),
                          Cell(to_string(group.bytes), plain_number(group.bytes.value())),
                          Cell(percent(group.bytes / all), plain_number(group.bytes / all))});
  return table;
}

}  // namespace sibyl
