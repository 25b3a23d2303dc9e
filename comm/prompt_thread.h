// A communication thread shares its processor with compute: it must run as soon as a message is there, not when
// compute's time slice has passed.
#pragma once

namespace sibyl::comm {

// Asks the scheduler to run the calling thread soon after it wakes, in slices of 0.1 ms. Needs no privilege.
//
// Linux 6.12 and newer take the slice (sched_setattr(2), runtime of a normal thread), and a thread with a shorter slice
// preempts one with a longer; its share of the processor stays what it was. Elsewhere nothing happens: older schedulers
// favour whoever has slept. Measured on two ranks and two cores (docs/models/step.md): beside compute, messages took 17
// times as long as alone without it and 3.5 times with it.
void run_promptly();

// Lets the calling thread's sleeps end when they should: Linux adds 50 us unless asked. Cheap when asked again.
void precise_sleeps();

}  // namespace sibyl::comm
