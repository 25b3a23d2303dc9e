#include "oracle/cost/offload.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "calibration/outside_rates.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/offload_activations.h"
#include "oracle/plan/offload_parameters.h"

namespace sibyl {
namespace {

// One standard deviation, relative: of what a datasheet says, and of what was measured as for samples from storage
// (oracle/reading.h): copies of a step are no lone ones.
constexpr double datasheet_error = 0.30, measured_error = 0.20;
constexpr Seconds copy_latency{10e-6}, file_latency{100e-6};  // to start one

Estimate to_host(Bytes bytes, const Cluster& cluster) {
  const BytesPerSecond rate = host_link_rate(cluster).rate;
  const Seconds moving = rate.value() > 0 ? bytes / rate : Seconds{};
  const bool measured = cluster.host_link_measured;
  return {copy_latency + moving, measured ? measured_error : datasheet_error,
          measured ? Provenance::measured : Provenance::estimated};
}

Estimate to_storage(Bytes bytes, bool write, int ranks, const Cluster& cluster) {
  const OutsideRate outside = write ? storage_write_rate(cluster) : storage_read_rate(cluster);
  const bool measured = !outside.assumed() && cluster.storage_measured;
  const Estimate file{file_latency + bytes * static_cast<double>(ranks) / outside.rate,
                      measured ? measured_error : datasheet_error,
                      measured ? Provenance::measured : Provenance::estimated};
  if (cluster.kernels.device().backend == Backend::cpu) return file;
  const Estimate link = to_host(bytes, cluster);
  return link.time > file.time ? link : file;
}

int ranks_of_a_node(const Strategy& strategy, const Cluster& cluster) {
  return std::min(strategy.devices(), cluster.devices_per_node);
}

PricedCopy one_after_the_other(const PricedCopy& a, const PricedCopy& b) {
  return {{a.estimate.time + b.estimate.time, std::max(a.estimate.relative_error, b.estimate.relative_error),
           std::max(a.estimate.provenance, b.estimate.provenance)},
          a.bytes + b.bytes};
}

}  // namespace

CopyPrices::CopyPrices(const Strategy& strategy, const Cluster& cluster)
    : cluster_(cluster),
      state_(strategy.optimizer_tier),
      parameters_(strategy.parameter_tier),
      ranks_(ranks_of_a_node(strategy, cluster)) {}

PricedCopy CopyPrices::of(std::int64_t bytes, Tier tier, OffloadCopy::Way way) const {
  const Bytes size{static_cast<double>(bytes)};
  return {
      tier == Tier::host ? to_host(size, cluster_) : to_storage(size, way == OffloadCopy::Way::out, ranks_, cluster_),
      size};
}

PricedCopy CopyPrices::block(const BlockBytes& bytes, OffloadCopy::Way way) const {
  if (bytes.total() == 0) return {};
  if (bytes.parameters == 0) return of(bytes.state, state_, way);
  if (bytes.state == 0 || state_ == parameters_) return of(bytes.total(), parameters_, way);
  return one_after_the_other(of(bytes.state, state_, way), of(bytes.parameters, parameters_, way));
}

std::vector<PricedCopy> price_copies(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  const CopyPrices prices(plan.strategy, cluster);
  std::vector<PricedCopy> priced;
  for (const OffloadCopy& copy : stage.copies)
    priced.push_back(prices.block(block_bytes(stage, stage.blocks[copy.block]), copy.way));
  return priced;
}

std::vector<PricedCopy> price_brought(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  std::vector<PricedCopy> priced;
  if (stage.parameter_tier == Tier::device) return priced;
  const CopyPrices prices(plan.strategy, cluster);
  for (const ParameterUnit& unit : stage.units)
    priced.push_back(prices.of(part_bytes(stage, unit.sync, unit.bucket), stage.parameter_tier, OffloadCopy::Way::in));
  return priced;
}

std::vector<PricedStage::Kept> price_kept(const Plan& plan, const Stage& stage, const Cluster& cluster) {
  std::vector<PricedStage::Kept> priced;
  const CopyPrices prices(plan.strategy, cluster);
  for (std::size_t s = 0; s < stage.kept_outside.size(); ++s) {
    const std::int64_t bytes = kept_outside_bytes(stage, s);
    priced.push_back({prices.of(bytes, stage.kept_tier, OffloadCopy::Way::out),
                      prices.of(bytes, stage.kept_tier, OffloadCopy::Way::in)});
  }
  return priced;
}

double copies_slowdown(const Strategy& strategy, const Device& device) {
  return device.backend == Backend::cpu && strategy.offloads_to(Tier::host) ? 2.0 : 1.0;
}

bool uses_host_link(const Strategy& strategy, const Cluster& cluster) {
  const bool staged = cluster.kernels.device().backend != Backend::cpu;
  return strategy.offloads_to(Tier::host) || (strategy.offloads_to(Tier::nvme) && staged);
}

std::vector<std::string> assumed_outside(const Strategy& strategy, const Cluster& cluster) {
  std::vector<std::string> list;
  if (const OutsideRate link = host_link_rate(cluster); uses_host_link(strategy, cluster) && link.assumed())
    list.push_back(cluster.kernels.device().backend == Backend::cpu
                       ? fmt::format("what is offloaded is copied in memory at {}, {}: not measured",
                                     to_string(link.rate), link.as)
                       : fmt::format("the link of a device to its host's memory carries {} each way, {}: not measured",
                                     to_string(link.rate), link.as));
  if (!strategy.offloads_to(Tier::nvme)) return list;
  const OutsideRate read = storage_read_rate(cluster), write = storage_write_rate(cluster);
  const std::string writes = fmt::format("writes {}, like {}: not measured", to_string(write.rate), write.as);
  if (read.assumed() && write.assumed())
    list.push_back(fmt::format("the storage of a node reads {} and {}", to_string(read.rate), writes));
  else if (read.assumed())
    list.push_back(fmt::format("the storage of a node reads {}, like {}: not measured", to_string(read.rate), read.as));
  else if (write.assumed())
    list.push_back("the storage of a node " + writes);
  return list;
}

namespace {

void add(std::int64_t bytes, Bytes& all, Bytes& largest, int times = 1) {
  const Bytes own{static_cast<double>(bytes)};
  all += own * static_cast<double>(times);
  largest = std::max(largest, own);
}

}  // namespace

OutsideBytes outside_bytes(const Plan& plan, const Cluster& cluster) {
  OutsideBytes fullest;
  const bool staged = cluster.kernels.device().backend != Backend::cpu;
  for (std::size_t c = 0; c < plan.schedule.size(); ++c) {
    Bytes state, largest_block, parameters, largest_part, kept, largest_kept;
    for (std::size_t s = c; s < plan.stages.size(); s += plan.schedule.size()) {
      const Stage& stage = plan.stages[s];
      for (const StateBlock& block : stage.blocks) {
        const BlockBytes bytes = block_bytes(stage, block);
        add(bytes.state, state, largest_block);
        add(bytes.parameters, parameters, largest_part);
      }
      for (std::size_t k = 0; k < stage.kept_outside.size(); ++k)
        add(kept_outside_bytes(stage, k), kept, largest_kept, most_on_their_way(stage));
    }
    OutsideBytes own;
    const auto lie = [&](Tier tier, Bytes all, Bytes most_on_their_way) {
      own.host += tier == Tier::nvme ? std::min(all, staged ? most_on_their_way : Bytes{}) : all;
      own.storage += tier == Tier::nvme ? all : Bytes{};
    };
    lie(plan.strategy.optimizer_tier, state, largest_block * static_cast<double>(blocks_at_once));
    lie(plan.strategy.parameter_tier, parameters, largest_part * static_cast<double>(blocks_at_once));
    lie(plan.strategy.activation_tier, kept, largest_kept * 2.0);
    fullest.host = std::max(fullest.host, own.host);
    fullest.storage = std::max(fullest.storage, own.storage);
  }
  // As if every rank of the node had the fullest one's.
  const auto ranks = static_cast<double>(ranks_of_a_node(plan.strategy, cluster));
  return {fullest.host * ranks, fullest.storage * ranks};
}

}  // namespace sibyl
