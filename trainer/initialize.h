// The tensors a replica starts with. Values depend on the seed and the tensor's name alone, so every rank starts alike:
// a tensor is drawn whole and the rank's part is cut from it.
#pragma once

#include <torch/types.h>
#include <cstdint>

#include "trainer/mesh_groups.h"

namespace sibyl::trainer {

// A parameter (a leaf that requires its gradient), by what it is used for: a convolution's weight has variance 2 /
// fan-in (He et al., 2015), a linear layer's 1 / fan-in, embedding tables and added tables 0.02² (as GPT-2 and BERT);
// scales are ones, shifts and biases zeros.
at::Tensor initial_parameter(const Graph& graph, const LocalTensor& local, const MeshGroups& groups,
                             std::uint64_t seed);

// A buffer: its constant values where the Graph has them; else running variances and masks are ones, all other zeros.
at::Tensor initial_buffer(const Graph& graph, const LocalTensor& local, const MeshGroups& groups);

}  // namespace sibyl::trainer
