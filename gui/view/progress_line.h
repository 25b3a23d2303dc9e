// A thin line that says how far a job is, and is not seen while there is none; its room is kept.
#pragma once

#include <QProgressBar>

#include "gui/model/latest.h"

namespace sibyl::gui {

// Of a job that does not tell how far it is, or that goes on when it has told all of it (a search then simulates the
// best that formulas found), the line runs to and fro.
QProgressBar* makeProgress(LatestSignals& job, const QString& accessibleName, QWidget* parent);

}  // namespace sibyl::gui
