#include "trainer/accumulation_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace sibyl::trainer {
namespace {

using torch::autograd::variable_list;

class AfterAccumulation final : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void()> action) : action_(std::move(action)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    action_();
    return outputs;
  }

 private:
  std::function<void()> action_;
};

}  // namespace

AccumulationHooks::~AccumulationHooks() {
  for (const auto& [accumulator, key] : hooks_) accumulator->del_post_hook(key);
}

// A parameter holds its accumulator weakly.
void AccumulationHooks::add(const at::Tensor& parameter, std::function<void()> action) {
  std::shared_ptr<torch::autograd::Node> accumulator = torch::autograd::impl::grad_accumulator(parameter);
  const std::uintptr_t key = accumulator->add_post_hook(std::make_unique<AfterAccumulation>(std::move(action)));
  hooks_.emplace_back(std::move(accumulator), key);
}

}  // namespace sibyl::trainer
