#include "oracle/plan/sharding/look_ahead.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl {
namespace {

// Rounding up may add this share of an extent.
constexpr std::int64_t most_padding = 8;  // one in

bool may_be_rounded_up(std::int64_t extent, std::int64_t ways) {
  return surplus_of(extent, ways) * most_padding <= extent;
}

// Whether an operation's features lie along `axis` of its result: an image's channels, else what comes last.
bool has_features_along(const Attributes& op, const Shape& result, std::size_t axis) {
  return axis == (std::holds_alternative<Convolution>(op) ? sharding::channels : result.size() - 1);
}

// Extents in a row along one axis of a tensor, which later operations read one by one.
struct Pieces {
  std::size_t axis = 0;
  Ints sizes;          // none: they do not
  bool moved = false;  // found through slices, reshapes or transpositions, and of use only where each can be cut
};

// From where tensors come apart back to the layers that make them.
class PieceFinder {
 public:
  PieceFinder(const Stage& stage, std::int64_t ways)
      : stage_(stage),
        ways_(ways),
        pieces_(stage.tensors.size()),
        slices_(stage.tensors.size()),
        heads_(stage.tensors.size(), false) {}

  std::vector<Ints> run() {
    for (auto step = stage_.steps.rbegin(); step != stage_.steps.rend(); ++step) {
      const auto* compute = std::get_if<Compute>(&*step);
      if (!compute || compute->inputs.empty() || !compute->inputs[0].valid() || compute->outputs.empty()) continue;
      note_heads(compute->attributes, compute->inputs[0], compute->outputs[0]);
      visit(*compute, compute->inputs[0], compute->outputs[0]);
    }
    std::vector<Ints> result;
    for (Pieces& pieces : pieces_) result.push_back(std::move(pieces.sizes));
    return result;
  }

 private:
  void visit(const Compute& compute, LocalTensorId in, LocalTensorId out) {
    const Attributes& op = compute.attributes;
    join_slices(out);
    Pieces& made = pieces_[out.index()];
    if (const auto* split = std::get_if<Split>(&op)) {
      const auto rank = static_cast<std::int64_t>(stage_[in].shape.size());
      pieces_[in.index()] = {static_cast<std::size_t>(split->axis < 0 ? split->axis + rank : split->axis),
                             split->sizes};
    } else if (const auto* slice = std::get_if<Slice>(&op)) {
      if (slice->axes.size() == 1 && slice->steps[0] == 1)
        slices_[in.index()].insert({slice->axes[0], slice->starts[0], slice->ends[0]});
    } else if (made.sizes.empty()) {
      return;
    } else if (std::holds_alternative<Unary>(op) || std::holds_alternative<Binary>(op) ||
               std::holds_alternative<Dropout>(op)) {
      for (const LocalTensorId operand : compute.inputs)
        if (operand.valid() && stage_[operand].shape == stage_[out].shape) pieces_[operand.index()] = made;
    } else if (const auto* transpose = std::get_if<Transpose>(&op)) {
      pieces_[in.index()] = {static_cast<std::size_t>(transpose->permutation[made.axis]), made.sizes, true};
    } else if (std::holds_alternative<Reshape>(op)) {
      pass_reshape(in, out);
    } else if (!has_features_along(op, stage_[out].shape, made.axis) || (made.moved && !can_be_cut(made.sizes))) {
      made.sizes.clear();
    }
  }

  // All there is of an axis, side by side.
  void join_slices(LocalTensorId id) {
    Pieces found{0, {}, true};
    std::int64_t covered = 0;
    for (const auto& [axis, start, end] : slices_[id.index()]) {
      if (covered == 0) found.axis = static_cast<std::size_t>(axis);
      if (found.axis != static_cast<std::size_t>(axis) || start != covered) return;
      found.sizes.push_back(end - start);
      covered = end;
    }
    if (found.sizes.size() > 1 && covered == stage_[id].shape[found.axis]) pieces_[id.index()] = std::move(found);
  }

  // Features that a reshape takes apart into heads, of which ranks can have as many each; also behind what leaves
  // features where they are.
  void note_heads(const Attributes& op, LocalTensorId in, LocalTensorId out) {
    const Shape &from = stage_[in].shape, &to = stage_[out].shape;
    if (from.empty() || to.empty()) return;
    const std::size_t last = from.size() - 1;
    bool leaves =
        std::holds_alternative<Unary>(op) || std::holds_alternative<Dropout>(op) || std::holds_alternative<Slice>(op);
    if (const auto* transpose = std::get_if<Transpose>(&op))
      leaves = transpose->permutation.back() == static_cast<std::int64_t>(last);
    if (std::holds_alternative<Reshape>(op)) {
      const auto dim = sharding::reshaped_dim(from, to, last);
      if (dim && to[*dim] > 1 && to[*dim] < from[last] && to[*dim] % ways_ == 0) heads_[in.index()] = true;
      leaves = dim == to.size() - 1;
    }
    if (leaves && from.back() == to.back() && heads_[out.index()]) heads_[in.index()] = true;
  }

  // An extent that becomes an axis of pieces and axes behind it: q, k and v, heads, and a head's features. Ranks must
  // get whole heads. Where those come apart later (nn.MultiheadAttention) they must be heads then: a part of each piece
  // would else be gathered again.
  void pass_reshape(LocalTensorId in, LocalTensorId out) {
    const Shape &from = stage_[in].shape, &to = stage_[out].shape;
    const Pieces& made = pieces_[out.index()];
    const auto dim = sharding::reshaped_dim(to, from, made.axis);
    if (!dim || to[made.axis] < 1 || from[*dim] % to[made.axis] != 0) return;
    const std::int64_t behind = from[*dim] / to[made.axis];
    if (behind < 1) return;
    std::size_t heads = made.axis + 1;
    while (behind > 1 && to[heads] == 1) ++heads;
    if (behind > 1) {
      const bool later = to[heads] == behind;
      if (later ? heads + 1 != to.size() || !heads_[out.index()] : to[heads] % ways_ != 0) return;
    }
    Pieces longer{*dim, made.sizes, true};
    for (std::int64_t& size : longer.sizes) size *= behind;
    pieces_[in.index()] = std::move(longer);
  }

  [[nodiscard]] bool can_be_cut(const Ints& sizes) const {
    return std::ranges::all_of(sizes, [&](std::int64_t size) { return size % ways_ == 0; });
  }

  const Stage& stage_;
  std::int64_t ways_;
  std::vector<Pieces> pieces_;                                 // by LocalTensorId
  std::vector<std::set<std::array<std::int64_t, 3>>> slices_;  // of each: axis, start, end
  std::vector<bool> heads_;                                    // by LocalTensorId: what note_heads() finds
};

// By tensor: is it read, and every time as `passes_on(compute, operand, what was found of what comes later)` allows?
std::vector<bool> read_for_one_end(const Stage& stage, auto&& passes_on) {
  std::vector<bool> found(stage.tensors.size(), false), something_else(stage.tensors.size(), false);
  for (auto step = stage.steps.rbegin(); step != stage.steps.rend(); ++step) {
    const std::span<const LocalTensorId> inputs = inputs_of(*step);
    const auto* compute = std::get_if<Compute>(&*step);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].valid()) continue;
      const std::size_t in = inputs[i].index();
      if (!compute || !passes_on(*compute, i, found, something_else)) something_else[in] = true;
      found[in] = !something_else[in];
    }
  }
  return found;
}

std::vector<bool> find_logits(const Stage& stage, int ways) {
  return read_for_one_end(stage, [&](const Compute& compute, std::size_t operand, const std::vector<bool>& logits,
                                     const std::vector<bool>&) {
    const Shape& shape = stage[compute.inputs[operand]].shape;
    if (const auto* loss = std::get_if<CrossEntropy>(&compute.attributes))
      return operand == 0 && loss->class_axis + 1 == static_cast<std::int64_t>(shape.size()) &&
             may_be_rounded_up(shape.back(), ways);
    const auto* unary = std::get_if<Unary>(&compute.attributes);
    return unary && unary->kind == UnaryKind::scale_shift && logits[compute.outputs[0].index()];
  });
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

// What is made of it may be read for nothing else, either.
std::vector<bool> find_routes(const Stage& stage) {
  return read_for_one_end(stage, [](const Compute& compute, std::size_t operand, const std::vector<bool>& routes,
                                    const std::vector<bool>& something_else) {
    if (is_any<Dispatch, Combine>(compute.attributes)) return operand > 0;
    const auto routing = [&](LocalTensorId out) { return out.valid() && routes[out.index()]; };
    const auto ends = [&](LocalTensorId out) { return out.valid() && something_else[out.index()]; };
    return std::ranges::any_of(compute.outputs, routing) && std::ranges::none_of(compute.outputs, ends) &&
           !is_any<Linear, Convolution, GroupedLinear>(compute.attributes);
  });
}

}  // namespace

LookAhead::LookAhead(const Stage& stage, int ways)
    : pieces(PieceFinder(stage, ways).run()),
      logits(find_logits(stage, ways)),
      table(find_tables(stage, ways, logits)),
      routes(find_routes(stage)),
      bags(find_bags(stage)) {}

}  // namespace sibyl
