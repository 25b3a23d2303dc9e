// `sibyl-gui --export-to DIR session.json`: all views of the session's current scenario as PNG, SVG and CSV, and a
// report.html, without a window that anybody sees.
#pragma once

#include <QString>

#include "base/result.h"

namespace sibyl::gui {

// The exit code where it could be done: 0, or 4 for a plan that does not fit, which is exported all the same.
Result<int> exportHeadless(const QString& session, const QString& folder);

}  // namespace sibyl::gui
