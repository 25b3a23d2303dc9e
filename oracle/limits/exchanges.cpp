// What devices wait for that is on its way between them.
#include <optional>
#include <vector>

#include "oracle/limits/finders.h"
#include "oracle/plan/recompute.h"

namespace sibyl::limits {
namespace {

bool is_halo(Motion motion) { return motion == Motion::halo || motion == Motion::halo_sum; }

// Between operations, of a step: of neighbours' rows, or all else.
Seconds between_operations(const Found& f, bool halos) {
  Seconds time;
  f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < priced.exchanges.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
      if (!exchange) continue;
      const PricedExchange& own = priced.exchanges[i];
      if (own.forward && is_halo(exchange->forward.motion) == halos)
        time += (own.wait.forward + own.forward->time.time) * (again[i] ? 2.0 : 1.0);
      if (own.backward && is_halo(exchange->backward.motion) == halos)
        time += own.wait.backward + own.backward->time.time;
    }
  });
  return time * f.micro_batches();
}

// What is summed after gradients are: norms to clip them by, and to scale each tensor's update by.
struct Norms {
  Seconds time;
  std::vector<MeshAxis> axes;
};
Norms norms_of(const Found& f) {
  Norms norms;
  const auto add = [&](const std::optional<CollectiveEstimate>& sum, const std::vector<MeshAxis>& axes) {
    if (!sum) return;
    norms.time += sum->time.time;
    norms.axes.insert(norms.axes.end(), axes.begin(), axes.end());
  };
  f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
    if (stage.clip) add(priced.clip_norm, stage.clip->axes);
    add(priced.tensor_norms, stage.norm_axes);
  });
  return norms;
}

// Over which any of the gradients are summed, or parts of what is trained gathered.
std::vector<MeshAxis> axes_of_gradients(const Found& f) {
  std::vector<MeshAxis> axes;
  f.each_slowest([&](const Stage& stage, const PricedStage&) {
    for (const GradientSync& sync : stage.gradients) axes.insert(axes.end(), sync.axes.begin(), sync.axes.end());
  });
  return axes;
}

}  // namespace

void exchanges(const Found& f, Limits& limits) {
  const Seconds layers = between_operations(f, false), halos = between_operations(f, true), links = f.waits.links;
  const Norms norms = norms_of(f);
  // Exchanges within a replica and norms are waited for to the end, links as the simulation says; what else is waited
  // for is gradients.
  const Seconds gradients = f.prediction.breakdown.communication_exposed - layers - halos - links - norms.time;
  add_cost(f, gradients, "gradient exchange", axes_text(f, axes_of_gradients(f)),
           "more samples a device to hide behind; a faster network", limits);
  add_cost(f, norms.time, "norms of gradients", axes_text(f, norms.axes),
           "no --clip; an optimizer that takes no norms of tensors", limits);
  add_cost(f, layers, "layer-wise collectives", "", "a lower degree; ranks nearer to each other", limits);
  add_cost(f, halos, "halo exchange", "", "a lower degree; squarer parts; larger images", limits);
  add_cost(f, links, "pipeline links", "", "cuts where less crosses; stages nearer to each other; --schedule gpipe",
           limits);
}

}  // namespace sibyl::limits
