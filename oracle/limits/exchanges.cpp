// What devices wait for that is on its way between them.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "oracle/cost/plan_for.h"
#include "oracle/limits/finders.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/recompute.h"

namespace sibyl::limits {
namespace {

bool is_halo(Motion motion) { return motion == Motion::halo || motion == Motion::halo_sum; }

// Between operations, of a step: of neighbours' rows, or all else.
struct Between {
  Seconds time;
  std::set<MeshAxis> axes;
};
Between between_operations(const Found& f, bool halos) {
  Between found;
  const auto add = [&](const Exchange& exchange, Seconds time) {
    found.time += time;
    found.axes.insert(exchange.axis);
  };
  f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < priced.exchanges.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
      if (!exchange) continue;
      const PricedExchange& own = priced.exchanges[i];
      if (own.forward && is_halo(exchange->forward.motion) == halos)
        add(*exchange, (own.wait.forward + own.forward->time.time) * (again[i] ? 2.0 : 1.0));
      if (own.backward && is_halo(exchange->backward.motion) == halos)
        add(*exchange, own.wait.backward + own.backward->time.time);
    }
  });
  found.time *= f.micro_batches();
  return found;
}

// Could as many parts of images have less of a rim: half as many in one direction, and twice in another?
bool parts_can_be_squarer(const Found& f) {
  const auto [least, most] = std::minmax({f.degree(MeshAxis::height), f.degree(MeshAxis::width)});
  return std::max(most, f.degree(MeshAxis::depth)) >= 4 * least;
}

// Of what is gathered before products and scattered behind them (cost/tensor_overlap.h).
bool can_go_on_beside_products(const Strategy& s) { return s.tensor > 1 && s.sequence && !s.overlap_tensor; }

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
  const Strategy& s = f.plan.strategy;
  const Between layers = between_operations(f, false), halos = between_operations(f, true);
  const Seconds links = f.waits.links;
  const Norms norms = norms_of(f);
  const bool between_nodes = std::ranges::any_of(layers.axes, [&](MeshAxis axis) { return f.spans_nodes(axis); });
  const bool overlapped = s.exchange == GradientExchange::overlapped;
  // Exchanges within a replica and norms are waited for to the end, links as the simulation says; what else is waited
  // for is gradients.
  const Seconds gradients =
      f.prediction.breakdown.communication_exposed - layers.time - halos.time - links - norms.time;
  add_cost(f, gradients, limit_name::gradient_exchange, axes_text(f, axes_of_gradients(f)),
           those_that_suit({{"more samples a device to hide behind", overlapped},
                            {"an exchange beside backward (no --no-overlap)", !overlapped},
                            {"one after the last micro-batch (no --reduce-each)", s.reduces_each()},
                            {"a faster network"}}),
           limits);
  add_cost(f, norms.time, limit_name::gradient_norms, axes_text(f, norms.axes),
           those_that_suit(
               {{"no --clip", s.clip > 0}, {"an optimizer that takes no norms of tensors", takes_norms(s.optimizer)}}),
           limits);
  add_cost(f, layers.time, limit_name::layer_collectives, "",
           those_that_suit({{"a lower degree"},
                            {"ranks nearer to each other", between_nodes},
                            {"exchanges beside products (--overlap-tensor)", can_go_on_beside_products(s)}}),
           limits);
  add_cost(f, halos.time, limit_name::halo_exchange, "",
           those_that_suit({{"a lower degree"}, {"squarer parts", parts_can_be_squarer(f)}, {"larger images"}}),
           limits);
  add_cost(f, links, limit_name::pipeline_links, "",
           those_that_suit({{"cuts where less crosses"},
                            {"stages nearer to each other", !stages_share_nodes(s, f.cluster)},
                            {"--schedule gpipe", s.schedule != PipelineSchedule::gpipe}}),
           limits);
}

}  // namespace sibyl::limits
