#include "trainer/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <utility>

namespace sibyl::trainer {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

class RecomputeNode final : public torch::autograd::Node {
 public:
  RecomputeNode(Rerun run, const variable_list& inputs, torch::autograd::edge_list next)
      : Node(std::move(next)), run_(std::move(run)) {
    for (const at::Tensor& input : inputs) inputs_.emplace_back(input, false);
  }

  variable_list apply(variable_list&& gradients) override {
    variable_list inputs;
    for (const SavedVariable& saved : inputs_) {
      const at::Tensor input = saved.unpack();
      inputs.push_back(input.detach().requires_grad_(input.requires_grad()));
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
  }
  std::string name() const override { return "Recompute"; }

 private:
  Rerun run_;
  std::vector<SavedVariable> inputs_;
};

}  // namespace

std::vector<at::Tensor> run_recomputed(Rerun run, const std::vector<at::Tensor>& inputs) {
  // Steps that read nothing with a gradient may still read parameters: a leaf of no elements has backward come by.
  const at::Tensor anchor = at::empty({0}, at::kFloat).requires_grad_();
  variable_list sources;
  for (const at::Tensor& input : inputs)
    if (input.requires_grad()) sources.push_back(input);
  sources.push_back(anchor);
  const std::shared_ptr<RecomputeNode> node(
      new RecomputeNode(run, inputs, torch::autograd::collect_next_edges(sources)), torch::autograd::deleteNode);
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
