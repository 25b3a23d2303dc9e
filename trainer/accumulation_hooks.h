// Actions that run whenever autograd has written a parameter's gradient.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace sibyl::trainer {

class AccumulationHooks {
 public:
  AccumulationHooks() = default;
  ~AccumulationHooks();  // they run no more
  AccumulationHooks(const AccumulationHooks&) = delete;
  AccumulationHooks& operator=(const AccumulationHooks&) = delete;

  void add(const at::Tensor& parameter, std::function<void()> action);

 private:
  std::vector<std::pair<std::shared_ptr<torch::autograd::Node>, std::uintptr_t>> hooks_;
};

}  // namespace sibyl::trainer
