#include "comm/prompt_thread.h"

#ifdef __linux__
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace sibyl::comm {

void run_promptly() {
#ifdef __linux__
  struct {  // sched_setattr(2); the C library has no declaration of it before glibc 2.41
    std::uint32_t size = 48, policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 100'000, deadline_ns = 0, period_ns = 0;
  } attributes;
  static_assert(sizeof attributes == 48);
  // Refused or ignored, the thread runs as any other.
  static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
#endif
}

void precise_sleeps() {
#ifdef __linux__
  thread_local const int asked = prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  static_cast<void>(asked);
#endif
}

}  // namespace sibyl::comm
