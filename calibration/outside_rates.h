// How fast bytes move between a device and what lies outside it: its host's memory, and its node's storage. What the
// cluster does not know is assumed here, once for all who ask.
//
// A device and its host: 16 lanes of PCIe of the generation that its architecture came with carry 15.75 GB/s (3.0),
// twice or four times as much in a direction, of which large copies from pinned memory reach four fifths. Where the
// device is the processor, half its memory's bandwidth: each byte is read and written.
// Storage: a data-centre drive of four PCIe 3.0 lanes (Samsung's PM983: 3.2 GB/s read, 2.0 GB/s written); where only
// reading is known, writing is to it as to that drive's.
#pragma once

#include <string>

#include "calibration/cluster.h"

namespace sibyl {

struct OutsideRate {
  BytesPerSecond rate;  // 0 where not even a guess can be made
  std::string as =
      {};  // what it was assumed to be like: "four fifths of 16 lanes of PCIe 4.0"; empty where it is known
  [[nodiscard]] bool assumed() const { return !as.empty(); }
};

OutsideRate host_link_rate(const Cluster& cluster);      // of one device, each way
OutsideRate storage_read_rate(const Cluster& cluster);   // of one node, all its ranks together
OutsideRate storage_write_rate(const Cluster& cluster);  // as storage_read_rate

}  // namespace sibyl
