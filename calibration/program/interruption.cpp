#include "calibration/program/interruption.h"

#include <csignal>

namespace sibyl {
namespace {
volatile std::sig_atomic_t signalled = 0;
}

void watch_for_interruption() {
  struct sigaction action = {};
  action.sa_handler = [](int) { signalled = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return signalled != 0; }

}  // namespace sibyl
