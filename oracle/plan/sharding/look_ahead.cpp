#include "oracle/plan/sharding/look_ahead.h"

#include <algorithm>

namespace sibyl {
namespace {

// Rounding up may add this share of an extent.
constexpr std::int64_t most_padding = 8;  // one in

bool may_be_rounded_up(std::int64_t extent, std::int64_t ways) {
  return surplus_of(extent, ways) * most_padding <= extent;
}

std::vector<Ints> find_pieces(const Stage& stage) {
  std::vector<Ints> pieces(stage.tensors.size());
  for (auto step = stage.steps.rbegin(); step != stage.steps.rend(); ++step) {
    const auto* compute = std::get_if<Compute>(&*step);
    if (!compute || compute->inputs.empty() || !compute->inputs[0].valid()) continue;
    const LocalTensorId in = compute->inputs[0];
    if (const auto* split = std::get_if<Split>(&compute->attributes)) pieces[in.index()] = split->sizes;
    const auto& op = compute->attributes;
    if (!std::holds_alternative<Unary>(op) && !std::holds_alternative<Binary>(op) &&
        !std::holds_alternative<Dropout>(op))
      continue;
    const LocalTensorId out = compute->outputs[0];
    for (const LocalTensorId operand : compute->inputs)
      if (operand.valid() && !pieces[out.index()].empty() && stage[operand].shape == stage[out].shape)
        pieces[operand.index()] = pieces[out.index()];
  }
  return pieces;
}

// Whatever else reads a tensor, or nothing, makes it no logits.
std::vector<bool> find_logits(const Stage& stage, int ways) {
  std::vector<bool> logits(stage.tensors.size(), false), something_else(stage.tensors.size(), false);
  const auto passes_on = [&](const Compute& compute, std::size_t operand) {
    const Shape& shape = stage[compute.inputs[operand]].shape;
    if (const auto* loss = std::get_if<CrossEntropy>(&compute.attributes))
      return operand == 0 && loss->class_axis + 1 == static_cast<std::int64_t>(shape.size()) &&
             may_be_rounded_up(shape.back(), ways);
    const auto* unary = std::get_if<Unary>(&compute.attributes);
    return unary && unary->kind == UnaryKind::scale_shift && logits[compute.outputs[0].index()];
  };
  for (auto step = stage.steps.rbegin(); step != stage.steps.rend(); ++step) {
    const std::span<const LocalTensorId> inputs = inputs_of(*step);
    const auto* compute = std::get_if<Compute>(&*step);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].valid()) continue;
      const std::size_t in = inputs[i].index();
      if (!compute || !passes_on(*compute, i)) something_else[in] = true;
      logits[in] = !something_else[in];
    }
  }
  return logits;
}

std::int64_t tokens_of_a_sample(const Shape& ids) {
  return ids.size() < 2 ? element_count(ids) : element_count(ids) / ids.front();
}

std::vector<bool> find_tables(const Stage& stage, int ways, const std::vector<bool>& logits) {
  std::vector<bool> worth(stage.tensors.size(), false), unfit(stage.tensors.size(), false);
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    const std::span<const LocalTensorId> inputs = inputs_of(step);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].valid() || stage[inputs[i]].kind != TensorKind::parameter) continue;
      const std::size_t in = inputs[i].index();
      const std::int64_t rows = stage[inputs[i]].shape.empty() ? 0 : stage[inputs[i]].shape.front();
      const auto* head = compute ? std::get_if<Linear>(&compute->attributes) : nullptr;
      if (compute && std::holds_alternative<Embedding>(compute->attributes) && i == 0) {
        const LocalTensor& ids = stage[inputs[1]];
        worth[in] = worth[in] || (ids.kind != TensorKind::buffer && rows > tokens_of_a_sample(ids.shape));
        unfit[in] = unfit[in] || !may_be_rounded_up(rows, ways);
      } else if (head && i == 1 && !head->weight_kn) {
        unfit[in] = unfit[in] || (rows % ways != 0 && !logits[compute->outputs[0].index()]);
      } else {
        unfit[in] = true;
      }
    }
  }
  for (std::size_t t = 0; t < worth.size(); ++t) worth[t] = worth[t] && !unfit[t];
  return worth;
}

// Sums neither samples, which come first, nor features, which come last.
bool sums_a_bag(const Attributes& attributes, const Shape& looked_up) {
  const auto* reduce = std::get_if<Reduce>(&attributes);
  if (!reduce || (reduce->kind != ReduceKind::sum && reduce->kind != ReduceKind::mean)) return false;
  const auto rank = static_cast<std::int64_t>(looked_up.size());
  return !reduce->axes.empty() && std::ranges::all_of(reduce->axes, [&](std::int64_t axis) {
    const std::int64_t from_front = axis < 0 ? axis + rank : axis;
    return from_front > 0 && from_front + 1 < rank;
  });
}

std::vector<bool> find_bags(const Stage& stage) {
  std::vector<bool> bags(stage.tensors.size(), false);
  std::vector<int> readers(stage.tensors.size(), 0);
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (compute && std::holds_alternative<Embedding>(compute->attributes)) bags[compute->outputs[0].index()] = true;
    for (const LocalTensorId in : inputs_of(step)) {
      if (!in.valid()) continue;
      ++readers[in.index()];
      if (bags[in.index()]) bags[in.index()] = sums_a_bag(attributes_of(step), stage[in].shape);
    }
  }
  for (std::size_t t = 0; t < bags.size(); ++t) bags[t] = bags[t] && readers[t] == 1;
  return bags;
}

}  // namespace

LookAhead::LookAhead(const Stage& stage, int ways)
    : pieces(find_pieces(stage)),
      logits(find_logits(stage, ways)),
      table(find_tables(stage, ways, logits)),
      bags(find_bags(stage)) {}

}  // namespace sibyl
