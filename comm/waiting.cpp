#include "comm/waiting.h"

namespace sibyl::comm {
namespace {

std::atomic<bool> ranks_look{false};
thread_local const std::atomic<bool>* beside = nullptr;

}  // namespace

void let_ranks_look(bool processor_each) { ranks_look = processor_each; }

void wait_beside(const std::atomic<bool>& compute_runs) { beside = &compute_runs; }

bool may_look() { return ranks_look && (beside == nullptr || !*beside); }

}  // namespace sibyl::comm
