#include "trainer/program/emulation.h"

#include <algorithm>
#include <cmath>

#include "oracle/cost/price.h"

namespace sibyl::trainer {
namespace {

class Pricer {
 public:
  Pricer(const PricedStage& priced, std::size_t blocks) : priced_(priced), blocks_(blocks) {}

  EmulatedStage stage() const {
    EmulatedStage result;
    for (const StageKernels::OfStep& kernels : priced_.kernels.steps) {
      EmulatedStage::OfStep step;
      step.forward = work(optional(kernels.forward));
      if (kernels.forward) step.forward.duration += priced_.overhead;
      step.backward = work(optional(kernels.backward));
      add(step.backward, kernels.sums, priced_.bare_launch);
      step.backward_weight = work(optional(kernels.backward_weight));
      step.parameter_casts = work(kernels.parameter_casts, priced_.bare_launch);
      step.parameter_sums = work(kernels.parameter_sums, priced_.bare_launch);
      step.bucket_copies = work(kernels.bucket_copies, priced_.bare_launch);
      result.steps.push_back(step);
    }
    result.part_sums = work(priced_.kernels.part_sums, priced_.bare_launch);
    result.copies_back = work(priced_.kernels.copies_back, priced_.bare_launch);
    for (const StageKernels::Index copy : priced_.kernels.unit_copies) result.unit_copies.push_back(work({copy}));
    result.unscale = work(priced_.kernels.unscale);
    result.norms = work(priced_.kernels.norms);
    result.clips = work(priced_.kernels.clips);
    result.masters = work(priced_.kernels.masters);
    result.updates = work(priced_.kernels.updates);
    std::vector<Keys> of_blocks(blocks_);
    for (std::size_t u = 0; blocks_ > 0 && u < priced_.kernels.updates.size(); ++u)
      of_blocks[priced_.kernels.updated_blocks[u]].push_back(priced_.kernels.updates[u]);
    for (const Keys& keys : of_blocks) result.block_updates.push_back(work(keys));
    for (const PricedCopy& copy : priced_.copies) result.copies.push_back(copy.estimate.time);
    for (const PricedCopy& copy : priced_.brought) result.brought.push_back(copy.estimate.time);
    for (const PricedStage::Kept& kept : priced_.kept) {
      result.kept_out.push_back(kept.out.estimate.time);
      result.kept_in.push_back(kept.in.estimate.time);
    }
    result.beside_copies = priced_.beside_copies;
    return result;
  }

 private:
  using Keys = std::vector<StageKernels::Index>;

  static Keys optional(const std::optional<StageKernels::Index>& key) { return key ? Keys{*key} : Keys{}; }
  // Kernels vary by themselves: variances add up. `launches`: in dispatches, of each.
  void add(EmulatedWork& work, const Keys& keys, double launches = 1) const {
    double variance = std::pow(work.spread * work.duration.value(), 2);
    for (const auto key : keys) {
      const KernelEstimate& estimate = priced_.prices[key].estimate;
      work.duration += priced_.time(key);
      work.issue += priced_.dispatch * launches;
      work.workspace = std::max(work.workspace, estimate.workspace);
      variance += std::pow(estimate.spread * priced_.time(key).value(), 2);
    }
    if (work.duration.value() > 0) work.spread = std::sqrt(variance) / work.duration.value();
  }
  EmulatedWork work(const Keys& keys, double launches = 1) const {
    EmulatedWork result;
    add(result, keys, launches);
    return result;
  }

  const PricedStage& priced_;
  std::size_t blocks_;  // of Stage
};

}  // namespace

Result<EmulatedTimes> emulated_times(const Plan& plan, const std::string& calibration) {
  SIBYL_TRY(const Cluster cluster, load_cluster(calibration));
  EmulatedTimes times;
  times.name = calibration;
  times.step_spread = cluster.composition.spread;
  times.backend = cluster.kernels.device().backend;
  times.sums_apart = cluster.kernels.device().sums_apart;
  times.framework = cluster.kernels.device().framework_base;
  for (const Stage& stage : plan.stages) {
    const PricedStage priced = price(plan, stage, cluster);
    times.stages.push_back(Pricer(priced, stage.blocks.size()).stage());
  }
  return times;
}

}  // namespace sibyl::trainer
