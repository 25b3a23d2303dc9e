// Which shipped calibration stands for a device as a source names it.
//
// Names are compared by their parts: chip ("a100", "rtx6000ada"), form (SXM or PCIe) and memory (40 GB); makers,
// brackets and grades are ignored. The chip must be the same. Another form or memory of it is taken, and said to be
// assumed, where its own is not shipped or the source does not state it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/cluster.h"

namespace sibyl::published {

struct DeviceName {
  std::string chip;
  std::string form;   // "sxm", "pcie"; empty: not stated
  int memory_gb = 0;  // 0: not stated
};
DeviceName parse_device_name(std::string_view name);

struct DeviceMatch {
  std::string calibration;  // its shipped name
  std::vector<std::string> assumed;
};
// Of `shipped` the best one; an Error where none has the chip.
Result<DeviceMatch> match_device(const std::string& gpu, const std::vector<std::string>& shipped);

// What its makers say of a chip's links and of the machines it is sold in, where a source is silent.
struct ChipFacts {
  double nvlink_gb_per_s = 0;  // of one device, one direction, as NCCL counts; 0: it has none
  bool nvswitch = false;       // eight of them are joined by switches
  double pcie_gb_per_s = 12;   // as NCCL counts
  int nics = 1;                // of the maker's own machine
  double nic_gb_per_s = 12.5;
  bool switches_add = false;   // NVLink SHARP
  int devices_of_machine = 8;  // many of which may be one node of NVLink
};
ChipFacts facts_of(const DeviceName& device);

// Shipped devices, each read and indexed once. Safe to use from many threads.
class DeviceCatalogue {
 public:
  Result<Cluster> cluster(const std::string& calibration, const TopologySpec& topology);

 private:
  std::mutex mutex_;
  std::map<std::string, Calibration> known_;
  std::map<std::string, Cluster> built_;
};

}  // namespace sibyl::published
