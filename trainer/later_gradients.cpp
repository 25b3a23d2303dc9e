#include "trainer/later_gradients.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sibyl::trainer {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::Node;
using torch::autograd::variable_list;

// Of what an operand is made of: the accumulators of its leaves.
void add_leaves(const Edge& edge, edge_list& leaves) {
  if (!edge.is_valid()) return;
  if (dynamic_cast<torch::autograd::AccumulateGrad*>(edge.function.get()) != nullptr) {
    leaves.push_back(edge);
    return;
  }
  for (const Edge& next : edge.function->next_edges()) add_leaves(next, leaves);
}

class InputNode final : public Node {
 public:
  InputNode(LaterGradients& later, edge_list next) : Node(std::move(next)), later_(later) {}

  Edge root;         // of the operation's own graph
  edge_list now;     // in it: the operands whose gradients are handed on, in the order of this node's edges
  edge_list leaves;  // of the others

  variable_list apply(variable_list&& gradients) override {
    at::Tensor gradient = std::move(gradients.at(0));
    gradients.clear();
    variable_list results(num_outputs());
    if (!gradient.defined()) return results;
    edge_list wanted;
    for (std::size_t i = 0; i < now.size(); ++i)
      if (task_should_compute_output(i)) wanted.push_back(now[i]);
    if (!wanted.empty()) {
      variable_list found = Engine::get_default_engine().execute({root}, {gradient}, true, false, false, wanted);
      for (std::size_t i = 0, n = 0; i < now.size(); ++i)
        if (task_should_compute_output(i)) results[i] = std::move(found[n++]);
    }
    later_.note(root, std::move(gradient), leaves);
    return results;
  }
  void release_variables() override {
    root = {};
    now.clear();
  }
  std::string name() const override { return "BackwardOfInputs"; }

 private:
  LaterGradients& later_;
};

}  // namespace

std::vector<at::Tensor> LaterGradients::record(
    std::uint32_t later, const std::vector<at::Tensor>& operands,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& operation) {
  variable_list own = operands, sources;
  edge_list now, leaves;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!own[i].defined() || !own[i].requires_grad()) continue;
    if (later >> i & 1U) {
      add_leaves(torch::autograd::impl::gradient_edge(own[i]), leaves);
      continue;
    }
    sources.push_back(own[i]);
    own[i] = own[i].detach().requires_grad_();
    now.push_back(torch::autograd::impl::gradient_edge(own[i]));
  }
  variable_list results = operation(own);
  const std::shared_ptr<InputNode> node(new InputNode(*this, torch::autograd::collect_next_edges(sources)),
                                        torch::autograd::deleteNode);
  node->root = torch::autograd::impl::gradient_edge(results.at(0));
  node->now = std::move(now);
  node->leaves = std::move(leaves);
  results[0] = results[0].variable_data();
  torch::autograd::set_history(results[0], node);
  return results;
}

// An operation may share one leaf with one group and another leaf with another one: then they all become one.
void LaterGradients::note(Edge root, at::Tensor gradient, const edge_list& leaves) {
  Group one;
  const auto add = [&one](const edge_list& others) {
    for (const Edge& leaf : others)
      if (std::ranges::count(one.leaves, leaf) == 0) one.leaves.push_back(leaf);
  };
  const auto shares = [&leaves](const Group& group) {
    return std::ranges::any_of(leaves, [&](const Edge& leaf) { return std::ranges::count(group.leaves, leaf) > 0; });
  };
  const auto place = std::ranges::find_if(groups_, shares) - groups_.begin();
  for (Group& group : groups_) {
    if (!shares(group)) continue;
    std::ranges::move(group.roots, std::back_inserter(one.roots));
    std::ranges::move(group.gradients, std::back_inserter(one.gradients));
    add(group.leaves);
  }
  one.roots.push_back(std::move(root));
  one.gradients.push_back(std::move(gradient));
  add(leaves);
  std::erase_if(groups_, shares);
  groups_.insert(groups_.begin() + place, std::move(one));
}

// In the order in which backward came by; what is done is let go.
void LaterGradients::run() {
  std::ranges::reverse(groups_);
  for (; !groups_.empty(); groups_.pop_back()) {
    Group& group = groups_.back();
    Engine::get_default_engine().execute(group.roots, std::exchange(group.gradients, {}), false, false, true,
                                         group.leaves);
  }
}

}  // namespace sibyl::trainer
