// Horizontal bars made of parts, one under the other: times of a step, memory of a device.
#pragma once

#include <QString>
#include <vector>

#include "gui/view/charts/plot.h"

namespace sibyl::gui {

struct BarPart {
  QString key;    // its colour (view/colours.h)
  QString title;  // as it is called
  double value = 0;
  bool hatched = false;  // held, but not used
  QString meaning = {};  // where the title does not say it all
};

struct BarRow {
  QString name;
  std::vector<BarPart> parts;
  QString note;  // at its end
  // Beside them, not part of the sum: a thin bar below.
  std::vector<BarPart> beside = {};
};

double lengthOf(const BarRow& row);  // of its parts together

// The first row is the uppermost. Parts of one title are one entry of the legend, in the order of
// the parts. The axis reaches at least to `reach`.
void drawStackedBars(Plot& plot, const std::vector<BarRow>& rows, Measure measure, double reach = 0);

inline constexpr Qt::BrushStyle hatching = Qt::BDiagPattern;  // of what is held, but not used

}  // namespace sibyl::gui
