#include "profiler/torch/clock.h"

#include <torch/types.h>

#include <vector>

#include "aten/cuda.h"
#include "base/statistics.h"

namespace sibyl {
namespace {

constexpr double shortest_between_events = 1e-7;  // events resolve half a microsecond

// Half a gigabyte: over all caches, and a tenth of a millisecond or more of work.
void pass_over_memory() {
  constexpr std::int64_t elements = 128 << 20;
  static at::Tensor ballast = at::ones({elements}, at::TensorOptions(aten::compute_device()).dtype(at::kFloat));
  ballast.mul_(1.0);
}

double of_nothing() {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) times.push_back(aten::cuda::seconds_of(pass_over_memory, [] {}));
  return median(times);
}

}  // namespace

double seconds_on_cuda(const std::function<void()>& warm, const std::function<void()>& run) {
  static const double nothing = of_nothing();
  const auto ahead = [&] {
    pass_over_memory();
    warm();
  };
  return std::max(shortest_between_events, aten::cuda::seconds_of(ahead, run) - nothing);
}

}  // namespace sibyl
