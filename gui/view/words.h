// Sentences of the library as people see them in charts and views; without widgets.
#pragma once

#include <QString>
#include <string_view>

#include "base/result.h"

namespace sibyl::gui {

// One sentence, and another where there is a hint: what is wrong, where, and what to do.
QString sentence(const Error& error);
// With a capital at its beginning.
QString titled(std::string_view text);

}  // namespace sibyl::gui
