// Steps whose results are not kept but computed again before their backward: one autograd node for all of them
// (Chen et al., 2016; as torch.utils.checkpoint).
//
// Forward runs them without recording and keeps what they read; backward runs them again, recorded, on copies that are
// leaves, and runs that graph backward at once. Gradients of parameters are added where parameters keep them, their
// hooks run as ever; those of what was read are handed on.
#pragma once

#include <torch/types.h>
#include <functional>
#include <vector>

namespace sibyl::trainer {

// What the steps make of what they read. `again`: for backward; all else must be as the first time.
using Rerun = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs, bool again)>;

// What lies elsewhere until backward: the inputs numbered so (ascending) are not kept, but fetched for it, all at once.
struct Elsewhere {
  std::vector<std::size_t> inputs;
  std::function<std::vector<at::Tensor>()> fetch;
};

std::vector<at::Tensor> run_recomputed(Rerun run, const std::vector<at::Tensor>& inputs, Elsewhere elsewhere = {});

}  // namespace sibyl::trainer
