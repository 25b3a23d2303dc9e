// The colours of all views: one for each kind of time, memory or operation, the same wherever it appears, told apart by people who
// do not see all colours (after Okabe and Ito, 2008). Plain surfaces and texts are the palette's, so that light and dark follow the system.
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>

namespace sibyl::gui {

// By key: "forward", "backward", "optimizer", "communication", "communication_exposed", "bubble", "host", "io", "weights", "gradients",
// "activations", "workspace", "framework", "idle", …; an unknown key gets one of the series' colours, always the same one.
QColor colourOf(const QString& key, const QPalette& palette);
// The n-th of things that are only to be told apart; they repeat after eight.
QColor seriesColour(int n, const QPalette& palette);
bool isDark(const QPalette& palette);
// Between `from` (0) and `to` (1).
QColor mixed(const QColor& from, const QColor& to, double share);
// Black or white, whichever is easier to read on it.
QColor textOn(const QColor& background);

}  // namespace sibyl::gui
