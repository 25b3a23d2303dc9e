// A cluster with some of it changed, to ask what a part would bring: "link.bandwidth=2x", "device.memory=80GB".
//
// Measurements stay what answers are made from: a changed link carries each measured message by the ratio of the
// network's formulas (Network::with_links), a changed device each measured kernel by the ratio of its rooflines
// (KernelTable::on). Nothing so carried is called measured.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "calibration/cluster.h"

namespace sibyl {

struct ClusterKey {
  std::string_view name;   // "link.bandwidth"
  std::string_view title;  // as people call it: "link bandwidth"
  std::string_view says;   // what it is, in a few words
  std::string_view takes;  // an absolute value as an example
  bool share = false;      // of something: 0, the usual value, to most_share
};
inline constexpr double most_share = 0.99;  // as a cluster file may say
const std::vector<ClusterKey>& cluster_keys();
bool is_cluster_key(std::string_view name);
// What it is of this cluster, as people write it: "12.5 GB/s"; empty where it is not known. `computed_in` as below.
std::string value_text(const Cluster& cluster, std::string_view key, DType computed_in);
// Of a key that is a share what it is of this cluster, "nic.background": 0.3; 0 of others.
double share_of(const Cluster& cluster, std::string_view key);

// `changes`: "KEY=VALUE" each, applied in order; VALUE is a quantity (of a share a number from 0 to most_share), or a
// factor as 2x or 0.5x of what is not 0. `computed_in` is the type whose peak an absolute device.flops states; those of
// other types change in proportion. Errors are of code usage.
Result<Cluster> changed(const Cluster& cluster, std::span<const std::string> changes, DType computed_in);

}  // namespace sibyl
