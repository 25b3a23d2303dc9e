#include "oracle/cost/offload.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "oracle/plan/offload.h"

namespace sibyl {
namespace {

// One standard deviation, relative: of a link by its datasheet, and of storage as for samples (oracle/reading.h).
constexpr double datasheet_error = 0.30, storage_error = 0.20;
constexpr Seconds copy_latency{10e-6}, file_latency{100e-6};  // to start one
// A data-centre drive of four PCIe 3.0 lanes (Samsung's PM983: 3.2 GB/s read, 2.0 GB/s written).
constexpr BytesPerSecond drive_read{3.2e9}, drive_write{2.0e9};
constexpr double reached = 0.8;  // of what a link carries

// 16 lanes, each way: PCIe 3.0 carries 15.75 GB/s, 4.0 and 5.0 twice and four times as much.
BytesPerSecond pcie(std::string_view architecture) {
  constexpr BytesPerSecond third{15.75e9};
  constexpr std::array<std::string_view, 7> of_third = {"kepler", "maxwell", "pascal", "volta",
                                                        "turing", "gcn5",    "knl"};
  constexpr std::array<std::string_view, 2> of_fifth = {"hopper", "blackwell"};
  if (std::ranges::count(of_third, architecture) > 0) return third * reached;
  return third * ((std::ranges::count(of_fifth, architecture) > 0 ? 4.0 : 2.0) * reached);
}

BytesPerSecond host_link(const Cluster& cluster) {
  if (cluster.host_link.value() > 0) return cluster.host_link;
  const Device& device = cluster.kernels.device();
  if (device.backend == Backend::cpu) return device.memory_bandwidth * 0.5;
  return pcie(device.architecture);
}

Estimate to_host(Bytes bytes, const Cluster& cluster) {
  const BytesPerSecond rate = host_link(cluster);
  const Seconds moving = rate.value() > 0 ? bytes / rate : Seconds{};
  return {copy_latency + moving, datasheet_error, Provenance::estimated};
}

Estimate to_storage(Bytes bytes, bool write, int ranks, const Cluster& cluster) {
  const BytesPerSecond own = write ? cluster.storage_write : cluster.storage_read;
  const BytesPerSecond usual = write ? drive_write : drive_read;
  const bool known = own.value() > 0, measured = known && cluster.storage_measured;
  // Of a storage that is said to be quicker or slower than the drive in reading, writing is so, too.
  const double like = cluster.storage_read.value() > 0 ? cluster.storage_read / drive_read : 1.0;
  const BytesPerSecond rate = known ? own : usual * like;
  const Estimate file{file_latency + bytes * static_cast<double>(ranks) / rate,
                      measured ? storage_error : datasheet_error,
                      measured ? Provenance::measured : Provenance::estimated};
  if (cluster.kernels.device().backend == Backend::cpu) return file;
  const Estimate link = to_host(bytes, cluster);
  return link.time > file.time ? link : file;
}

int ranks_of_a_node(const Plan& plan, const Cluster& cluster) {
  return std::min(plan.strategy.devices(), cluster.devices_per_node);
}

}  // namespace

std::vector<PricedCopy> price_copies(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  std::vector<PricedCopy> priced;
  for (const OffloadCopy& copy : stage.copies) {
    const Bytes bytes{static_cast<double>(state_bytes(stage, stage.blocks[copy.block]))};
    const bool write = copy.way == OffloadCopy::Way::out;
    priced.push_back({stage.state_tier == Tier::host
                          ? to_host(bytes, cluster)
                          : to_storage(bytes, write, ranks_of_a_node(plan, cluster), cluster),
                      bytes});
  }
  return priced;
}

OutsideBytes outside_bytes(const Plan& plan, const Cluster& cluster) {
  OutsideBytes fullest;
  const bool staged = cluster.kernels.device().backend != Backend::cpu;
  for (std::size_t c = 0; c < plan.schedule.size(); ++c) {
    Bytes all, largest;
    for (std::size_t s = c; s < plan.stages.size(); s += plan.schedule.size())
      for (const StateBlock& block : plan.stages[s].blocks) {
        const Bytes bytes{static_cast<double>(state_bytes(plan.stages[s], block))};
        all += bytes;
        largest = std::max(largest, bytes);
      }
    const bool files = plan.strategy.optimizer_tier == Tier::nvme;
    const Bytes on_its_way = staged ? std::min(all, largest * static_cast<double>(blocks_at_once)) : Bytes{};
    fullest.host = std::max(fullest.host, files ? on_its_way : all);
    fullest.storage = std::max(fullest.storage, files ? all : Bytes{});
  }
  // As if every rank of the node had the fullest one's.
  const auto ranks = static_cast<double>(ranks_of_a_node(plan, cluster));
  return {fullest.host * ranks, fullest.storage * ranks};
}

}  // namespace sibyl
