// What memory is made of at its peak, as a table.
#include <fmt/format.h>

#include "base/quantity.h"
#include "oracle/memory/history.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl {

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

}  // namespace sibyl
