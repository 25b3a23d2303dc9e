#include "profiler/interpolation/transfer.h"

#include <algorithm>
#include <cmath>

#include "profiler/interpolation/ideal.h"

namespace sibyl::interpolation {
namespace {

// One standard deviation, as `sibyl kernels --hide` (where a device's kin lend) and `--hide-architecture` found it over
// all measured devices: of each device the larger of median / 0.674 and 90 % quantile / 1.645, and of those the mean.
struct TransferError {
  double kin, strangers;  // devices of one architecture, and of two
};

bool is_product(const Attributes& attributes) {
  return std::holds_alternative<Linear>(attributes) || std::holds_alternative<MatMul>(attributes) ||
         std::holds_alternative<GroupedLinear>(attributes);
}

TransferError transfer_error(const Attributes& attributes) {
  if (std::holds_alternative<Convolution>(attributes)) return {0.18, 0.63};
  if (std::holds_alternative<Attention>(attributes)) return {0.14, 0.62};
  if (is_product(attributes)) return {0.25, 0.40};
  if (std::holds_alternative<Unary>(attributes) || std::holds_alternative<Binary>(attributes)) return {0.05, 0.10};
  return {0.24, 0.32};  // softmax and layer norm; what else is bound by memory is taken to be like them
}

bool share_peaks(const Device& a, const Device& b) {
  return std::ranges::all_of(a.peak, [&](const auto& of_type) {
    const auto found = b.peak.find(of_type.first);
    return of_type.first == DType::f64 || (found != b.peak.end() && found->second == of_type.second);
  });
}

// The same silicon, perhaps with another memory, name or board. f64 units are cut off for some markets, and train
// nothing.
bool share_silicon(const Device& a, const Device& b) {
  return !a.architecture.empty() && a.architecture == b.architecture && a.backend == b.backend &&
         a.multiprocessors == b.multiprocessors && share_peaks(a, b) && share_peaks(b, a) && a.cache == b.cache;
}

// Boards whose power nobody stated are not told apart by it.
bool share_power(const Device& a, const Device& b) {
  return a.board_power == b.board_power || a.board_power.value() == 0 || b.board_power.value() == 0;
}

// Of the same silicon on another board, by the clock below: products with any memory, all else with as quick a one
// (docs/validation/kernels.md, Boards of other power).
constexpr double board_error = 0.07;

// The clock under products as a share of the one that the peaks are stated at. A board at its power limit lowers it,
// and its voltage with it: power goes as the clock's square, between where the voltage is at its least (as the clock)
// and where it follows the clock wholly (its cube).
double clock_share(const Device& device) { return std::min(1.0, std::sqrt(device.board_power / device.boost_power)); }

bool know_clocks(const Device& a, const Device& b) {
  return std::min({a.board_power, a.boost_power, b.board_power, b.boost_power}).value() > 0;
}

}  // namespace

KernelEstimate carried(KernelEstimate estimate, const KernelKey& key, const Device& from, const Device& to) {
  const bool kin = !to.architecture.empty() && from.architecture == to.architecture;
  const bool silicon = kin && share_silicon(from, to), memory = from.memory_bandwidth == to.memory_bandwidth;
  if (silicon && memory && share_power(from, to)) return estimate;
  const bool clocked = know_clocks(from, to);
  const auto ideal = [&](const Device& device, Rates rates) {
    return ideal_time(device, key, clocked ? clock_share(device) : 1.0, rates);
  };
  estimate.time.time *= ideal(to, Rates::of_units) / ideal(from, Rates::of_units);
  if (clocked) estimate.time.time = std::max(estimate.time.time, roofline_time(to, key));
  if (to.unit_share.contains(key.signature.dtype))
    estimate.time.time = std::max(estimate.time.time, ideal(to, Rates::of_board));
  const TransferError error = transfer_error(key.signature.attributes);
  const bool alike = silicon && (memory || is_product(key.signature.attributes));
  const double added = alike ? std::min(board_error, error.kin) : kin ? error.kin : error.strangers;
  estimate.time.relative_error = std::hypot(estimate.time.relative_error, added);
  estimate.time.provenance = Provenance::estimated;
  return estimate;
}

}  // namespace sibyl::interpolation
