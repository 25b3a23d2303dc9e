#include "trainer/processor_use.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "base/files.h"

namespace sibyl::trainer {

std::optional<ProcessorTime> parse_processor_time(std::string_view stat) {
  std::istringstream words{std::string(stat.substr(0, stat.find('\n')))};
  std::string name;
  if (!(words >> name) || name != "cpu") return std::nullopt;
  constexpr int kinds = 8, idle = 3, iowait = 4;
  ProcessorTime time;
  for (int kind = 0; kind < kinds; ++kind) {
    double ticks = 0;
    if (!(words >> ticks) || ticks < 0) return std::nullopt;
    time.all += ticks;
    if (kind != idle && kind != iowait) time.busy += ticks;
  }
  return time;
}

std::optional<ProcessorTime> processor_time() {
  const Result<std::string> stat = read_file("/proc/stat");
  return stat ? parse_processor_time(*stat) : std::nullopt;
}

std::optional<double> busy_share(const std::optional<ProcessorTime>& from, const std::optional<ProcessorTime>& to) {
  if (!from || !to || to->all <= from->all) return std::nullopt;
  return std::clamp((to->busy - from->busy) / (to->all - from->all), 0.0, 1.0);
}

}  // namespace sibyl::trainer
