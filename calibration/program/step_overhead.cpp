#include "calibration/program/step_overhead.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>

#include "aten/device.h"
#include "base/statistics.h"
#include "models/graph.h"
#include "oracle/plan/plan.h"
#include "profiler/torch/time_kernel.h"
#include "trainer/replica.h"

namespace sibyl {
namespace {

constexpr std::size_t length = 200;  // of the chain: what a step costs once vanishes in it
const Shape tiny{4, 8};

Result<Graph> chain() {
  Graph graph;
  graph.name = "chain";
  const auto tensor = [&](std::string name, Shape shape, TensorKind kind) {
    Tensor t;
    t.name = std::move(name), t.shape = std::move(shape), t.kind = kind;
    if (kind == TensorKind::input) t.batch_axis = 0;
    return graph.add(std::move(t));
  };
  TensorId x = tensor("x", tiny, TensorKind::input);
  for (std::size_t i = 0; i < length; ++i) {
    const TensorId w = tensor("w" + std::to_string(i), tiny, TensorKind::parameter);
    const TensorId y = tensor("y" + std::to_string(i), tiny, TensorKind::activation);
    graph.add(Operation{"add" + std::to_string(i), Binary{BinaryKind::add}, {x, w}, {y}, {}});
    x = y;
  }
  const TensorId target = tensor("target", tiny, TensorKind::input);
  graph.loss = tensor("loss", {}, TensorKind::activation);
  graph.add(Operation{"loss", MeanSquaredError{}, {x, target}, {graph.loss}, {}});
  SIBYL_CHECK(graph.finish(tiny.front()));
  return graph;
}

Result<double> median_time(const TimedWork& work, const TimingOptions& options) {
  SIBYL_TRY(const std::vector<double> times, time_work(work, options));
  return median(times);
}

// One step but for the optimizer, whose updates are kernels of their own.
Result<double> step_time(const TimingOptions& options) {
  SIBYL_TRY(const Graph graph, chain());
  Strategy strategy;
  strategy.global_batch = graph.batch();
  SIBYL_TRY(const Plan plan, make_plan(graph, strategy));
  const trainer::MeshGroups alone;
  SIBYL_TRY(trainer::Replica replica, trainer::Replica::create(graph, plan.stages.front(), alone, 1));
  return median_time({{},
                      [&] {
                        for (const LocalTensorId id : replica.parameters()) replica[id].mutable_grad().reset();
                        const auto start = std::chrono::steady_clock::now();
                        torch::autograd::backward({replica.forward()}, {});
                        aten::wait_for_device();
                        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
                      }},
                     options);
}

Result<double> kernel_time(TimingOptions options) {
  options.others = false;  // as warm as the chain's
  const Signature addition{Binary{BinaryKind::add}, {tiny, tiny}, {tiny}, DType::f32};
  SIBYL_TRY(const KernelSample forward, time_kernel({addition, Pass::forward, 0}, options));
  SIBYL_TRY(const KernelSample backward, time_kernel({addition, Pass::backward, 3}, options));
  return (forward.time + backward.time).value();
}

// On a GPU the chain's kernels are over before the next is launched, so its time is the host's: of two launches for
// each operation, one a pass, as the oracle counts them.
Result<void> measure_dispatch(const Ranks& ranks, Session& session, TimingOptions options) {
  Device& device = session.calibration().device;
  const bool known = ranks.first() && device.dispatch.value() > 0 && device.dispatch_error == 0;  // else it was assumed
  if (ranks.greatest(known ? 1 : 0) == 1) return {};
  options.faults = [] { return std::int64_t{0}; };
  SIBYL_TRY(const double step, step_time(options));
  const double middle = median(ranks.gather(step / (2.0 * static_cast<double>(length))));
  if (ranks.first()) device.dispatch = Seconds{middle}, device.dispatch_error = 0;
  return {};
}

}  // namespace

Result<void> measure_step_overhead(const Ranks& ranks, Session& session, const TimingOptions& options) {
  if (aten::on_cuda()) return measure_dispatch(ranks, session, options);
  const bool known = ranks.first() && session.calibration().step_overhead_per_operation.value() > 0;
  if (ranks.greatest(known ? 1 : 0) == 1) return {};
  SIBYL_TRY(const double step, step_time(options));
  SIBYL_TRY(const double kernels, kernel_time(options));
  const double own = std::max(0.0, step / static_cast<double>(length) - kernels);
  const double middle = median(ranks.gather(own));
  if (ranks.first()) session.calibration().step_overhead_per_operation = Seconds{middle};
  return {};
}

}  // namespace sibyl
