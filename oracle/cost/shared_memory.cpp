#include "oracle/cost/shared_memory.h"

#include <algorithm>
#include <cmath>

#include "oracle/plan/recompute.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

// How much longer a kernel takes with all ranks at it.
double excess(const PricedKernel& kernel) { return std::max(0.0, 1 / kernel.estimate.alone - 1); }

// Calls visit(kernel, times) for what a rank runs of a stage for its micro-batches.
void each_of_micro_batches(const Stage& stage, const StageKernels& kernels, auto&& visit) {
  const int micro_batches = std::max(1, stage.micro_batches());
  const std::vector<bool> again = recomputed_steps(stage);
  for (std::size_t i = 0; i < kernels.steps.size(); ++i) {
    const StageKernels::OfStep& step = kernels.steps[i];
    if (step.forward) visit(*step.forward, micro_batches * (again[i] ? 2 : 1));
    for (const auto& backward : {step.backward, step.backward_weight})
      if (backward) visit(*backward, micro_batches);
    for (const auto key : step.sums) visit(key, micro_batches);
    for (const auto key : step.parameter_casts) visit(key, micro_batches);
    for (const auto key : step.parameter_sums) visit(key, micro_batches - 1);
    for (const auto key : step.bucket_copies) visit(key, stage.reduces_each ? micro_batches - 1 : 0);
  }
  for (const auto key : kernels.part_sums) visit(key, micro_batches - 1);
  for (std::size_t u = 0; u < kernels.unit_copies.size(); ++u)
    visit(kernels.unit_copies[u], micro_batches * (stays_gathered(stage, stage.units[u]) ? 1 : 2));
}

// The same of what it runs once a step.
void each_of_step(const StageKernels& kernels, auto&& visit) {
  for (const StageKernels::OfStep& step : kernels.steps)
    for (const auto* once : {&step.bucket_copies, &step.compressions})
      for (const auto key : *once) visit(key, 1);
  for (const auto* once : {&kernels.unscale, &kernels.norms, &kernels.clips, &kernels.masters, &kernels.updates,
                           &kernels.copies_back, &kernels.decompressions})
    for (const auto key : *once) visit(key, 1);
}

// Of a rank's step.
struct Use {
  Seconds micro_batches, once;  // kernels as calibrated
  Seconds pressing;             // by themselves, each weighted with the root of its excess
};

std::vector<Use> uses(const Plan& plan, const std::vector<PricedStage>& priced, std::size_t coordinates) {
  std::vector<Use> uses(coordinates);
  for (std::size_t s = 0; s < priced.size(); ++s) {
    Use& use = uses[s % coordinates];
    const auto add_to = [&](Seconds& busy) {
      return [&](StageKernels::Index key, int times) {
        const KernelEstimate& kernel = priced[s].prices[key].estimate;
        busy += kernel.time.time * times;
        use.pressing += kernel.time.time * (times * kernel.alone * std::sqrt(excess(priced[s].prices[key])));
      };
    };
    each_of_micro_batches(plan.stages[s], priced[s].kernels, add_to(use.micro_batches));
    each_of_step(priced[s].kernels, add_to(use.once));
  }
  return uses;
}

// What the fullest coordinate computes, and filling and draining: of one stage each as many micro-batches as there are
// other coordinates.
Seconds step_of(const std::vector<Use>& uses, int micro_batches, std::size_t stages) {
  Seconds step;
  for (const Use& use : uses) {
    const Seconds filling = use.micro_batches * static_cast<double>((uses.size() - 1) * uses.size()) /
                            (1.0 * micro_batches * static_cast<double>(stages));
    step = std::max(step, use.micro_batches + filling + use.once);
  }
  return step;
}

// How many ranks in a row share a memory.
int sharing(int ranks, const Cluster& cluster) { return cluster.one_machine ? ranks : cluster.devices_per_node; }

// Of the other ranks that share the memory of a coordinate's first, the share at each coordinate.
std::vector<double> beside(const Mesh& mesh, std::size_t coordinates, int coordinate, int sharing) {
  const int rank = coordinate * mesh.stride(MeshAxis::pipeline), first = rank / sharing * sharing;
  const int end = std::min(mesh.size(), first + sharing);
  std::vector<double> shares(coordinates, 0.0);
  for (int other = first; other < end; ++other)
    if (other != rank)
      shares[static_cast<std::size_t>(mesh.coordinate(other, MeshAxis::pipeline))] += 1.0 / (end - first - 1);
  return shares;
}

// `alike`: the share of the others that run the same; `different`: of those at other stages.
void slow(PricedKernel& kernel, double alike, double different, double pressure) {
  Estimate& time = kernel.estimate.time;
  const double e = excess(kernel), alone = kernel.estimate.alone;
  if (e == 0) return;
  const double share = std::min(1.0, alone * (1 + alike * e + std::sqrt(e) * pressure));
  time.time *= share;
  // Whom it meets is not known: anything between, evenly spread.
  time.relative_error = std::hypot(time.relative_error, different * (1 - alone) / std::sqrt(12.0) / share);
}

}  // namespace

bool stages_share_memory(const Strategy& strategy, const Cluster& cluster) {
  if (strategy.pipeline == 1 || !cluster.kernels.knows_alone()) return false;
  const Mesh mesh = mesh_of(strategy);
  const int together = sharing(mesh.size(), cluster);
  return together > 1 && mesh.stride(MeshAxis::pipeline) % together != 0;
}

void share_memory(const Plan& plan, const Cluster& cluster, std::vector<PricedStage>& priced) {
  if (!stages_share_memory(plan.strategy, cluster)) return;
  const auto coordinates = static_cast<std::size_t>(plan.mesh.size(MeshAxis::pipeline));
  const std::vector<Use> used = uses(plan, priced, coordinates);
  const Seconds step = step_of(used, std::max(1, plan.stages.front().micro_batches()), priced.size());
  for (std::size_t s = 0; s < priced.size(); ++s) {
    const auto c = s % coordinates;
    const std::vector<double> shares =
        beside(plan.mesh, coordinates, static_cast<int>(c), sharing(plan.mesh.size(), cluster));
    double pressure = 0, different = 0;
    for (std::size_t o = 0; o < coordinates; ++o) {
      if (o == c) continue;
      pressure += shares[o] * (used[o].pressing / step);
      different += shares[o];
    }
    for (PricedKernel& kernel : priced[s].prices) slow(kernel, shares[c], different, pressure);
  }
}

}  // namespace sibyl
