// Light and dark surfaces for Qt's Fusion style. `system`: whatever palette the desktop gives.
#pragma once

#include <QApplication>

namespace sibyl::gui {

enum class Theme { system, light, dark };

void applyTheme(QApplication& application, Theme theme);

}  // namespace sibyl::gui
