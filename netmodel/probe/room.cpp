#include "netmodel/probe/room.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "comm/machine.h"

namespace sibyl::probe {
namespace {

using std::filesystem::path;

constexpr double without_end = std::numeric_limits<double>::infinity();

std::optional<double> number_in(const path& file) {
  double value = 0;
  if (std::ifstream in(file); in >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

double available(const path& meminfo) {
  std::ifstream in(meminfo);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    double kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return without_end;
}

// Of a group and of those around it, up to `top`. A group's limit is its parents', too.
double left_in(const path& top, path group, const char* limit_name, const char* usage_name) {
  double least = without_end;
  for (;; group = group.parent_path()) {
    const auto limit = number_in(top / group.relative_path() / limit_name);
    const auto usage = number_in(top / group.relative_path() / usage_name);
    if (limit && usage) least = std::min(least, std::max(0.0, *limit - *usage));
    if (group == group.parent_path()) return least;
  }
}

// Lines are "0::/path" (version 2) and "4:memory:/path" (version 1).
double left_in_groups(const path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  const path mounted = root / "sys/fs/cgroup";
  double least = without_end;
  for (std::string line; std::getline(in, line);) {
    const std::size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(line.find(':') + 1, second - line.find(':') - 1);
    const path group = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, left_in(mounted, group, "memory.max", "memory.current"));
    if (controllers == "memory")
      least = std::min(least, left_in(mounted / "memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return least;
}

}  // namespace

Bytes free_memory(const path& root) { return Bytes{std::min(available(root / "proc/meminfo"), left_in_groups(root))}; }

Bytes room_of_rank(const Communicator& world) {
  const double own = machine_number();
  const std::vector<double> machines = world.gather_doubles(own);
  // Where there is no telling who shares a machine, all do.
  const auto sharing = own == 0 ? world.size() : static_cast<int>(std::ranges::count(machines, own));
  return free_memory() / (2.0 * sharing);
}

}  // namespace sibyl::probe
