#include "comm/machine.h"

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>

namespace sibyl {

// Linux draws an id at each boot.
double machine_number() {
  std::string id;
  if (std::ifstream file("/proc/sys/kernel/random/boot_id"); !std::getline(file, id)) return 0;
  return static_cast<double>(std::hash<std::string>{}(id) % (std::uint64_t{1} << 53));
}

}  // namespace sibyl
