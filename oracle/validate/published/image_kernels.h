// In which order a published run kept the numbers of its images, and what its framework ran in one kernel
// (oracle/plan/image_kernels.h): by framework, precision and what the row's notes say. A row that says neither is taken
// as the framework's examples do by default, and says so.
#pragma once

#include <string>
#include <vector>

#include "oracle/validate/published/row.h"

namespace sibyl::published {

struct ImageKernels {
  bool fused_norms = false;
  bool converted_images = false;
  bool converted_norms = false;
  std::vector<std::string> assumed = {};  // sentences without full stop
};

ImageKernels image_kernels_of(const Row& row);

}  // namespace sibyl::published
