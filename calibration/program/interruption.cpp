#include "calibration/program/interruption.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

namespace sibyl {
namespace {

volatile std::sig_atomic_t signalled = 0, tells = 0;

// From within a signal's handler.
void tell() {
  const int of_whom_it_interrupts = errno;
  constexpr std::string_view words =
      "\nsibyl-calibrate: told to end: what was measured so far is kept, and the same command goes on from there\n";
  if (write(STDERR_FILENO, words.data(), words.size()) < 0) errno = 0;  // nobody is there to hear it
  errno = of_whom_it_interrupts;
}

}  // namespace

void watch_for_interruption(bool and_tell) {
  tells = and_tell ? 1 : 0;
  struct sigaction action = {};
  action.sa_handler = [](int) {
    if (signalled == 0 && tells != 0) tell();
    signalled = 1;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool told_to_end() { return signalled != 0; }

}  // namespace sibyl
