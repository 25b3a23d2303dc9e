// Lets the program go on until something is so: for what is worked out in other threads and told by events.
#pragma once

#include <functional>

namespace sibyl::gui {

// Both are asked a hundred times a second. False: `cancelled` said so first, or the program is to end.
bool waitUntil(const std::function<bool()>& done, const std::function<bool()>& cancelled = {});

}  // namespace sibyl::gui
