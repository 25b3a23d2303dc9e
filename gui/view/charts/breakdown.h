// What a step's time is made of, as bars; from a prediction alone, without widgets.
#pragma once

#include <QString>
#include <vector>

#include "base/table.h"
#include "gui/view/charts/stacked_bars.h"
#include "oracle/prediction.h"

namespace sibyl::gui {

// Its parts on the critical path, which add up to the step time; beside them communication that is hidden behind
// compute.
BarRow breakdownRow(const QString& name, const Prediction& prediction);

inline constexpr int layer_name_column = 0;  // of layer_table() (oracle/report/report.h)

}  // namespace sibyl::gui
