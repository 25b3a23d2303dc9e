// Memory as charts show it, without widgets: bars by kind, levels over the step's time, what is alive at the peak.
#pragma once

#include <vector>

#include "base/table.h"
#include "gui/view/charts/stacked_bars.h"
#include "oracle/memory/history.h"
#include "oracle/prediction.h"

namespace sibyl::gui {

BarRow memoryRow(const QString& name, const MemoryBreakdown& memory);

// The highest moment of each of at most `columns` equally long parts of the step, by index into history.moments.
std::vector<std::size_t> highestMoments(const MemoryHistory& history, std::size_t columns);

// What is alive at the peak, the largest first: name and how many, kind, the operation it belongs to, bytes, share.
Table aliveTable(const MemoryHistory& history);
inline constexpr int alive_operation_column = 2;

}  // namespace sibyl::gui
