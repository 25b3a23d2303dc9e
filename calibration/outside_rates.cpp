#include "calibration/outside_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace sibyl {
namespace {

constexpr BytesPerSecond drive_read{3.2e9}, drive_write{2.0e9};
constexpr BytesPerSecond third_generation{15.75e9};
constexpr double reached = 0.8;  // of what a link carries

int pcie_generation(std::string_view architecture) {
  constexpr std::array<std::string_view, 7> of_third = {"kepler", "maxwell", "pascal", "volta",
                                                        "turing", "gcn5",    "knl"};
  constexpr std::array<std::string_view, 2> of_fifth = {"hopper", "blackwell"};
  if (std::ranges::count(of_third, architecture) > 0) return 3;
  return std::ranges::count(of_fifth, architecture) > 0 ? 5 : 4;
}

// "twice" is what a change asks for of a rate that is not known (Cluster::host_link_factor).
std::string times(double factor, std::string what) {
  return factor == 1 ? std::move(what) : fmt::format("{:.4g} times {}", factor, what);
}

}  // namespace

OutsideRate host_link_rate(const Cluster& cluster) {
  if (cluster.host_link.value() > 0) return {cluster.host_link};
  const Device& device = cluster.kernels.device();
  const double factor = cluster.host_link_factor;
  if (device.backend == Backend::cpu)
    return {device.memory_bandwidth * (0.5 * factor), times(factor, "half of what its memory reads and writes")};
  const int generation = pcie_generation(device.architecture);
  return {third_generation * (reached * static_cast<double>(1 << (generation - 3)) * factor),
          times(factor, fmt::format("four fifths of 16 lanes of PCIe {}.0", generation))};
}

OutsideRate storage_read_rate(const Cluster& cluster) {
  if (cluster.storage_read.value() > 0) return {cluster.storage_read};
  return {drive_read * cluster.storage_factor, times(cluster.storage_factor, "a data-centre drive")};
}

OutsideRate storage_write_rate(const Cluster& cluster) {
  if (cluster.storage_write.value() > 0) return {cluster.storage_write};
  if (cluster.storage_read.value() <= 0)
    return {drive_write * cluster.storage_factor, times(cluster.storage_factor, "a data-centre drive")};
  return {drive_write * (cluster.storage_read / drive_read), "a data-centre drive that reads as fast"};
}

}  // namespace sibyl
