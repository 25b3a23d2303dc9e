#include "oracle/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sibyl {
namespace {

class Accumulator {
 public:
  void add(const std::string& group, const Estimate& estimate) {
    const double time = estimate.time.value();
    group_error_[group] += time * estimate.relative_error;
    total_ += time;
    share_[static_cast<std::size_t>(estimate.provenance)] += time;
  }

  [[nodiscard]] double variance() const {
    double sum = 0;
    for (const auto& [group, error] : group_error_) sum += error * error;
    return sum;
  }
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] ProvenanceShares shares() const {
    if (total_ <= 0) return {};
    return {share_[0] / total_, share_[1] / total_, share_[2] / total_};
  }

 private:
  std::map<std::string, double> group_error_;
  double total_ = 0, share_[3] = {0, 0, 0};
};

}  // namespace

double expected_maximum(int p) {
  return p <= 1 ? 0.0 : boost::math::quantile(boost::math::normal(), (p - 0.375) / (p + 0.25));
}

namespace {

// Sums over one rank's step.
class Errors {
 public:
  void add(const Stage& stage, const PricedStage& priced) {
    const auto add_kernel = [&](StageKernels::Index key) {
      const Estimate& estimate = priced.prices[key].estimate.time;
      const Signature& s = priced.kernels.keys[key].signature;
      all_.add(fmt::format("{} {}", name_of(s.attributes), to_string(estimate.provenance)), estimate);
    };
    const int micro_batches = std::max(1, stage.micro_batches());
    for (int m = 0; m < micro_batches; ++m)
      for (const StageKernels::OfStep& step : priced.kernels.steps) {
        if (step.forward) add_kernel(*step.forward);
        if (step.backward) add_kernel(*step.backward);
        if (step.backward_weight) add_kernel(*step.backward_weight);
        for (const auto key : step.sums) add_kernel(key);
      }
    for (const auto key : priced.kernels.updates) add_kernel(key);
    for (const auto* sent : {&priced.messages, &priced.unit_gathers, &priced.gathers})
      for (const PricedMessage& message : *sent) messages_.emplace_back(message.estimate.time, 1);
    for (const auto& norm : {priced.clip_norm, priced.tensor_norms})
      if (norm) messages_.emplace_back(norm->time, 1);
    for (const auto& send : {priced.send_forward, priced.send_backward})
      if (send) messages_.emplace_back(*send, micro_batches);
    for (const PricedExchange& exchange : priced.exchanges)
      for (const auto& transfer : {exchange.forward, exchange.backward})
        if (transfer) exchanges_.emplace_back(transfer->time, micro_batches);
    composition_ = priced.composition;
  }

  [[nodiscard]] Uncertainty result(Seconds exposed_communication, int ranks) const {
    // Hidden communication cannot make the step late by its own error; only the exposed share counts.
    Seconds communication;
    for (const auto& [message, times] : messages_) communication += message.time * static_cast<double>(times);
    const double exposed = communication.value() > 0 ? exposed_communication / communication : 0.0;
    const double compute = all_.total() * composition_.factor;
    const double step_error = compute * composition_.relative_error;
    double network_error = 0;
    Accumulator shares = all_;
    const auto add = [&](const Estimate& estimate, int times, double weight) {
      for (int i = 0; i < times; ++i) shares.add("network", estimate);
      network_error += estimate.time.value() * estimate.relative_error * weight * times;
    };
    for (const auto& [message, times] : messages_) add(message, times, exposed);
    for (const auto& [exchange, times] : exchanges_) add(exchange, times, 1.0);
    Uncertainty result;
    result.standard_deviation =
        Seconds{std::sqrt(all_.variance() + step_error * step_error + network_error * network_error)};
    result.slowest_rank = Seconds{compute * composition_.spread * expected_maximum(ranks)};
    result.provenance = shares.shares();
    return result;
  }

 private:
  Accumulator all_;
  std::vector<std::pair<Estimate, int>> messages_, exchanges_;  // and how often
  Composition composition_;
};

}  // namespace

Uncertainty uncertainty(const Stage& stage, const PricedStage& priced, Seconds exposed_communication, int ranks) {
  Errors errors;
  errors.add(stage, priced);
  return errors.result(exposed_communication, ranks);
}

Uncertainty uncertainty(const Plan& plan, const std::vector<PricedStage>& priced, std::size_t coordinate,
                        const SimulatedStep& times) {
  Errors errors;
  for (std::size_t s = coordinate; s < plan.stages.size(); s += plan.schedule.size())
    errors.add(plan.stages[s], priced[s]);
  Uncertainty result = errors.result(times.breakdown.communication_exposed, plan.mesh.size());
  const Seconds busy = times.total - times.breakdown.bubble;
  if (busy.value() > 0) result.standard_deviation *= times.total / busy;
  return result;
}

}  // namespace sibyl
