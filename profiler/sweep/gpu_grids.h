// The grids of a GPU's sweep: every family that training uses, in the types asked for.
#pragma once

#include "profiler/sweep/sweep.h"

namespace sibyl {

enum class GridDensity { quick, full };

struct GpuSweepOptions {
  GridDensity density = GridDensity::quick;
  std::vector<DType> dtypes{DType::f32};
  std::vector<OptimizerKind> optimizers{OptimizerKind::adam};
  bool attention = true;  // whether fused attention can be timed
  bool composed_norms = false;  // RMS norms of several kernels in place of one
};

std::vector<SweepGrid> gpu_grids(const GpuSweepOptions& options);

// Whether operands and results, with the gradients of backward, are at most `most`.
bool fits(const KernelKey& key, Bytes most);

}  // namespace sibyl
