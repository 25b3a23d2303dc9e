// How much of a machine's processors is in use. Emulated ranks sleep instead of computing and send for real: where the
// processors have no time left, what their steps measure is the machine that carries the emulation, not the cluster.
#pragma once

#include <optional>
#include <string_view>

namespace sibyl::trainer {

// Since the machine started, of all its processors, in ticks of the kernel's.
struct ProcessorTime {
  double busy = 0, all = 0;
};

// Of Linux's /proc/stat, its first line: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)). All but idle
// and iowait are busy: what another virtual machine steals is gone, too.
std::optional<ProcessorTime> parse_processor_time(std::string_view stat);
// Of this machine now; none where the system does not say.
std::optional<ProcessorTime> processor_time();

// Share of the time between two moments, 0 to 1; none where one is not known or no tick lies between.
std::optional<double> busy_share(const std::optional<ProcessorTime>& from, const std::optional<ProcessorTime>& to);

}  // namespace sibyl::trainer
