#include "oracle/plan/recompute.h"

#include <algorithm>

#include "oracle/plan/blocks.h"

namespace sibyl {
namespace {

template <class Operation>
bool is(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  return compute && std::holds_alternative<Operation>(compute->attributes);
}

// The step that makes a tensor, or none.
std::size_t maker(const Stage& stage, LocalTensorId id, std::size_t before) {
  for (std::size_t i = before; i-- > 0;) {
    const std::vector<LocalTensorId> made = outputs_of(stage.steps[i]);
    if (std::find(made.begin(), made.end(), id) != made.end()) return i;
  }
  return stage.steps.size();
}

// What lies between the products of queries with keys and of probabilities with values: scale, mask, dropout.
bool within_core(const Step& step) {
  return is<Unary>(step) || is<Binary>(step) || is<Where>(step) || is<Dropout>(step) || is<Cast>(step) ||
         is<Reshape>(step) || is<Softmax>(step) || is<Expand>(step);
}

// From the product whose result, along first operands, the softmax reads, to the product that reads its result.
Segment core_around(const Stage& stage, std::size_t softmax) {
  constexpr std::size_t farthest = 12;
  std::size_t begin = softmax, end = softmax + 1;
  while (begin < stage.steps.size() && within_core(stage.steps[begin]) && softmax - begin < farthest) {
    const std::vector<LocalTensorId> reads = inputs_of(stage.steps[begin]);
    begin = reads.empty() || !reads.front().valid() ? stage.steps.size() : maker(stage, reads.front(), begin);
  }
  while (end < stage.steps.size() && within_core(stage.steps[end]) && end - softmax < farthest) ++end;
  if (begin >= softmax || end >= stage.steps.size()) return {};
  return is<MatMul>(stage.steps[begin]) && is<MatMul>(stage.steps[end]) ? Segment{begin, end + 1} : Segment{};
}

std::vector<Segment> attention_cores(const Stage& stage) {
  std::vector<Segment> result;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    Segment core;
    if (is<Attention>(stage.steps[i])) core = {i, i + 1};
    if (is<Softmax>(stage.steps[i])) core = core_around(stage, i);
    const bool apart = result.empty() || core.begin >= result.back().end;
    if (core.end > core.begin && apart) result.push_back(core);
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

std::vector<Segment> recomputed_segments(const Stage& stage, Recompute recompute) {
  std::vector<Segment> result;
  if (recompute == Recompute::selective) result = attention_cores(stage);
  if (recompute == Recompute::full) result = find_blocks(stage);
  std::erase_if(result, [&](const Segment& segment) { return !has_backward(stage, segment); });
  return result;
}

std::vector<bool> recomputed_steps(const Stage& stage) {
  std::vector<bool> result(stage.steps.size(), false);
  for (const Segment& segment : stage.recomputed)
    std::fill(result.begin() + static_cast<std::ptrdiff_t>(segment.begin),
              result.begin() + static_cast<std::ptrdiff_t>(segment.end), true);
  return result;
}

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
