#include "gui/view/charts/memory_series.h"

#include <QObject>
#include <algorithm>

#include "base/quantity.h"
#include "gui/view/words.h"
#include "oracle/report/report.h"

namespace sibyl::gui {

QString colourKey(std::string_view key) { return QString::fromUtf8(key.data(), static_cast<qsizetype>(key.size())); }

BarRow memoryRow(const QString& name, const MemoryBreakdown& memory) {
  BarRow row{name, {}, QString::fromStdString(to_string(memory.needed())), {}};
  for (const MemorySlice& slice : memory_slices(memory)) {
    const bool cache = slice.key == cache_key;
    row.parts.push_back({colourKey(slice.key), titled(slice.title), slice.value.value(), cache,
                         cache ? titled(cache_meaning) : QString()});
  }
  return row;
}

std::vector<HighestMoment> highestMoments(const MemoryHistory& history, std::size_t columns) {
  std::vector<HighestMoment> highest;
  std::size_t column = columns;  // of the last one
  for (std::size_t m = 0; m < history.moments.size(); ++m) {
    const MemoryBreakdown& most = history.moments[m].most;
    const double share = history.end.value() > 0 ? history.moments[m].start / history.end : 0;
    const std::size_t own = std::min(columns - 1, static_cast<std::size_t>(share * static_cast<double>(columns)));
    if (own != column) highest.push_back({m, {}});
    HighestMoment& of_column = highest.back();
    if (most.total > history.moments[of_column.moment].most.total) of_column.moment = m;
    of_column.needed = std::max(of_column.needed, most.needed());
    column = own;
  }
  return highest;
}

}  // namespace sibyl::gui
