// Kernels in a row on a device that runs what its host issues, and rows of them behind each other.
//
// The host runs ahead of the device, from one row into the next. A row ends after the longest way to its last kernel:
// along the host up to some kernel, along the device from there. So of a row three numbers are enough (a max-plus
// linear map), however many its kernels.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sibyl::closed {

// Seconds.
struct Run {
  double compute = 0;  // of all kernels
  double issue = 0;    // of the host, for all of them
  double time = 0;     // from the beginning until the last kernel has ended

  [[nodiscard]] double waited() const { return time - compute; }  // for the host
  // Enough to matter: then messages are laid beside kernels event by event.
  [[nodiscard]] bool waits() const { return waited() > negligible * compute; }
  static constexpr double negligible = 0.003;  // of what is computed

  // One kernel more.
  void add(double seconds, double launch) {
    issue += launch;
    time = std::max(time, issue) + seconds;
    compute += seconds;
  }
  [[nodiscard]] Run then(const Run& next) const {
    return {compute + next.compute, issue + next.issue, std::max(time + next.compute, issue + next.time)};
  }
  // So many times; at least once.
  [[nodiscard]] Run times(std::int64_t n) const {
    const auto count = static_cast<double>(n);
    return {compute * count, issue * count, time + (count - 1) * std::max(compute, issue)};
  }
};

}  // namespace sibyl::closed
