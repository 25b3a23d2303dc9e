#include "oracle/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "oracle/plan/recompute.h"

namespace sibyl {
namespace {

// What a limit is found from.
struct Found : PricedPlan {
  [[nodiscard]] int degree(MeshAxis axis) const { return plan.strategy.degree(axis); }
  [[nodiscard]] double micro_batches() const { return static_cast<double>(plan.strategy.accumulation); }

  // Calls visit(stage, its prices) for each stage of the coordinate that ends last.
  void each_slowest(const std::function<void(const Stage&, const PricedStage&)>& visit) const {
    for (std::size_t s = slowest; s < plan.stages.size(); s += plan.schedule.size()) visit(plan.stages[s], priced[s]);
  }
};
using Limits = std::vector<Limit>;

constexpr MeshAxis image_axes[] = {MeshAxis::depth, MeshAxis::height, MeshAxis::width};
constexpr MeshAxis replica_axes[] = {MeshAxis::tensor, MeshAxis::filter, MeshAxis::channel, MeshAxis::depth,
                                     MeshAxis::height, MeshAxis::width,  MeshAxis::context};

// The least extent that an axis cuts, and whose it is.
struct Extent {
  std::int64_t extent = 0;
  TensorId of;
};
using Least = std::optional<Extent>;

void take_less(Least& least, std::int64_t extent, TensorId of) {
  if (!least || extent < least->extent) least = {extent, of};
}

// Over tensors that `counts`, the least extent of the dimension along which the axis cuts them. Of a dimension that is
// several things in a row, each is cut.
Least least_extent(const Found& f, MeshAxis axis, const std::function<bool(const LocalTensor&, std::size_t)>& counts) {
  Least least;
  for (const Stage& stage : f.plan.stages)
    for (const LocalTensor& tensor : stage.tensors)
      for (const PartOf& part : tensor.cuts) {
        if (part.axis != axis || !part.layout.is_split() || !counts(tensor, part.layout.dim)) continue;
        const Ints& pieces = part.layout.pieces;
        const std::int64_t whole = f.graph[tensor.origin].shape[part.layout.dim];
        take_less(least, pieces.empty() ? whole : *std::min_element(pieces.begin(), pieces.end()), tensor.origin);
      }
  return least;
}

bool is_weight(const LocalTensor& tensor, std::size_t) {
  return tensor.kind == TensorKind::parameter && tensor.shape.size() > 1;
}

void add_extent(const Found& f, MeshAxis axis, const Least& least, std::string name, std::string unit,
                std::string relief, Limits& limits) {
  if (!least) return;
  const auto extent = static_cast<double>(least->extent);
  limits.push_back(
      {std::move(name), f.graph[least->of].name, extent, std::move(unit), f.degree(axis) / extent, std::move(relief)});
}

void batch(const Found& f, Limits& limits) {
  const Strategy& s = f.plan.strategy;
  const int ranks = s.data * s.expert;
  if (ranks == 1) return;
  const auto samples = static_cast<double>(s.global_batch);
  limits.push_back({"batch", s.expert == 1 ? "data" : "data, expert", samples, "samples",
                    static_cast<double>(ranks) * s.accumulation / samples, "a larger batch; replicas of more devices"});
}

// No stage without something to train.
void layers(const Found& f, Limits& limits) {
  if (f.degree(MeshAxis::pipeline) == 1) return;
  std::set<OperationId> trained;
  for (const Stage& stage : f.plan.stages)
    for (const Step& step : stage.steps)
      if (const auto* compute = std::get_if<Compute>(&step); compute && compute->gradients != 0)
        trained.insert(compute->operation);
  const auto count = static_cast<double>(trained.size());
  limits.push_back({"number of layers", "pipeline", count, "operations", f.plan.strategy.stages() / count,
                    "a deeper model; another axis beside it"});
}

// Each has a sample at least.
void micro_batches(const Found& f, Limits& limits) {
  const Strategy& s = f.plan.strategy;
  if (s.pipeline == 1) return;
  const auto samples = static_cast<double>(s.global_batch) / s.data / s.expert;
  limits.push_back({"number of micro-batches", "pipeline", samples, "samples", f.micro_batches() / samples,
                    "a larger batch; fewer replicas"});
}

void weights(const Found& f, Limits& limits) {
  struct OfAxis {
    MeshAxis axis;
    const char *name, *unit;
  };
  for (const OfAxis& a : {OfAxis{MeshAxis::filter, "number of filters", "filters"},
                          OfAxis{MeshAxis::channel, "number of channels", "channels"},
                          OfAxis{MeshAxis::tensor, "number of features", "features"}})
    if (f.degree(a.axis) > 1)
      add_extent(f, a.axis, least_extent(f, a.axis, is_weight), a.name, a.unit, "wider layers; another axis beside it",
                 limits);
}

void experts(const Found& f, Limits& limits) {
  if (f.degree(MeshAxis::expert) == 1) return;
  const auto counts = [](const LocalTensor& tensor, std::size_t) { return tensor.kind == TensorKind::parameter; };
  add_extent(f, MeshAxis::expert, least_extent(f, MeshAxis::expert, counts), "number of experts", "experts",
             "more experts; another axis beside it", limits);
}

// Attention is shared by whole heads; grouped queries have fewer of keys and values. Of two axes each has what the
// other leaves.
void heads_of_axis(const Found& f, MeshAxis axis, Limits& limits) {
  constexpr std::size_t heads_dim = 1, keys = 1;
  if (f.degree(axis) == 1) return;
  Least least;
  for (const Stage& stage : f.plan.stages)
    for (const Step& step : stage.steps) {
      const auto* compute = std::get_if<Compute>(&step);
      if (!compute || !std::holds_alternative<Attention>(compute->attributes)) continue;
      const LocalTensor& k = stage[compute->inputs[keys]];
      const bool cut = std::any_of(k.cuts.begin(), k.cuts.end(), [&](const PartOf& part) {
        return part.axis == axis && part.layout.is_split(heads_dim);
      });
      if (cut) take_less(least, k.shape[heads_dim] * f.degree(axis), f.graph[compute->operation].outputs[0]);
    }
  add_extent(f, axis, least, "number of heads", "heads", "more heads; another axis beside it", limits);
}

void heads(const Found& f, Limits& limits) {
  for (const MeshAxis axis : {MeshAxis::tensor, MeshAxis::context}) heads_of_axis(f, axis, limits);
}

void tokens(const Found& f, Limits& limits) {
  if (f.degree(MeshAxis::context) == 1) return;
  const auto counts = [](const LocalTensor& tensor, std::size_t) { return tensor.kind == TensorKind::input; };
  add_extent(f, MeshAxis::context, least_extent(f, MeshAxis::context, counts), "sequence length", "tokens",
             "longer sequences", limits);
}

void sequence(const Found& f, Limits& limits) {
  if (!f.plan.strategy.sequence || f.degree(MeshAxis::tensor) == 1) return;
  const auto counts = [](const LocalTensor& tensor, std::size_t dim) {
    return tensor.kind == TensorKind::activation && tensor.shape.size() == 3 && dim == 1;
  };
  add_extent(f, MeshAxis::tensor, least_extent(f, MeshAxis::tensor, counts), "sequence length", "tokens",
             "longer sequences", limits);
}

void images(const Found& f, Limits& limits) {
  const auto counts = [](const LocalTensor& tensor, std::size_t) { return tensor.kind == TensorKind::activation; };
  for (const MeshAxis axis : image_axes) {
    if (f.degree(axis) == 1) continue;
    const char* unit = axis == MeshAxis::depth ? "slices" : axis == MeshAxis::height ? "rows" : "columns";
    add_extent(f, axis, least_extent(f, axis, counts), "spatial extent", unit,
               "larger images; another dimension split as well", limits);
  }
}

void add_cost(const Found& f, Seconds time, std::string name, std::string where, std::string relief, Limits& limits) {
  constexpr double rounding = 1e-9;
  const Seconds step = f.prediction.step_time;
  if (time <= rounding * step) return;
  limits.push_back({std::move(name), std::move(where), time.value(), "s", time / step, std::move(relief)});
}

bool is_cut(const Stage& stage, LocalTensorId id, MeshAxis axis) {
  if (!id.valid()) return false;
  const auto& cuts = stage[id].cuts;
  return std::any_of(cuts.begin(), cuts.end(), [&](const PartOf& part) { return part.axis == axis; });
}

// Operations none of whose operands and results an axis cuts run alike on all its ranks.
bool is_repeated(const Stage& stage, const Compute& compute, MeshAxis axis) {
  const auto cut = [&](LocalTensorId id) { return is_cut(stage, id, axis); };
  return std::none_of(compute.inputs.begin(), compute.inputs.end(), cut) &&
         std::none_of(compute.outputs.begin(), compute.outputs.end(), cut);
}

Seconds kernel_times(const PricedStage& priced, std::size_t step) {
  const StageKernels::OfStep& kernels = priced.kernels.steps[step];
  Seconds time;
  for (const auto& kernel : {kernels.forward, kernels.backward, kernels.backward_weight})
    if (kernel) time += priced.time(*kernel);
  return time;
}

void repeated_work(const Found& f, Limits& limits) {
  for (const MeshAxis axis : replica_axes) {
    if (f.degree(axis) == 1) continue;
    Seconds all, longest;
    std::string name;
    f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
      for (std::size_t i = 0; i < stage.steps.size(); ++i) {
        const auto* compute = std::get_if<Compute>(&stage.steps[i]);
        if (!compute || !is_repeated(stage, *compute, axis)) continue;
        const Seconds time = kernel_times(priced, i);
        all += time;
        if (time <= longest) continue;
        longest = time;
        name = f.graph[compute->operation].name;
      }
    });
    const bool norms = axis == MeshAxis::tensor && !f.plan.strategy.sequence;
    add_cost(f, all * f.micro_batches(), "redundant work", fmt::format("{}, longest {}", to_string(axis), name),
             fmt::format("extents that {} divides; {}a lower degree", f.degree(axis), norms ? "sequence=; " : ""),
             limits);
  }
}

// Replicas, and the parts of a split image or sequence, all keep the weights they share, with gradients and optimizer
// state; but for what ZeRO shards over replicas.
void repeated_state(const Found& f, Limits& limits) {
  const MemoryBreakdown& m = f.prediction.memory;
  const int zero = f.plan.strategy.zero;
  const int parts = std::accumulate(std::begin(image_axes), std::end(image_axes), 1,
                                    [&](int product, MeshAxis axis) { return product * f.degree(axis); });
  const bool again = parts > 1 || f.plan.strategy.zero_ranks > 0;
  Bytes state;
  if (zero < 3 || again) state += m.weights;
  if (zero < 2 || again) state += m.gradients;
  if (zero < 1 || again) state += m.optimizer;
  const int copies = parts * f.degree(MeshAxis::context) * f.degree(MeshAxis::data);
  if (copies == 1 || state.value() <= 0 || m.total.value() <= 0) return;
  limits.push_back({"redundant memory", fmt::format("{} copies of weights and state", copies), state.value(), "bytes",
                    state / m.total, "split weights (tensor, filter); sharded state (--zero)"});
}

void recomputation(const Found& f, Limits& limits) {
  Seconds time;
  f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < stage.steps.size(); ++i)
      if (const auto& forward = priced.kernels.steps[i].forward; forward && again[i]) time += priced.time(*forward);
  });
  add_cost(f, time * f.micro_batches(), "recomputation", "", "smaller micro-batches, whose results can be kept",
           limits);
}

void idling(const Found& f, Limits& limits) {
  const auto& stages = f.prediction.stages;
  const auto longest = std::max_element(stages.begin(), stages.end(), [](const StageCost& a, const StageCost& b) {
    return a.forward + a.backward < b.forward + b.backward;
  });
  if (longest != stages.end())
    add_cost(f, f.waits.imbalance, "pipeline imbalance", fmt::format("longest stage, from {}", longest->first),
             "other cuts (--stages); fewer stages", limits);
  add_cost(f, f.waits.bubble, "pipeline bubble",
           fmt::format("{} micro-batches over {} stages", f.plan.strategy.accumulation, stages.size()),
           "more micro-batches; fewer stages; --schedule interleaved or zero-bubble", limits);
}

Seconds exchange_time(const Found& f, bool halos) {
  const auto is_halo = [](Motion motion) { return motion == Motion::halo || motion == Motion::halo_sum; };
  Seconds time;
  f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < priced.exchanges.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
      if (!exchange) continue;
      const auto& [forward, backward, wait] = priced.exchanges[i];
      if (forward && is_halo(exchange->forward.motion) == halos)
        time += (wait.forward + forward->time.time) * (again[i] ? 2.0 : 1.0);
      if (backward && is_halo(exchange->backward.motion) == halos) time += wait.backward + backward->time.time;
    }
  });
  return time * f.micro_batches();
}

void communication(const Found& f, Limits& limits) {
  const Seconds layers = exchange_time(f, false), halos = exchange_time(f, true), links = f.waits.links;
  // Exchanges within a replica are waited for to the end, links as the simulation says; what else is waited for is
  // gradients.
  const Seconds gradients = f.prediction.breakdown.communication_exposed - layers - halos - links;
  const bool tokens = f.degree(MeshAxis::context) > 1, replicas = f.degree(MeshAxis::data) > 1;
  add_cost(f, gradients, "gradient exchange",
           !tokens    ? "data"
           : replicas ? "data, context"
                      : "context",
           "more samples a device, to hide behind; a faster network", limits);
  add_cost(f, layers, "layer-wise collectives", "", "a lower degree; ranks nearer to each other", limits);
  add_cost(f, halos, "halo exchange", "", "a lower degree; squarer parts; larger images", limits);
  add_cost(f, links, "pipeline links", "", "cuts where less crosses; stages nearer to each other; --schedule gpipe",
           limits);
}

void compression(const Found& f, Limits& limits) {
  Seconds time;
  f.each_slowest([&](const Stage&, const PricedStage& priced) {
    for (const StageKernels::OfStep& step : priced.kernels.steps)
      for (const auto key : step.compressions) time += priced.time(key);
    for (const auto key : priced.kernels.decompressions) time += priced.time(key);
  });
  add_cost(f, time, "gradient compression", compression_text(f.plan.strategy.compression),
           "a form that takes less work (fp16, bf16); a faster network, which needs none", limits);
}

void update(const Found& f, Limits& limits) {
  add_cost(f, f.prediction.breakdown.optimizer, "weight update", "",
           "split weights; larger batches; a lighter optimizer", limits);
}

void memory(const Found& f, Limits& limits) {
  const Prediction& p = f.prediction;
  if (p.memory_capacity.value() <= 0) return;
  const bool state = p.memory.weights + p.memory.gradients + p.memory.optimizer > p.memory.activations;
  limits.push_back({"memory", "", p.memory_capacity.value(), "bytes", p.memory.total / p.memory_capacity,
                    state ? "split weights; a lighter optimizer" : "smaller micro-batches; replicas of more devices"});
}

}  // namespace

std::vector<Limit> find_limits(const PricedPlan& plan) {
  const Found found{plan};
  Limits limits;
  for (const auto find : {batch, layers, micro_batches, weights, experts, heads, sequence, tokens, images, memory,
                          repeated_work, repeated_state, recomputation, idling, communication, compression, update})
    find(found, limits);
  return limits;
}

}  // namespace sibyl
