// What a framework does beside the passes, as its releases of the time did by default: which operations it runs apart,
// whether weights are held in two bytes, when gradients are exchanged, what updates the weights.
//
// To add a framework: a row of the table in frameworks.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/canonical/canonical.h"
#include "oracle/strategy.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {

enum class FrameworkKind {
  megatron,      // Megatron-LM, Megatron-DeepSpeed, up to 2022: softmax fused with scale and mask, products apart
  nemo,          // Megatron-Core with Transformer Engine: fused attention, distributed optimizer, fp8
  fsdp,          // torchtitan and others on FSDP: fused attention
  internevo,     // HybridZeroOptimizer: two bytes everywhere, exchanges beside backward
  jax,           // T5X, Paxml: compiled by XLA as a whole
  hugging_face,  // eager PyTorch: every operation its own kernel
  pytorch,       // DistributedDataParallel or Horovod
  tensorflow,    // every operation of Google's models its own kernel, unless XLA compiles them
  other,         // MXNet, OneFlow, PaddlePaddle, Chainer…: data parallel, overlapped
};

struct FrameworkRecipe {
  FrameworkKind kind = FrameworkKind::other;
  std::string name;  // as a sentence names it
  Apart apart;
  bool half_weights = false;
  bool bf16_sums_in_full = false;  // Strategy::fp32_gradients, unless it computes in fp16
  bool fused_pointwise = false, overlap_tensor = false, fused_update = true, written_update = false;
  GradientExchange exchange = GradientExchange::overlapped;
  bool reduce_each = true;                        // gradients that ranks hold parts of
  bool gather_late = false;                       // of ZeRO 3 (Strategy::gather_late)
  bool stays_gathered = false;                    // in pipelines: parameters of ZeRO 3, for all of a step
  bool every_logit = false;                       // of a masked language model: logits where nothing is masked, too
  OptimizerKind optimizer = OptimizerKind::adam;  // of transformers; convolutional recipes name their own
  double clip = 0;
  std::optional<Seconds> dispatch;                        // of an operation, where it is not eager PyTorch's
  AttentionLibrary attention = AttentionLibrary::flash2;  // where attention is fused
  std::vector<std::string> assumed;
};

// Of the row's `framework`; what it does not say is taken from its kind's defaults, and said.
FrameworkRecipe framework_of(const Row& row);

}  // namespace sibyl::published
