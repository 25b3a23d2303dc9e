#include "oracle/cost/offload.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "oracle/plan/offload.h"
#include "oracle/plan/offload_activations.h"

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

PricedCopy price_copy(std::int64_t bytes, Tier tier, OffloadCopy::Way way, int ranks, const Cluster& cluster) {
  const Bytes size{static_cast<double>(bytes)};
  return {tier == Tier::host ? to_host(size, cluster) : to_storage(size, way == OffloadCopy::Way::out, ranks, cluster),
          size};
}

}  // namespace

std::vector<PricedCopy> price_copies(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  std::vector<PricedCopy> priced;
  for (const OffloadCopy& copy : stage.copies)
    priced.push_back(price_copy(state_bytes(stage, stage.blocks[copy.block]), stage.state_tier, copy.way,
                                ranks_of_a_node(plan, cluster), cluster));
  return priced;
}

std::vector<PricedStage::Kept> price_kept(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  std::vector<PricedStage::Kept> priced;
  const int ranks = ranks_of_a_node(plan, cluster);
  for (std::size_t s = 0; s < stage.kept_outside.size(); ++s) {
    const std::int64_t bytes = kept_outside_bytes(stage, s);
    priced.push_back({price_copy(bytes, stage.kept_tier, OffloadCopy::Way::out, ranks, cluster),
                      price_copy(bytes, stage.kept_tier, OffloadCopy::Way::in, ranks, cluster)});
  }
  return priced;
}

namespace {

void add(std::int64_t bytes, Bytes& all, Bytes& largest) {
  const Bytes own{static_cast<double>(bytes)};
  all += own;
  largest = std::max(largest, own);
}

}  // namespace

OutsideBytes outside_bytes(const Plan& plan, const Cluster& cluster) {
  OutsideBytes fullest;
  const bool staged = cluster.kernels.device().backend != Backend::cpu;
  for (std::size_t c = 0; c < plan.schedule.size(); ++c) {
    Bytes state, largest_block, kept, largest_kept;
    for (std::size_t s = c; s < plan.stages.size(); s += plan.schedule.size()) {
      const Stage& stage = plan.stages[s];
      for (const StateBlock& block : stage.blocks) add(state_bytes(stage, block), state, largest_block);
      for (std::size_t k = 0; k < stage.kept_outside.size(); ++k) add(kept_outside_bytes(stage, k), kept, largest_kept);
    }
    OutsideBytes own;
    const auto lie = [&](Tier tier, Bytes all, Bytes most_on_their_way) {
      own.host += tier == Tier::nvme ? std::min(all, staged ? most_on_their_way : Bytes{}) : all;
      own.storage += tier == Tier::nvme ? all : Bytes{};
    };
    lie(plan.strategy.optimizer_tier, state, largest_block * static_cast<double>(blocks_at_once));
    lie(plan.strategy.activation_tier, kept, largest_kept * 2.0);
    fullest.host = std::max(fullest.host, own.host);
    fullest.storage = std::max(fullest.storage, own.storage);
  }
  // As if every rank of the node had the fullest one's.
  const auto ranks = static_cast<double>(ranks_of_a_node(plan, cluster));
  return {fullest.host * ranks, fullest.storage * ranks};
}

}  // namespace sibyl
