// Which kernels a stage of a plan runs in one step, and how often: what calibration times and what pricing looks up.
//
// Beside each operation's forward and backward there are: the copies by which exchanges put what they send and receive
// in order; the additions by which autograd sums the gradients of a tensor used several times; the additions into
// parameters' gradients from the second micro-batch on, or where these are summed in four bytes and made in two, casts
// of every micro-batch's; the copies of gradients into and out of communication buckets;
// what gives them another form for their way, and back;
// gradients unscaled, and clipped; casts between masters and what a model of two bytes computes with; the optimizer's
// updates (one kernel a parameter on the CPU, one over all parameters on CUDA, where PyTorch uses its multi-tensor
// implementation; over all of a block where state lies elsewhere). Of sharded buckets a rank updates its part: the
// kernels are those of the first rank, whose parts are the largest.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "oracle/plan/plan.h"
#include "profiler/kernel_key.h"

namespace sibyl {

struct StageKernels {
  using Index = std::size_t;  // into `keys`

  struct OfStep {
    std::optional<Index> forward, backward;
    std::optional<Index> backward_weight;  // where a backward is taken in two parts, the second; `backward` is the first
    std::vector<Index> sums;             // gradient additions when this step's backward has run
    std::vector<Index> parameter_sums;   // the same into parameters' gradients, from the second micro-batch on
    std::vector<Index> parameter_casts;  // instead, of every micro-batch's, where they are summed in another type
    std::vector<Index> bucket_copies;    // gradients copied into a bucket, where the micro-batch's are reduced
    std::vector<Index> compressions;     // of buckets that are then complete (cost/compression.h)
  };

  std::vector<KernelKey> keys;  // distinct
  std::vector<OfStep> steps;    // parallel to Stage::steps
  std::vector<Index> unscale;  // gradients divided by the loss's scale and looked through for infinities (fp16)
  std::vector<Index> norms;    // of gradients, before they are clipped
  std::vector<Index> clips;    // gradients scaled by what the norm allows
  std::vector<Index> masters;  // casts of gradients to them, and of them to parameters (plan/precision.h)
  std::vector<Index> updates;
  std::vector<std::size_t> updated_blocks;  // parallel to `updates`; empty where no state lies elsewhere
  // From buckets to gradients, once all are reduced: whole ones, and where ranks keep parts in buffers that go round, parts.
  std::vector<Index> copies_back;
  std::vector<Index> decompressions;  // before these
  // Where every micro-batch's gradients are reduced (Stage::reduces_each): parts of two micro-batches' sums added up.
  std::vector<Index> part_sums;
  // Parallel to Stage::units: the rank's part into what is gathered. None on CUDA, where NCCL does it, and hands out parts of
  // sums, as it sends.
  std::vector<Index> unit_copies;
};

StageKernels kernels_of(const Stage& stage, Backend backend);
// Of a gradient, before it is clipped.
Signature gradient_norm(const Shape& shape);
// Of one operation's pass; none where it runs in another's kernel. `gradients`: those that a backward pass computes.
std::optional<KernelKey> kernel_of(const Stage& stage, const Compute& compute, Backend backend, Pass pass,
                                   std::uint32_t gradients);

// All distinct kernels of a plan.
std::vector<KernelKey> kernels_of(const Plan& plan, Backend backend);

}  // namespace sibyl
