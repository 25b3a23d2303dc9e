// A ring of ranks whose parts of a sequence's keys and values come round while attention computes.
#pragma once

#include <atomic>
#include <future>
#include <vector>

#include "aten/operations/ring_attention.h"
#include "comm/communicator.h"

namespace sibyl::trainer {

// Messages by a thread of their own, one pass at a time. The communicator must outlive it, and nobody else use it
// between pass() and arrived().
class RingPassing final : public aten::Ring {
 public:
  explicit RingPassing(Communicator& communicator) : communicator_(communicator) {}
  ~RingPassing() override;
  [[nodiscard]] int rank() const override { return communicator_.rank(); }
  [[nodiscard]] int ranks() const override { return communicator_.size(); }
  void pass(std::vector<at::Tensor> tensors) override;
  std::vector<at::Tensor> arrived() override;

 private:
  void send_and_receive();

  Communicator& communicator_;
  std::vector<at::Tensor> out_, in_;
  at::Device device_ = at::kCPU;
  std::atomic<bool> compute_runs_ = true;  // beside the messages
  std::future<void> under_way_;
};

}  // namespace sibyl::trainer
