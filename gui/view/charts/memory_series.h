// Memory as charts show it, without widgets: bars by kind, levels over the step's time.
#pragma once

#include <string_view>
#include <vector>

#include "gui/view/charts/stacked_bars.h"
#include "oracle/memory/history.h"
#include "oracle/prediction.h"

namespace sibyl::gui {

QString colourKey(std::string_view key);  // as view/colours.h takes a part's

// What a device must have: what lives in its memory, and what its allocator keeps beside it.
BarRow memoryRow(const QString& name, const MemoryBreakdown& memory);

// Of each of at most `columns` equally long parts of the step the moment where most is alive, and the most that the
// device must hold in that part: with its allocator's cache, which may be largest at another moment.
struct HighestMoment {
  std::size_t moment = 0;  // of history.moments
  Bytes needed;
};
std::vector<HighestMoment> highestMoments(const MemoryHistory& history, std::size_t columns);

inline constexpr int alive_operation_column = 2;  // of alive_table() (oracle/report/report.h)

}  // namespace sibyl::gui
