// Memory as charts show it, without widgets: bars by kind, levels over the step's time.
#pragma once

#include <vector>

#include "gui/view/charts/stacked_bars.h"
#include "oracle/memory/history.h"
#include "oracle/prediction.h"

namespace sibyl::gui {

// What a device must have: what lives in its memory, and what its allocator keeps beside it.
BarRow memoryRow(const QString& name, const MemoryBreakdown& memory);

// The highest moment of each of at most `columns` equally long parts of the step, by index into history.moments.
std::vector<std::size_t> highestMoments(const MemoryHistory& history, std::size_t columns);

inline constexpr int alive_operation_column = 2;  // of alive_table() (oracle/report/report.h)

}  // namespace sibyl::gui
