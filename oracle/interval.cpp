#include "oracle/interval.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <variant>
#include <vector>

#include "oracle/expected_maximum.h"
#include "oracle/plan/recompute.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

constexpr std::size_t provenances = 3;
// What errs alike: kernels by family and provenance, then the sum of kernels.
constexpr std::size_t composition_cause = std::variant_size_v<Attributes> * provenances;

// Sums over one rank's step.
class Errors {
 public:
  void add(const Stage& stage, const PricedStage& priced) {
    const int micro_batches = std::max(1, stage.micro_batches());
    const auto add_kernel = [&](StageKernels::Index key, int times) {
      const Estimate& estimate = priced.prices[key].estimate.time;
      const auto provenance = static_cast<std::size_t>(estimate.provenance);
      const double time = estimate.time.value() * times;
      errors_[priced.kernels.keys[key].signature.attributes.index() * provenances + provenance] +=
          time * estimate.relative_error;
      kernels_[provenance] += time;
    };
    for (const StageKernels::OfStep& step : priced.kernels.steps) {
      for (const auto& kernel : {step.forward, step.backward, step.backward_weight})
        if (kernel) add_kernel(*kernel, micro_batches);
      for (const auto key : step.sums) add_kernel(key, micro_batches);
      for (const auto key : step.compressions) add_kernel(key, 1);
    }
    for (const auto key : priced.kernels.decompressions) add_kernel(key, 1);
    for (const auto key : priced.kernels.updates) add_kernel(key, 1);
    for (const auto* sent : {&priced.messages, &priced.gathers})
      for (const PricedMessage& message : *sent) add_transfer(message.estimate.time, 1, messages_);
    for (std::size_t u = 0; u < stage.units.size(); ++u)
      add_transfer(priced.unit_gathers[u].estimate.time,
                   micro_batches * (stays_gathered(stage, stage.units[u]) ? 1 : 2), messages_);
    for (const auto& norm : {priced.clip_norm, priced.tensor_norms})
      if (norm) add_transfer(norm->time, 1, messages_);
    for (const auto& send : {priced.send_forward, priced.send_backward})
      if (send) add_transfer(*send, micro_batches, messages_);
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < priced.exchanges.size(); ++i) {
      const auto& [forward, backward] = std::tie(priced.exchanges[i].forward, priced.exchanges[i].backward);
      if (forward) add_transfer(forward->time, micro_batches * (again[i] ? 2 : 1), exchanges_);
      if (backward) add_transfer(backward->time, micro_batches, exchanges_);
    }
    for (const PricedCopy& copy : priced.copies) add_transfer(copy.estimate, 1, copies_);
    for (const PricedStage::Kept& kept : priced.kept)
      for (const PricedCopy* copy : {&kept.out, &kept.in}) add_transfer(copy->estimate, micro_batches, copies_);
    composition_ = priced.composition;
  }

  [[nodiscard]] Uncertainty result(const TimeBreakdown& times, int ranks) const {
    // Hidden communication cannot make the step late by its own error; only the exposed share counts. The same of
    // copies.
    const double waited = times.communication_exposed.value() - exchanges_.time;  // which are waited for in full
    const double exposed = messages_.time > 0 ? std::clamp(waited / messages_.time, 0.0, 1.0) : 0.0;
    const double copied = copies_.time > 0 ? times.offload_exposed.value() / copies_.time : 0.0;
    const double compute = (kernels_[0] + kernels_[1] + kernels_[2]) * composition_.factor;
    Uncertainty result;
    for (std::size_t cause = 0; cause < errors_.size(); ++cause)
      if (errors_[cause] > 0) result.error.shared.push_back({cause, Seconds{errors_[cause]}});
    result.error.shared.push_back({composition_cause, Seconds{compute * composition_.relative_error}});
    result.error.own = Seconds{messages_.error * exposed + exchanges_.error + copies_.error * copied};
    result.slowest_rank = Seconds{compute * composition_.spread * expected_maximum(ranks)};
    result.provenance = shares();
    return result;
  }

 private:
  struct Transfers {
    double time = 0, error = 0;
  };

  void add_transfer(const Estimate& estimate, int times, Transfers& kind) {
    const double time = estimate.time.value() * times;
    kind.time += time;
    kind.error += time * estimate.relative_error;
    transfers_[static_cast<std::size_t>(estimate.provenance)] += time;
  }

  [[nodiscard]] ProvenanceShares shares() const {
    std::array<double, provenances> time;
    double total = 0;
    for (std::size_t i = 0; i < provenances; ++i) total += time[i] = kernels_[i] + transfers_[i];
    if (total <= 0) return {};
    return {time[0] / total, time[1] / total, time[2] / total};
  }

  std::array<double, composition_cause> errors_{};           // seconds, by cause
  std::array<double, provenances> kernels_{}, transfers_{};  // seconds, by provenance
  Transfers messages_, exchanges_, copies_;
  Composition composition_;
};

}  // namespace

Uncertainty uncertainty(const Stage& stage, const PricedStage& priced, const TimeBreakdown& times, int ranks) {
  Errors errors;
  errors.add(stage, priced);
  return errors.result(times, ranks);
}

Uncertainty uncertainty(const Plan& plan, const std::vector<PricedStage>& priced, std::size_t coordinate,
                        const SimulatedStep& times) {
  Errors errors;
  for (std::size_t s = coordinate; s < plan.stages.size(); s += plan.schedule.size())
    errors.add(plan.stages[s], priced[s]);
  Uncertainty result = errors.result(times.breakdown, plan.mesh.size());
  const Seconds busy = times.total - times.breakdown.bubble;
  if (busy.value() > 0) result.error *= times.total / busy;
  return result;
}

}  // namespace sibyl
