// Texts of the library in Qt's strings, and what tooltips say of an option.
#pragma once

#include <QString>
#include <string_view>

#include "base/result.h"
#include "oracle/cli/arguments.h"

namespace sibyl::gui {

inline QString text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

// Without the program's name: "WHERE: MESSAGE", and the hint on a line of its own.
QString errorText(const Error& error);
// Is it about how devices share the work, rather than about what else is asked of training?
bool concernsStrategy(const Error& error);
// What it means, what holds without it, how the command line calls it.
QString tip(const cli::Option& option);
// The option of `sibyl predict` with that name; it must exist.
const cli::Option& predictOption(std::string_view name);

}  // namespace sibyl::gui
