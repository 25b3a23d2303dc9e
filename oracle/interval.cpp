#include "oracle/interval.h"

#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include "oracle/expected_maximum.h"
#include "oracle/plan/offload_parameters.h"
#include "oracle/plan/recompute.h"

namespace sibyl {
namespace {

constexpr std::size_t provenances = 3;
// What errs alike: kernels by family and provenance, then the sum of kernels.
constexpr std::size_t composition_cause = std::variant_size_v<Attributes> * provenances;
// Then messages, by algorithm, links and provenance: what a formula or the samples of a ring are wrong about, all rings
// over these links are. Sends of pipelines are one more kind.
constexpr std::size_t first_message_cause = composition_cause + 1;
constexpr std::size_t sends = 0;
constexpr std::size_t kinds_of_messages = 1 + 2 * (static_cast<std::size_t>(Algorithm::gloo) + 1);

// Then launches.
constexpr std::size_t host_cause = first_message_cause + kinds_of_messages * provenances;

std::size_t kind_of(const CollectiveEstimate& estimate, bool between_nodes) {
  return 1 + 2 * static_cast<std::size_t>(estimate.algorithm) + (between_nodes ? 1 : 0);
}

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
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < priced.kernels.steps.size(); ++i) {
      const StageKernels::OfStep& step = priced.kernels.steps[i];
      if (step.forward) add_kernel(*step.forward, micro_batches * (again[i] ? 2 : 1));
      for (const auto& kernel : {step.backward, step.backward_weight})
        if (kernel) add_kernel(*kernel, micro_batches);
      for (const auto key : step.sums) add_kernel(key, micro_batches);
      for (const auto key : step.compressions) add_kernel(key, 1);
    }
    for (const auto key : priced.kernels.decompressions) add_kernel(key, 1);
    for (const auto key : priced.kernels.updates) add_kernel(key, 1);
    for (const PricedMessage& message : priced.messages)
      add_message(message.estimate, message.wire, stage.reduces_each ? micro_batches : 1, messages_);
    for (const PricedMessage& gather : priced.gathers) add_message(gather.estimate, gather.wire, 1, messages_);
    for (std::size_t u = 0; u < stage.units.size(); ++u)
      add_message(priced.unit_gathers[u].estimate, priced.unit_gathers[u].wire,
                  micro_batches * times_gathered(stage, stage.units[u]), messages_);
    for (const auto& norm : {priced.clip_norm, priced.tensor_norms})
      if (norm) add_message(*norm, {}, 1, messages_);
    for (const auto& send : {priced.send_forward, priced.send_backward})
      if (send) add_transfer(*send, sends, micro_batches, messages_);
    for (std::size_t i = 0; i < priced.exchanges.size(); ++i) {
      const PricedExchange& e = priced.exchanges[i];
      if (e.forward) add_message(*e.forward, e.forward_wire, micro_batches * (again[i] ? 2 : 1), exchanges_);
      if (e.backward) add_message(*e.backward, e.backward_wire, micro_batches, exchanges_);
    }
    for (const PricedCopy& copy : priced.copies) add_copy(copy, 1);
    for (std::size_t u = 0; u < priced.brought.size(); ++u)
      add_copy(priced.brought[u], micro_batches * times_gathered(stage, stage.units[u]));
    for (const PricedStage::Kept& kept : priced.kept)
      for (const PricedCopy* copy : {&kept.out, &kept.in}) add_copy(*copy, micro_batches);
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
    for (std::size_t cause = 0; cause < messages_.errors.size(); ++cause) {
      const double error = messages_.errors[cause] * exposed + exchanges_.errors[cause];
      if (error > 0) result.error.shared.push_back({first_message_cause + cause, Seconds{error}});
    }
    result.error.own = Seconds{copies_.error * copied};
    result.slowest_rank = Seconds{compute * composition_.spread * expected_maximum(ranks)};
    result.provenance = shares();
    return result;
  }

 private:
  struct Transfers {
    double time = 0;
    std::array<double, kinds_of_messages * provenances> errors{};  // seconds
  };
  struct Copies {
    double time = 0, error = 0;
  };

  void add_message(const CollectiveEstimate& estimate, const WireUse& wire, int times, Transfers& to) {
    add_transfer(estimate.time, kind_of(estimate, wire.between_nodes), times, to);
  }

  void add_transfer(const Estimate& estimate, std::size_t kind, int times, Transfers& to) {
    const double time = estimate.time.value() * times;
    const auto provenance = static_cast<std::size_t>(estimate.provenance);
    to.time += time;
    to.errors[kind * provenances + provenance] += time * estimate.relative_error;
    transfers_[provenance] += time;
  }

  void add_copy(const PricedCopy& copy, int times) {
    const double time = copy.estimate.time.value() * times;
    copies_.time += time;
    copies_.error += time * copy.estimate.relative_error;
    transfers_[static_cast<std::size_t>(copy.estimate.provenance)] += time;
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
  Transfers messages_, exchanges_;
  Copies copies_;
  Composition composition_;
};

}  // namespace

void add_host_error(StepError& error, Seconds size) {
  if (size.value() > 0) error.shared.push_back({host_cause, size});
}

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
