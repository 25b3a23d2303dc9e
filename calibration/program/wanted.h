// Which kernels to time: those of a model's plans, or a sweep over common shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/onnx/import.h"
#include "oracle/strategy.h"
#include "profiler/kernel_key.h"

namespace sibyl {

struct Wanted {
  std::vector<std::string> models;    // files or zoo:NAME
  ImportOptions import;               // its batch is ignored
  std::vector<std::int64_t> batches;  // of a replica's micro-batch
  Strategy strategy;                  // but batch and optimizer
  std::vector<OptimizerKind> optimizers;
  Backend backend = Backend::cpu;  // whose kernels a step is made of
};

// Distinct, in the order the models run them.
Result<std::vector<KernelKey>> kernels_of_models(const Wanted& wanted);

enum class SweepSize { quick, full };

// Common shapes of every family, spread over the sizes that models use. Ordered so that any beginning of the list
// covers all families: a sweep that is stopped early is coarse, not lopsided.
std::vector<KernelKey> sweep(SweepSize size, const std::vector<OptimizerKind>& optimizers);

}  // namespace sibyl
