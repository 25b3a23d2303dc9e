#include "oracle/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <string>

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

Uncertainty uncertainty(const Stage& stage, const PricedStage& priced, Seconds exposed_communication, int ranks) {
  Accumulator all;
  auto add_kernel = [&](StageKernels::Index key) {
    const Estimate& estimate = priced.prices[key].estimate.time;
    const Signature& s = priced.kernels.keys[key].signature;
    all.add(fmt::format("{} {}", name_of(s.attributes), to_string(estimate.provenance)), estimate);
  };
  const std::size_t micro_batches = static_cast<std::size_t>(std::max(1, stage.micro_batches()));
  for (std::size_t m = 0; m < micro_batches; ++m)
    for (const StageKernels::OfStep& step : priced.kernels.steps) {
      if (step.forward) add_kernel(*step.forward);
      if (step.backward) add_kernel(*step.backward);
      for (const auto key : step.sums) add_kernel(key);
    }
  for (const auto key : priced.kernels.updates) add_kernel(key);

  // Hidden communication cannot make the step late by its own error; only the exposed share counts.
  Seconds communication;
  std::vector<CollectiveEstimate> messages;
  for (const auto* sent : {&priced.messages, &priced.unit_gathers, &priced.gathers})
    for (const PricedMessage& message : *sent) messages.push_back(message.estimate);
  for (const auto& norm : {priced.clip_norm, priced.tensor_norms})
    if (norm) messages.push_back(*norm);
  for (const CollectiveEstimate& message : messages) communication += message.time.time;
  const double exposed = communication.value() > 0 ? exposed_communication / communication : 0.0;
  const double compute = all.total() * priced.composition.factor;
  const double step_error = compute * priced.composition.relative_error;
  double network_error = 0;
  Accumulator shares = all;
  for (const CollectiveEstimate& message : messages) {
    shares.add("network", message.time);
    network_error += message.time.time.value() * message.time.relative_error * exposed;
  }
  for (const PricedExchange& exchange : priced.exchanges)
    for (const auto& transfer : {exchange.forward, exchange.backward}) {
      if (!transfer) continue;
      for (std::size_t m = 0; m < micro_batches; ++m) shares.add("network", transfer->time);
      network_error += transfer->time.time.value() * transfer->time.relative_error * static_cast<double>(micro_batches);
    }
  Uncertainty result;
  result.standard_deviation =
      Seconds{std::sqrt(all.variance() + step_error * step_error + network_error * network_error)};
  result.slowest_rank = Seconds{compute * priced.composition.spread * expected_maximum(ranks)};
  result.provenance = shares.shares();
  return result;
}

}  // namespace sibyl
