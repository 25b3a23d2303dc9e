// The same for many things, by several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace sibyl {

// Calls visit(thread, i) for every i below `count`, the calling thread being 0: whoever is free takes the next.
template <class Visit>
void in_parallel(std::size_t threads, std::size_t count, const Visit& visit) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::size_t thread) {
    for (std::size_t i = next++; i < count; i = next++) visit(thread, i);
  };
  std::vector<std::thread> helpers;
  for (std::size_t t = 1; t < threads && t < count; ++t) helpers.emplace_back(work, t);
  work(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace sibyl
