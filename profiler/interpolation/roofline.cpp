#include "profiler/interpolation/roofline.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace sibyl::interpolation {
namespace {

FlopsPerSecond peak_of(const Device& device, DType dtype) {
  for (const DType type : {dtype, DType::f32, DType::f64})
    if (const auto found = device.peak.find(type); found != device.peak.end() && found->second.value() > 0)
      return found->second;
  return FlopsPerSecond{device.backend == Backend::cuda ? 1e13 : 1e11};
}

template <class Op, class... Ops>
constexpr bool is_one_of = (std::is_same_v<Op, Ops> || ...);

}  // namespace

Seconds Roofline::time(const Work& work) const {
  return std::max(work.flops / peak, (work.read + work.written) / bandwidth) + start_up;
}

Roofline datasheet_roofline(const Device& device, DType dtype) {
  const bool cuda = device.backend == Backend::cuda;
  const BytesPerSecond bandwidth =
      device.memory_bandwidth.value() > 0 ? device.memory_bandwidth : BytesPerSecond{cuda ? 5e11 : 1e10};
  return {peak_of(device, dtype), bandwidth, Seconds{cuda ? 2e-6 : 1e-6}};
}

double usual_slowdown(const Attributes& attributes) {
  return std::visit(
      []([[maybe_unused]] const auto& op) {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<Op, Normalization>)  // RMS may be composed of elementwise kernels
          return op.kind == NormalizationKind::rms && !op.in_one_kernel ? 1.2 : 1.8;
        else if constexpr (is_one_of<Op, Linear, MatMul, GroupedLinear>)
          return 1.4;
        else if constexpr (is_one_of<Op, Convolution, Attention>)
          return 2.5;
        else if constexpr (is_one_of<Op, Softmax, CrossEntropy, LocalResponseNorm, Pool, ClassStatistics,
                                     NormStatistics, ApplyNorm>)
          return 1.8;
        else if constexpr (is_one_of<Op, Unary, Binary, Where, Dropout, Cast, Copy, Packing, HaloPacking,
                                     OptimizerUpdate>)
          return 1.2;
        else
          return 1.5;
      },
      attributes);
}

}  // namespace sibyl::interpolation
