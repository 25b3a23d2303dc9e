#include "profiler/torch/update.h"

#include <variant>

#include "aten/device.h"
#include "aten/dtype.h"
#include "profiler/torch/bench.h"

namespace sibyl {
namespace {

at::TensorOptions on(c10::ScalarType type) { return at::TensorOptions(aten::compute_device()).dtype(type); }

}  // namespace

UpdateBench::UpdateBench(const KernelKey& key, int copies)
    : update_(std::get<OptimizerUpdate>(key.signature.attributes)) {
  const c10::ScalarType type = aten::scalar_type(key.signature.dtype);
  for (int i = 0; i < copies; ++i) {
    Parameter parameter;
    parameter.value = at::ones(key.signature.inputs.at(0), on(type));
    parameter.gradient = at::full_like(parameter.value, 1e-3);
    parameter.state = aten::make_optimizer_state(update_, parameter.value);
    parameters_.push_back(std::move(parameter));
  }
}

void UpdateBench::run(int copy) {
  Parameter& parameter = parameters_[static_cast<std::size_t>(copy)];
  aten::update_parameter(update_, {}, parameter.state, parameter.value, parameter.gradient);
}

Bytes bytes_touched_by_update(const KernelKey& key) {
  const OptimizerKind kind = std::get<OptimizerUpdate>(key.signature.attributes).kind;
  const bool one_state = kind == OptimizerKind::momentum || kind == OptimizerKind::lars;
  const double tensors = kind == OptimizerKind::sgd ? 2.0 : one_state ? 3.0 : 4.0;
  return bytes_of(key.signature.inputs, key.signature.dtype) * tensors;
}

CopyBench::CopyBench(const KernelKey& key, int copies) {
  const c10::ScalarType type = aten::scalar_type(key.signature.dtype);
  for (int i = 0; i < copies; ++i) {
    sources_.push_back(at::ones(key.signature.inputs.at(0), on(type)));
    targets_.push_back(at::zeros(key.signature.inputs.at(0), on(type)));
  }
}

void CopyBench::warm(int copy) { write_again(sources_[static_cast<std::size_t>(copy)]); }

void CopyBench::run(int copy) {
  const at::NoGradGuard no_gradient;
  targets_[static_cast<std::size_t>(copy)].copy_(sources_[static_cast<std::size_t>(copy)]);
}

}  // namespace sibyl
