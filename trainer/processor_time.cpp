#include "trainer/processor_time.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace sibyl::trainer {

std::optional<ProcessorTime> processor_time() {
  std::ifstream stat("/proc/stat");
  std::string first;
  return std::getline(stat, first) ? parse_processor_time(first) : std::nullopt;
}

// "cpu user nice system idle iowait irq softirq steal guest guest_nice": guests' time is part of the user's.
std::optional<ProcessorTime> parse_processor_time(std::string_view stat) {
  constexpr std::size_t idle = 3, iowait = 4, counted = 8;
  std::istringstream words{std::string(stat)};
  std::string name;
  if (!(words >> name) || name != "cpu") return std::nullopt;
  ProcessorTime time;
  for (std::size_t i = 0; i < counted; ++i) {
    double ticks = 0;
    if (!(words >> ticks)) return std::nullopt;
    time.all += ticks;
    if (i != idle && i != iowait) time.busy += ticks;
  }
  return time;
}

// Idle time as Linux counts it may go back by a tick.
std::optional<double> busy_share(const std::optional<ProcessorTime>& from, const std::optional<ProcessorTime>& to) {
  if (!from || !to || !(to->all > from->all)) return std::nullopt;
  return std::clamp((to->busy - from->busy) / (to->all - from->all), 0.0, 1.0);
}

}  // namespace sibyl::trainer
