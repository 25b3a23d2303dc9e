// How a thread waits for messages: looking again and again, or asleep between looks.
//
// A message over TCP is there within some 10 us, and a sleep of 20 takes 70. Where one rank of a group begins an
// exchange 0.1 ms before another, as ranks do in every step, and falls asleep over it, the other waits for it to wake
// at every turn: an all-reduce of 600 KB over two ranks took 0.5 ms instead of 0.2 (docs/models/network.md). So a
// thread whose rank has nothing else to do looks without a pause, if the rank has a processor to itself; beside
// compute, and where ranks share processors, it sleeps.
#pragma once

#include <atomic>
#include <chrono>

namespace sibyl::comm {

// Looking any longer makes no exchange shorter by much.
constexpr std::chrono::milliseconds longest_look{2};

// Of this process, once: whether its ranks have a processor each (processors.h). Until then, they have not.
void let_ranks_look(bool processor_each);

// The calling thread communicates beside compute for as long as `compute_runs`, which must outlive the thread.
void wait_beside(const std::atomic<bool>& compute_runs);

// Whether the calling thread shall look without a pause.
[[nodiscard]] bool may_look();

}  // namespace sibyl::comm
