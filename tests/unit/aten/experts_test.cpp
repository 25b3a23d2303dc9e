// A mixture of experts: places by hand, and the whole against what each token's own experts make of it.
#include <ATen/ATen.h>

#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

TEST(TopK, greatest_and_least_in_order) {
  const at::Tensor x = tensor({3, 1, 2, 4, 6, 5}, {2, 3});
  const auto most = run_operation(TopK{2}, {x}, {{2, 2}, {2, 2}});
  expect_values(most[0], {2, 2}, {3, 2, 6, 5});
  expect_values(most[1], {2, 2}, {0, 2, 1, 2});
  expect_values(run_operation(TopK{1, false}, {x}, {{2, 1}, {2, 1}})[1], {2, 1}, {1, 0});
}

// All three tokens want expert 0 first and expert 1 then; each has two slots: the third token is left out twice.
TEST(Dispatch, later_tokens_find_no_slot) {
  const auto sent =
      run_operation(Dispatch{3, 2}, {tensor({1, 2, 3}, {3, 1}), ids({0, 1, 0, 1, 0, 1}, {3, 2})}, {{2, 2, 1}, {3, 2}});
  expect_values(sent[0], {2, 2, 1}, {1, 2, 1, 2});
  expect_values(sent[1], {3, 2}, {0, 2, 1, 3, -1, -1});
}

// Token 1's first choice goes before token 0's second one.
TEST(Dispatch, first_choices_come_first) {
  const auto sent =
      run_operation(Dispatch{2, 1}, {tensor({7, 8}, {2, 1}), ids({1, 0, 0, 1}, {2, 2})}, {{2, 1, 1}, {2, 2}});
  expect_values(sent[0], {2, 1, 1}, {8, 7});
  expect_values(sent[1], {2, 2}, {1, -1, 0, -1});
}

// Two groups of two tokens; expert 1 is left with an empty slot in the first, expert 0 in the second.
TEST(Dispatch, groups_have_slots_of_their_own) {
  const auto sent =
      run_operation(Dispatch{2, 2}, {tensor({1, 2, 3, 4}, {4, 1}), ids({0, 0, 1, 1}, {4, 1})}, {{2, 4, 1}, {4, 1}});
  expect_values(sent[0], {2, 4, 1}, {1, 2, 0, 0, 0, 0, 3, 4});
  expect_values(sent[1], {4, 1}, {0, 1, 2, 3});
}

// What is dropped has no gradient and no result.
TEST(Combine, leaves_out_what_was_dropped) {
  at::Tensor slots = tensor({10, 20}, {2, 1, 1}).requires_grad_(),
             weights = tensor({2, 3, 5, 7}, {2, 2}).requires_grad_();
  const at::Tensor y = run_one(Combine{2, 1}, {slots, ids({0, 1, -1, -1}, {2, 2}), weights});
  expect_values(y, {2, 1}, {2 * 10 + 3 * 20, 0});
  y.sum().backward();
  expect_values(slots.grad(), {2, 1, 1}, {2, 3});
  expect_values(weights.grad(), {2, 2}, {10, 20, 0, 0});
}

struct Layer {
  at::Tensor x, scores, weight, bias;

  Layer() {
    at::manual_seed(3);
    x = at::randn({12, 5}).requires_grad_();
    scores = at::randn({12, 4}).requires_grad_();
    weight = at::randn({4, 5, 5}).requires_grad_();
    bias = at::randn({4, 5}).requires_grad_();
  }
  [[nodiscard]] std::vector<at::Tensor> gradients() const {
    return {x.grad(), scores.grad(), weight.grad(), bias.grad()};
  }
};

// Groups of 6 tokens, 2 of 4 experts, and a slot for whoever comes.
at::Tensor in_slots(const Layer& layer, bool weight_kn) {
  const at::Tensor weight = weight_kn ? layer.weight.transpose(1, 2).contiguous() : layer.weight;
  const at::Tensor probabilities = run_one(Softmax{1}, {layer.scores});
  const auto chosen = run_operation(TopK{2}, {probabilities}, {{12, 2}, {12, 2}});
  const auto sent = run_operation(Dispatch{6, 6}, {layer.x, chosen[1]}, {{4, 12, 5}, {12, 2}});
  const at::Tensor made = run_one(GroupedLinear{weight_kn}, {sent[0], weight, layer.bias});
  return run_one(Combine{6, 6}, {made, sent[1], chosen[0]});
}

// Every expert for every token, times its probability where it is among the two greatest.
at::Tensor everywhere(const Layer& layer) {
  const at::Tensor probabilities = at::softmax(layer.scores, 1);
  const at::Tensor second = std::get<0>(probabilities.topk(2, 1)).select(1, 1).unsqueeze(1);
  const at::Tensor weights = probabilities * probabilities.ge(second);
  const at::Tensor all = at::einsum("tk,enk->ten", {layer.x, layer.weight}) + layer.bias;
  return (all * weights.unsqueeze(2)).sum(1);
}

TEST(Mixture, is_what_the_chosen_experts_make) {
  const at::Tensor seeds = at::arange(60, at::kFloat).reshape({12, 5}).sub_(30.0);
  Layer want;
  const at::Tensor y = everywhere(want);
  (y * seeds).sum().backward();
  for (const bool weight_kn : {false, true}) {
    Layer got;
    const at::Tensor z = in_slots(got, weight_kn);
    EXPECT_TRUE(at::allclose(z, y, 1e-5, 1e-5));
    (z * seeds).sum().backward();
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_TRUE(at::allclose(got.gradients()[i], want.gradients()[i], 1e-4, 1e-4)) << "gradient " << i;
  }
}

// A part of the groups has the same part of the slots, and the same places.
TEST(Mixture, groups_on_other_ranks_change_nothing) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({8, 3}), experts = at::randint(4, {8, 2}, at::kLong);
  const Dispatch op{4, 2};  // too few slots for some
  const auto whole = run_operation(op, {x, experts}, {{4, 4, 3}, {8, 2}});
  const auto part = run_operation(op, {x.slice(0, 4, 8), experts.slice(0, 4, 8)}, {{4, 2, 3}, {4, 2}});
  EXPECT_TRUE(part[0].equal(whole[0].slice(1, 2, 4)));
  EXPECT_TRUE(part[1].equal(whole[1].slice(0, 4, 8)));
  EXPECT_TRUE(whole[1].lt(0).any().item<bool>());
}

}  // namespace
}  // namespace sibyl::aten
