// What sibyl-calibrate-cudnn can be asked.
#pragma once

#include "calibration/program/commands.h"
#include "profiler/cudnn/gpu.h"
#include "profiler/sweep/gpu_grids.h"

namespace sibyl {

struct CudnnRequest {
  Request common;
  cudnn::Settings settings;
  std::vector<DType> dtypes;  // of the sweep; empty: all that the device computes in
  double tolerance = 0.15;    // of interpolation, above which the sweep's cells are cut
  int rounds = 0;             // of cutting
  bool facts_only = false;    // of the device alone, no kernels
};

Result<CudnnRequest> read_cudnn_request(const std::vector<std::string>& words);

}  // namespace sibyl
