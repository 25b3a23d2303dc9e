#include "trainer/gradient_arrivals.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <utility>

namespace sibyl::trainer {
namespace {

// Mask of the step's operands that it gives a gradient in such a turn. `later`: those of a turn for weights.
std::uint32_t given_in(Turn::Kind kind, const Stage& stage, const Step& step, std::uint32_t later) {
  if (kind == Turn::Kind::backward_weight) return later;
  if (const auto* exchange = std::get_if<Exchange>(&step)) return stage[exchange->input].requires_gradient ? 1U : 0U;
  const std::uint32_t all = std::get<Compute>(step).gradients;
  return kind == Turn::Kind::backward_input ? all & ~later : all;
}

// What is put off runs together, whatever segments it comes from.
std::size_t graph_of(Turn::Kind kind, const Stage& stage, std::size_t step) {
  const auto segment =
      std::ranges::find_if(stage.recomputed, [&](const Segment& one) { return step >= one.begin && step < one.end; });
  const bool together = kind == Turn::Kind::backward_weight || segment == stage.recomputed.end();
  return together ? stage.recomputed.size() : static_cast<std::size_t>(segment - stage.recomputed.begin());
}

}  // namespace

std::vector<int> graphs_that_read(const Stage& stage, Turn::Kind kind) {
  const std::vector<std::uint32_t> later = later_gradients(stage);
  std::set<std::pair<std::size_t, LocalTensorId>> known;
  std::vector<int> graphs(stage.tensors.size(), 0);
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const std::span<const LocalTensorId> operands = inputs_of(stage.steps[i]);
    const std::uint32_t given = given_in(kind, stage, stage.steps[i], later[i]);
    for (std::size_t in = 0; in < operands.size(); ++in)
      if (given >> in & 1U && known.emplace(graph_of(kind, stage, i), operands[in]).second)
        ++graphs[operands[in].index()];
  }
  return graphs;
}

GradientArrivals::GradientArrivals(const Stage& stage) {
  for (const auto kind : {Turn::Kind::backward, Turn::Kind::backward_input, Turn::Kind::backward_weight})
    graphs_[static_cast<std::size_t>(kind)] = graphs_that_read(stage, kind);
  begin(Turn::Kind::backward);
}

}  // namespace sibyl::trainer
