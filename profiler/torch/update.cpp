#include "profiler/torch/update.h"

#include <variant>

#include "aten/device.h"
#include "aten/dtype.h"

namespace sibyl {
namespace {

at::TensorOptions on(c10::ScalarType type) { return at::TensorOptions(aten::compute_device()).dtype(type); }

}  // namespace

UpdateBench::UpdateBench(const KernelKey& key)
    : update_(std::get<OptimizerUpdate>(key.signature.attributes)),
      value_(at::ones(key.signature.inputs.at(0), on(aten::scalar_type(key.signature.dtype)))),
      gradient_(at::full_like(value_, 1e-3)),
      state_(aten::make_optimizer_state(update_, value_)) {}

void UpdateBench::run() { aten::update_parameter(update_, {}, state_, value_, gradient_); }

CopyBench::CopyBench(const KernelKey& key, bool cold)
    : source_(at::ones(key.signature.inputs.at(0), on(aten::scalar_type(key.signature.dtype)))),
      target_(at::zeros_like(source_)),
      made_(source_, cold) {}

void CopyBench::run() {
  const at::NoGradGuard no_gradient;
  target_.copy_(source_);
}

}  // namespace sibyl
