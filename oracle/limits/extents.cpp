// What an axis cuts cannot be cut into more parts than it has: features, experts, heads, tokens, rows of images.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "oracle/axes.h"
#include "oracle/limits/finders.h"

namespace sibyl::limits {
namespace {

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

bool is_weight(const LocalTensor& tensor) { return tensor.kind == TensorKind::parameter && tensor.shape.size() > 1; }

// Weights of experts, and the slots that they read and make.
struct OfExperts {
  std::set<TensorId> weights, slots;
};

OfExperts of_experts(const Graph& graph) {
  OfExperts found;
  for (const Operation& operation : graph.operations()) {
    const bool experts = std::holds_alternative<GroupedLinear>(operation.attributes);
    if (experts) found.weights.insert(operation.inputs[1]);
    if (experts || std::holds_alternative<Dispatch>(operation.attributes)) found.slots.insert(operation.outputs[0]);
  }
  return found;
}

void add_extent(const Found& f, MeshAxis axis, const Least& least, std::string name, std::string unit,
                std::string relief, Limits& limits) {
  if (!least) return;
  const auto extent = static_cast<double>(least->extent);
  limits.push_back(
      {std::move(name), f.graph[least->of].name, extent, std::move(unit), f.degree(axis) / extent, std::move(relief)});
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

// Have images like this one a dimension that is not split yet? Behind samples and channels all can be.
bool have_another_dimension(const Found& f, TensorId image) {
  std::size_t split = 0;
  for (const MeshAxis axis : axes_of_a_program())
    if (is_of_images(axis) && f.degree(axis) > 1) ++split;
  return f.graph[image].shape.size() > 2 + split;
}

// What an axis of images counts.
const char* unit_of(MeshAxis axis) {
  return axis == MeshAxis::depth ? "slices" : axis == MeshAxis::height ? "rows" : "columns";
}

}  // namespace

void features(const Found& f, Limits& limits) {
  struct OfAxis {
    MeshAxis axis;
    const char *name, *unit;
  };
  const OfExperts mixture = of_experts(f.graph);
  const auto counts = [&](const LocalTensor& tensor, std::size_t dim) {  // of experts' weights not the experts
    return is_weight(tensor) && (dim > 0 || !mixture.weights.contains(tensor.origin));
  };
  for (const OfAxis& a : {OfAxis{MeshAxis::filter, "number of filters", "filters"},
                          OfAxis{MeshAxis::channel, "number of channels", "channels"},
                          OfAxis{MeshAxis::tensor, "number of features", "features"}})
    if (f.degree(a.axis) > 1)
      add_extent(f, a.axis, least_extent(f, a.axis, counts), a.name, a.unit, "wider layers; another axis beside it",
                 limits);
}

void experts(const Found& f, Limits& limits) {
  const int beside = f.plan.strategy.whole_experts ? f.degree(MeshAxis::tensor) : 1;
  if (f.degree(MeshAxis::expert) * beside == 1) return;
  const OfExperts mixture = of_experts(f.graph);
  const auto counts = [&](const LocalTensor& tensor, std::size_t dim) {
    return dim == 0 && mixture.weights.contains(tensor.origin);
  };
  const MeshAxis axis = f.degree(MeshAxis::expert) > 1 ? MeshAxis::expert : MeshAxis::tensor;
  add_extent(f, axis, least_extent(f, axis, counts), "number of experts", "experts",
             "more experts; another axis beside it", limits);
  if (f.degree(MeshAxis::expert) > 1 && !limits.empty() && limits.back().name == "number of experts")
    limits.back().share *= beside;
}

void tables(const Found& f, Limits& limits) {
  if (f.degree(MeshAxis::table) == 1) return;
  const auto counts = [](const LocalTensor& tensor, std::size_t) { return tensor.kind == TensorKind::parameter; };
  add_extent(f, MeshAxis::table, least_extent(f, MeshAxis::table, counts), "width of tables", "columns",
             "wider tables; another axis beside it", limits);
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
  const OfExperts mixture = of_experts(f.graph);
  const auto counts = [&](const LocalTensor& tensor, std::size_t dim) {
    return tensor.kind == TensorKind::activation && tensor.shape.size() == 3 && dim == 1 &&
           !mixture.slots.contains(tensor.origin);
  };
  add_extent(f, MeshAxis::tensor, least_extent(f, MeshAxis::tensor, counts), "sequence length", "tokens",
             "longer sequences", limits);
}

void images(const Found& f, Limits& limits) {
  const auto counts = [](const LocalTensor& tensor, std::size_t) { return tensor.kind == TensorKind::activation; };
  for (const MeshAxis axis : axes_of_a_program()) {
    if (!is_of_images(axis) || f.degree(axis) == 1) continue;
    const Least least = least_extent(f, axis, counts);
    const bool another = least && have_another_dimension(f, least->of);
    add_extent(f, axis, least, "spatial extent", unit_of(axis),
               those_that_suit({{"larger images"}, {"another dimension split as well", another}}), limits);
  }
}

}  // namespace sibyl::limits
