#include "gui/view/charts/memory_series.h"

#include <QObject>
#include <algorithm>

#include "base/quantity.h"
#include "gui/view/words.h"
#include "oracle/report/report.h"

namespace sibyl::gui {

BarRow memoryRow(const QString& name, const MemoryBreakdown& memory) {
  BarRow row{name, {}, QString::fromStdString(to_string(memory.needed())), {}};
  for (const MemoryPart& part : memory_parts())
    row.parts.push_back({QString::fromUtf8(part.key.data(), static_cast<qsizetype>(part.key.size())),
                         titled(part.title), (memory.*part.value).value()});
  row.parts.push_back({"cached", QObject::tr("Allocator's cache"), memory.cached().value(), true});
  return row;
}

std::vector<std::size_t> highestMoments(const MemoryHistory& history, std::size_t columns) {
  std::vector<std::size_t> highest;
  std::size_t column = columns;  // of the last one
  for (std::size_t m = 0; m < history.moments.size(); ++m) {
    const double share = history.end.value() > 0 ? history.moments[m].start / history.end : 0;
    const std::size_t own = std::min(columns - 1, static_cast<std::size_t>(share * static_cast<double>(columns)));
    if (own != column)
      highest.push_back(m);
    else if (history.moments[m].most.total > history.moments[highest.back()].most.total)
      highest.back() = m;
    column = own;
  }
  return highest;
}

}  // namespace sibyl::gui
