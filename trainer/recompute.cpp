#include "trainer/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <utility>

namespace sibyl::trainer {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

class RecomputeNode final : public torch::autograd::Node {
 public:
  RecomputeNode(Rerun run, const variable_list& inputs, Elsewhere elsewhere, torch::autograd::edge_list next)
      : Node(std::move(next)), run_(std::move(run)), elsewhere_(std::move(elsewhere)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      differentiable_.push_back(inputs[i].requires_grad());
      const bool here = std::ranges::count(elsewhere_.inputs, i) == 0;
      inputs_.push_back(here ? SavedVariable(inputs[i], false) : SavedVariable());
    }
  }

  variable_list apply(variable_list&& gradients) override {
    variable_list inputs(inputs_.size()), fetched;
    if (elsewhere_.fetch) fetched = elsewhere_.fetch();
    for (std::size_t n = 0; n < fetched.size(); ++n) inputs[elsewhere_.inputs[n]] = std::move(fetched[n]);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined()) inputs[i] = inputs_[i].unpack().detach();
      inputs[i].requires_grad_(differentiable_[i]);
    }
    const at::AutoGradMode records(true);
    variable_list results = run_(inputs, true), roots, seeds;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].requires_grad() || !gradients[i].defined()) continue;
      roots.push_back(std::move(results[i]));
      seeds.push_back(std::move(gradients[i]));
    }
    results.clear();
    if (!roots.empty()) torch::autograd::backward(roots, seeds);
    variable_list back;
    for (at::Tensor& input : inputs)
      if (input.requires_grad()) back.push_back(input.grad());
    back.resize(num_outputs());  // the last is the anchor's
    return back;
  }

  void release_variables() override {
    for (SavedVariable& saved : inputs_) saved.reset_data();
    run_ = nullptr;
    elsewhere_ = {};
  }
  std::string name() const override { return "Recompute"; }

 private:
  Rerun run_;
  std::vector<SavedVariable> inputs_;
  std::vector<bool> differentiable_;
  Elsewhere elsewhere_;
};

}  // namespace

std::vector<at::Tensor> run_recomputed(Rerun run, const std::vector<at::Tensor>& inputs, Elsewhere elsewhere) {
  // Steps that read nothing with a gradient may still read parameters: a leaf of no elements has backward come by.
  const at::Tensor anchor = at::empty({0}, at::kFloat).requires_grad_();
  variable_list sources;
  for (const at::Tensor& input : inputs)
    if (input.requires_grad()) sources.push_back(input);
  sources.push_back(anchor);
  const std::shared_ptr<RecomputeNode> node(
      new RecomputeNode(run, inputs, std::move(elsewhere), torch::autograd::collect_next_edges(sources)),
      torch::autograd::deleteNode);
  std::vector<at::Tensor> results;
  {
    const at::NoGradGuard no_grad;
    results = run(inputs, false);
  }
  for (at::Tensor& result : results) {
    result = result.variable_data();  // shares memory; no view of what was read
    if (torch::autograd::isDifferentiableType(result.scalar_type()))
      torch::autograd::set_history(result, node);
    else
      node->add_input_metadata(torch::autograd::Node::undefined_input());
  }
  return results;
}

}  // namespace sibyl::trainer
