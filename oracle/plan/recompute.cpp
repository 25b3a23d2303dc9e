#include "oracle/plan/recompute.h"

#include <algorithm>

#include "oracle/plan/attention_cores.h"
#include "oracle/plan/blocks.h"

namespace sibyl {
namespace {

bool is_ring(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  const auto* attention = compute ? std::get_if<Attention>(&compute->attributes) : nullptr;
  return attention != nullptr && attention->ring > 1;
}

// What is run again is a row of steps: between the products nothing else may stand behind the softmax.
std::vector<Segment> core_segments(const Stage& stage) {
  std::vector<Segment> result;
  for (const AttentionCore& core : attention_cores(stage)) {
    if (is_ring(stage.steps[core.scores])) continue;  // keeps no scores, and its keys would have to come round again
    const auto softmax = [](const Step& step) {
      const auto* compute = std::get_if<Compute>(&step);
      return compute && std::holds_alternative<Softmax>(compute->attributes);
    };
    const auto begin = stage.steps.begin() + static_cast<std::ptrdiff_t>(core.scores);
    const auto end = stage.steps.begin() + static_cast<std::ptrdiff_t>(core.mix);
    const bool in_a_row = std::all_of(std::find_if(begin, end, softmax), end, is_within_core);
    const bool apart = result.empty() || core.scores >= result.back().end;
    if (in_a_row && apart) result.push_back({core.scores, core.mix + 1});
  }
  return result;
}

// Of each `every` blocks in a row the last.
std::vector<Segment> some_blocks(const std::vector<Segment>& blocks, int every) {
  std::vector<Segment> result;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if ((i + 1) % static_cast<std::size_t>(every) == 0) result.push_back(blocks[i]);
  return result;
}

// `together` blocks as one, where nothing lies between them; what is left over at a row's end is fewer.
std::vector<Segment> joined(const std::vector<Segment>& blocks, int together) {
  std::vector<Segment> result;
  int in_last = together;
  for (const Segment& block : blocks) {
    const bool joins = in_last < together && result.back().end == block.begin;
    in_last = joins ? in_last + 1 : 1;
    if (joins)
      result.back().end = block.end;
    else
      result.push_back(block);
  }
  return result;
}

bool is_of(const Step& step, const std::vector<std::string>& kinds) {
  const auto* compute = std::get_if<Compute>(&step);
  if (!compute) return false;
  const auto named = [&](std::string_view name) { return std::find(kinds.begin(), kinds.end(), name) != kinds.end(); };
  const auto* unary = std::get_if<Unary>(&compute->attributes);
  return named(name_of(compute->attributes)) ||
         (unary && named(enum_names(unary->kind)[static_cast<std::size_t>(unary->kind)]));
}

// Of sharded parameters one unit at a time is there: none of the rows reaches from one into the next.
std::vector<Segment> of_kinds(const Stage& stage, const std::vector<std::string>& kinds) {
  const auto begins_a_unit = [&](std::size_t step) {
    return std::any_of(stage.units.begin(), stage.units.end(),
                       [&](const ParameterUnit& unit) { return unit.begin == step; });
  };
  std::vector<Segment> result;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    if (!is_of(stage.steps[i], kinds) || is_ring(stage.steps[i])) continue;
    if (!result.empty() && result.back().end == i && !begins_a_unit(i))
      ++result.back().end;
    else
      result.push_back({i, i + 1});
  }
  return result;
}

bool has_backward(const Stage& stage, const Segment& segment) {
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    bool gradient = false;
    each_gradient(stage, stage.steps[i], [&](LocalTensorId) { gradient = true; });
    if (gradient) return true;
  }
  return false;
}

}  // namespace

std::vector<Segment> blocks_again(const std::vector<Segment>& blocks, const BlocksAgain& which) {
  return joined(some_blocks(blocks, which.every), which.together);
}

std::vector<Segment> recomputed_segments(const Stage& stage, const Strategy& strategy,
                                         const std::vector<std::size_t>& like) {
  std::vector<Segment> result;
  switch (strategy.recompute) {
    case Recompute::none: break;
    case Recompute::selective: result = core_segments(stage); break;
    case Recompute::full:
      result = blocks_again(find_blocks(stage, like), {strategy.recompute_every, strategy.recompute_together});
      break;
    case Recompute::operations: result = of_kinds(stage, strategy.recompute_kinds); break;
  }
  std::erase_if(result, [&](const Segment& segment) { return !has_backward(stage, segment); });
  return result;
}

std::vector<bool> steps_inside(const std::vector<Segment>& segments, std::size_t steps) {
  std::vector<bool> result(steps, false);
  for (const Segment& segment : segments)
    std::fill(result.begin() + static_cast<std::ptrdiff_t>(segment.begin),
              result.begin() + static_cast<std::ptrdiff_t>(segment.end), true);
  return result;
}

std::vector<bool> recomputed_steps(const Stage& stage) { return steps_inside(stage.recomputed, stage.steps.size()); }

std::vector<LocalTensorId> inputs_of(const Stage& stage, const Segment& segment) {
  std::vector<LocalTensorId> result;
  std::vector<bool> known(stage.tensors.size(), false);
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    for (const LocalTensorId in : inputs_of(stage.steps[i])) {
      if (!in.valid() || known[in.index()]) continue;
      known[in.index()] = true;
      if (stage[in].kind == TensorKind::activation || stage[in].kind == TensorKind::input) result.push_back(in);
    }
    for (const LocalTensorId out : outputs_of(stage.steps[i]))
      if (out.valid()) known[out.index()] = true;
  }
  return result;
}

std::vector<LocalTensorId> outputs_of(const Stage& stage, const Segment& segment) {
  std::vector<int> uses(stage.tensors.size(), 0);
  for (const Step& step : stage.steps)
    for (const LocalTensorId in : inputs_of(step))
      if (in.valid()) ++uses[in.index()];
  for (const Link& link : stage.sends) ++uses[link.tensor.index()];
  for (std::size_t i = segment.begin; i < segment.end; ++i)
    for (const LocalTensorId in : inputs_of(stage.steps[i]))
      if (in.valid()) --uses[in.index()];
  std::vector<LocalTensorId> result;
  for (std::size_t i = segment.begin; i < segment.end; ++i)
    for (const LocalTensorId out : outputs_of(stage.steps[i]))
      if (out.valid() && uses[out.index()] > 0) result.push_back(out);
  return result;
}

}  // namespace sibyl
