// The machine of a published row: nodes, and what joins devices and nodes, from what the source says in words
// ("NVLink3+NVSwitch", "IB HDR 8x200Gb/s per node", "10 Gb/s Ethernet").
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "netmodel/topology.h"
#include "oracle/validate/published/devices.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {

struct MachineRecipe {
  TopologySpec topology;
  std::vector<std::string> assumed;
};

// Where the source is silent, the links that the device's makers give it, and the adapters of their own machine.
MachineRecipe machine_of(const Row& row);

}  // namespace sibyl::published
