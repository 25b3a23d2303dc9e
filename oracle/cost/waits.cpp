#include "oracle/cost/waits.h"

#include <cmath>
#include <limits>

#include "oracle/expected_maximum.h"

namespace sibyl {
namespace {

// Of arrivals at the next exchange.
class Scatter {
 public:
  Scatter(const std::vector<PricedKernel>& prices, const Cluster& cluster)
      : prices_(prices), meetings_(cluster.meetings), factor_(cluster.composition.factor) {
    begin_pass();
  }

  void run(StageKernels::Index key) {
    const KernelEstimate& estimate = prices_[key].estimate;
    const double deviation = estimate.time.time.value() * estimate.spread;
    variance_ += deviation * deviation;
    computing_ += estimate.time.time;
    since_met_ += estimate.time.time;
  }
  void begin_pass() { computing_ = Seconds{std::numeric_limits<double>::infinity()}; }
  void meet(int ranks, Seconds& wait, Seconds& computing) {
    wait = wait_of(ranks);
    computing = computing_;
    variance_ = 0;
    computing_ = since_met_ = Seconds{};
  }

 private:
  [[nodiscard]] Seconds wait_of(int ranks) const {
    const double expected = expected_maximum(ranks);
    if (!meetings_.known()) return Seconds{expected * std::sqrt(variance_)};
    const Seconds computed = since_met_ * factor_;
    return meetings_.late(computed) * (expected / expected_maximum(meetings_.ranks())) + meetings_.longer(computed);
  }

  const std::vector<PricedKernel>& prices_;
  const Meetings& meetings_;
  double factor_;
  double variance_ = 0;  // s^2
  Seconds computing_;    // without end before the first exchange of a pass
  Seconds since_met_;
};

bool meets(const Transfer& transfer) { return collective_of(transfer.motion).has_value(); }

}  // namespace

std::vector<ExchangeWait> exchange_waits(const Mesh& mesh, const Stage& stage, const StageKernels& kernels,
                                         const std::vector<PricedKernel>& prices, const Cluster& cluster) {
  std::vector<ExchangeWait> waits(stage.steps.size());
  Scatter scatter(prices, cluster);
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (exchange && meets(exchange->forward))
      scatter.meet(mesh.size(exchange->axis), waits[i].forward, waits[i].computing_forward);
    if (kernels.steps[i].forward) scatter.run(*kernels.steps[i].forward);
  }
  scatter.begin_pass();
  for (std::size_t i = stage.steps.size(); i-- > 0;) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (exchange && meets(exchange->backward))
      scatter.meet(mesh.size(exchange->axis), waits[i].backward, waits[i].computing_backward);
    const StageKernels::OfStep& step = kernels.steps[i];
    for (const auto& kernel : {step.backward, step.backward_weight})
      if (kernel) scatter.run(*kernel);
    for (const auto key : step.sums) scatter.run(key);
  }
  return waits;
}

}  // namespace sibyl
