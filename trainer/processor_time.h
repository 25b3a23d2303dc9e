// How busy this host's processors are, whoever keeps them so.
#pragma once

#include <optional>
#include <string_view>

namespace sibyl::trainer {

// Of all processors since the host started, in ticks of its clock (10 ms on most systems).
struct ProcessorTime {
  double busy = 0, all = 0;
};

// None where the system does not tell.
std::optional<ProcessorTime> processor_time();
// As Linux's /proc/stat tells it. What a hypervisor gave to others was not there to be used, and counts as busy.
std::optional<ProcessorTime> parse_processor_time(std::string_view stat);

// The share of the time between two moments that processors were busy; none where a moment is missing or they are one.
std::optional<double> busy_share(const std::optional<ProcessorTime>& from, const std::optional<ProcessorTime>& to);

}  // namespace sibyl::trainer
