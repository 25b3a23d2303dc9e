// How well a calibration predicts kernels that it was not shown: samples left out, predicted, and compared.
#pragma once

#include <string>
#include <vector>

#include "calibration/calibration.h"
#include "calibration/error_summary.h"

namespace sibyl {

struct KernelErrors : ErrorSummary {
  std::string kernels;  // "convolution, gradient of w"
  DType dtype = DType::f32;
};

// Twenty-fold: each twentieth of the samples is predicted from the others, without donors. Which twentieth a kernel is
// in depends on its key alone.
std::vector<KernelErrors> left_out(const Calibration& calibration);

// The device hidden: its samples (at most 400 of each kind, evenly chosen) predicted from its datasheet and its donors
// alone. `strangers`: without the donors of its own architecture.
std::vector<KernelErrors> hidden(const Calibration& calibration, bool strangers);

// The samples of `truth` that `calibration` lacks, predicted from it and its donors.
std::vector<KernelErrors> against(const Calibration& calibration, const Calibration& truth);

}  // namespace sibyl
