#include "gui/model/latest.h"

#include <new>

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace sibyl::gui {

// On Linux a thread has a niceness of its own, of which each step leaves it about four fifths of its share of a
// processor. It may not go back, so a pool's thread keeps to one urgency.
void work(Urgency urgency) {
#ifdef __linux__
  constexpr int step = 5;
  static const int usual = getpriority(PRIO_PROCESS, 0);  // the first job's, which its thread has from the window's
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), usual + step * static_cast<int>(urgency));
#else
  (void)urgency;
#endif
}

Error errorOf(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return {ErrorCode::bad_input, "there is not enough memory to work this out", {}, {}};
  return {ErrorCode::bad_input, std::string("this is a bug in Sibyl: ") + thrown.what(), {}, {}};
}

}  // namespace sibyl::gui
