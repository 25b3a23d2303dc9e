#include "gui/model/latest.h"

#include <new>

namespace sibyl::gui {

Error errorOf(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return {ErrorCode::bad_input, "there is not enough memory to work this out", {}, {}};
  return {ErrorCode::bad_input, std::string("this is a bug in Sibyl: ") + thrown.what(), {}, {}};
}

}  // namespace sibyl::gui
