#include "trainer/ring_passing.h"

#include <utility>

#include "aten/device.h"
#include "comm/prompt_thread.h"
#include "comm/waiting.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {

RingPassing::~RingPassing() {
  if (under_way_.valid()) under_way_.wait();
}

// Messages are the host's: what lies on a device is brought there and back.
void RingPassing::pass(std::vector<at::Tensor> tensors) {
  device_ = tensors.front().device();
  out_.clear(), in_.clear();
  for (const at::Tensor& tensor : tensors) {
    out_.push_back(device_.is_cpu() ? tensor.contiguous() : aten::to_host(tensor).contiguous());
    in_.push_back(at::empty_like(out_.back(), at::MemoryFormat::Contiguous));
  }
  compute_runs_ = true;
  under_way_ = std::async(std::launch::async, [this] { send_and_receive(); });
}

std::vector<at::Tensor> RingPassing::arrived() {
  compute_runs_ = false;
  under_way_.get();
  out_.clear();
  std::vector<at::Tensor> arrived = std::exchange(in_, {});
  if (!device_.is_cpu())
    for (at::Tensor& tensor : arrived) tensor = tensor.to(device_);
  return arrived;
}

void RingPassing::send_and_receive() {
  comm::run_promptly();
  comm::wait_beside(compute_runs_);
  const int next = (rank() + 1) % ranks(), last = (rank() + ranks() - 1) % ranks();
  for (std::size_t i = 0; i < out_.size(); ++i) {
    const std::span<std::byte> out = bytes_of(out_[i]), in = bytes_of(in_[i]);
    if (next == last)
      communicator_.swap(std::vector<Communicator::Swap>{{next, out, in}});
    else
      communicator_.swap(std::vector<Communicator::Swap>{{next, out, {}}, {last, {}, in}});
  }
}

}  // namespace sibyl::trainer
