// A mixture of experts in ATen calls. Frameworks have kernels of their own for the way to the experts and back; what
// these do is done here by sorting, gathering and adding rows, each of the three an autograd function, so that backward
// keeps numbers and no copies.
#include <torch/csrc/autograd/custom_function.h>

#include "aten/operations/families.h"

namespace sibyl::aten {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

at::TensorOptions numbers_like(const at::Tensor& x) { return at::TensorOptions(x.device()).dtype(at::kLong); }

// experts[T, k] -> places[T, k]. Choices of one expert in one group are brought together by a stable sort, first
// choices of all tokens before second ones; each one's place in the row is its slot.
at::Tensor places_of(const at::Tensor& experts, std::int64_t all_experts, std::int64_t tokens, std::int64_t capacity) {
  const std::int64_t k = experts.size(1), groups = experts.size(0) / tokens, choices = experts.numel();
  const at::TensorOptions numbers = numbers_like(experts);
  const at::Tensor by_rank = experts.reshape({groups, tokens, k}).transpose(1, 2).reshape({groups, k * tokens});
  const at::Tensor row = (by_rank + at::arange(groups, numbers).unsqueeze(1) * all_experts).reshape({choices});
  const auto [sorted, order] = row.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor begins = at::searchsorted(sorted, at::arange(groups * all_experts, numbers));
  const at::Tensor slot = at::arange(choices, numbers).sub_(begins.index_select(0, sorted));
  const at::Tensor place = sorted.remainder(all_experts).mul_(capacity).add_(slot);
  at::Tensor result = at::empty({choices}, numbers);
  result.scatter_(0, order, place.masked_fill_(slot.ge(capacity), -1));
  return result.view({groups, k, tokens}).transpose(1, 2).reshape({groups * tokens, k});
}

// Rows of slots[E, C, H] as [E C, H] that places mean; 0 where a choice was dropped.
at::Tensor rows_of(const at::Tensor& places, std::int64_t tokens, std::int64_t capacity) {
  const std::int64_t groups = places.size(0) / tokens;
  const at::Tensor group = at::arange(groups, numbers_like(places)).repeat_interleave(tokens).unsqueeze(1);
  const at::Tensor there = places.clamp_min(0);
  const at::Tensor expert = there.div(capacity, "floor");
  return expert.mul(groups).add_(group).mul_(capacity).add_(there.remainder(capacity));
}

// The token of each row of slots; -1 where there is none.
at::Tensor tokens_in_slots(const at::Tensor& places, const Dispatch& op, std::int64_t slots) {
  const at::Tensor rows = rows_of(places, op.tokens, op.capacity).masked_fill_(places.lt(0), slots);
  const at::Tensor token = at::arange(places.size(0), numbers_like(places)).unsqueeze(1).expand_as(places);
  at::Tensor result = at::full({slots + 1}, -1, numbers_like(places));  // one more, for those that were dropped
  result.scatter_(0, rows.reshape({-1}), token.reshape({-1}));
  return result.narrow(0, 0, slots).clone();
}

struct IntoSlots : Function<IntoSlots> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& tokens,
                            const std::vector<std::int64_t>& shape) {
    context->save_for_backward({tokens});
    context->saved_data["rows"] = x.size(0);
    return at::embedding(x, tokens.clamp_min(0)).masked_fill_(tokens.lt(0).unsqueeze(-1), 0.0).view(shape);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor tokens = context->get_saved_variables().at(0);
    constexpr std::int64_t nobody = -1;  // skipped, as padding is
    const at::Tensor rows = gradients.at(0).reshape({tokens.size(0), -1});
    return {at::embedding_dense_backward(rows, tokens, context->saved_data["rows"].toInt(), nobody, false),
            at::Tensor(), at::Tensor()};
  }
};

// Bags of k rows each: ATen weighs and adds them without a copy of the rows. What was dropped has weight 0, and some
// row.
struct Bags {
  at::Tensor slots, rows, weights, begins, bag_of;

  Bags(const at::Tensor& of, const at::Tensor& places, const at::Tensor& given, std::int64_t tokens,
       std::int64_t capacity)
      : slots(of.reshape({-1, of.size(2)})),
        rows(rows_of(places, tokens, capacity).reshape({-1})),
        weights(given.masked_fill(places.lt(0), 0.0).reshape({-1})),
        begins(at::arange(0, places.numel(), places.size(1), numbers_like(places))),
        bag_of(at::arange(places.size(0), numbers_like(places)).repeat_interleave(places.size(1))) {}
};

constexpr std::int64_t add_rows = 0;  // of ATen's modes

struct OutOfSlots : Function<OutOfSlots> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& slots, const at::Tensor& places,
                            const at::Tensor& weights, std::int64_t tokens, std::int64_t capacity) {
    context->save_for_backward({slots, places, weights});
    context->saved_data["tokens"] = tokens;
    context->saved_data["capacity"] = capacity;
    const Bags bags(slots, places, weights, tokens, capacity);
    return std::get<0>(at::_embedding_bag(bags.slots, bags.rows, bags.begins, false, add_rows, false, bags.weights));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &slots = saved.at(0), &places = saved.at(1);
    const at::Tensor dy = gradients.at(0).contiguous();
    const Bags bags(slots, places, saved.at(2), context->saved_data["tokens"].toInt(),
                    context->saved_data["capacity"].toInt());
    variable_list results(5);
    constexpr std::size_t of_slots = 0, of_weights = 2;
    if (context->needs_input_grad(of_slots)) {
      const at::Tensor sizes = at::full_like(bags.begins, places.size(1));
      results[of_slots] = at::_embedding_bag_dense_backward(dy, bags.rows, bags.bag_of, sizes, sizes,
                                                            bags.slots.size(0), false, add_rows, bags.weights)
                              .view(slots.sizes());
    }
    if (context->needs_input_grad(of_weights))
      results[of_weights] =
          at::_embedding_bag_per_sample_weights_backward(dy, bags.slots, bags.rows, bags.begins, bags.bag_of, add_rows)
              .view(places.sizes())
              .masked_fill_(places.lt(0), 0.0);
    return results;
  }
};

// The gradient of a weight [E, N, K] is made as it lies: autograd's own of a transposed operand is copied once more.
struct GroupedProduct : Function<GroupedProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const Optional<at::Tensor>& bias, bool weight_kn) {
    context->save_for_backward({weight.requires_grad() ? x : at::Tensor(), x.requires_grad() ? weight : at::Tensor()});
    context->saved_data["weight_kn"] = weight_kn;
    context->saved_data["bias"] = bias.has_value();
    const at::Tensor kn = weight_kn ? weight : weight.transpose(1, 2);
    return bias ? at::baddbmm(bias->unsqueeze(1), x, kn) : at::bmm(x, kn);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved.at(0), &weight = saved.at(1), &dy = gradients.at(0);
    const bool weight_kn = context->saved_data["weight_kn"].toBool();
    variable_list results(4);
    if (weight.defined() && context->needs_input_grad(0))
      results[0] = at::bmm(dy, weight_kn ? weight.transpose(1, 2) : weight);
    if (x.defined() && context->needs_input_grad(1))
      results[1] = weight_kn ? at::bmm(x.transpose(1, 2), dy) : at::bmm(dy.transpose(1, 2), x);
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) results[2] = dy.sum(1);
    return results;
  }
};

}  // namespace

Tensors run(const TopK& op, const Tensors& in) {
  const auto [values, indices] = in.at(0).topk(op.k, -1, op.largest, true);
  return {values, indices};
}

Tensors run(const Dispatch& op, const Tensors& in, const Shapes& out) {
  const at::Tensor experts = in.at(1).to(at::kLong);
  const Shape& shape = out.at(0);
  const at::Tensor places = places_of(experts, shape.at(0), op.tokens, op.capacity);
  return {IntoSlots::apply(in.at(0), tokens_in_slots(places, op, shape[0] * shape.at(1)), shape), places};
}

at::Tensor run(const Combine& op, const Tensors& in) {
  return OutOfSlots::apply(in.at(0), in.at(1).to(at::kLong), in.at(2), op.tokens, op.capacity);
}

at::Tensor run(const GroupedLinear& op, const Tensors& in) {
  return GroupedProduct::apply(in.at(0), in.at(1), optional_operand(in, 2), op.weight_kn);
}

}  // namespace sibyl::aten
