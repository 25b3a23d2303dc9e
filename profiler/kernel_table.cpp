#include "profiler/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/statistics.h"
#include "profiler/interpolation/cost_key.h"
#include "profiler/interpolation/family_fit.h"
#include "profiler/interpolation/roofline.h"

namespace sibyl {
namespace {

using interpolation::cost_key;
using interpolation::Family;
using interpolation::FamilyFit;
using interpolation::FitPoint;
using interpolation::Place;
using interpolation::Roofline;

constexpr double unstated_spread = 0.03;  // of samples whose source gives none
constexpr double transfer_error = 0.02;   // between a kernel timed alone and the same kernel in a step
constexpr double datasheet_error = 0.4;
constexpr double error_per_octave = 0.10;  // of a device twice as fast in what binds the kernel
constexpr std::uint32_t all_operands = 3;  // masks of decomposable operations: x, weight, [bias]

// All samples of one kernel.
struct Exact {
  std::vector<double> times;  // sorted once all are there
  double spread = 0.0;        // of one sample's timings, the widest
  double runs = 0;
  Bytes workspace, kept;

  // Of samples taken at different times the mean, so that kernels add up to the mean step.
  [[nodiscard]] Seconds time() const { return Seconds{mean_of_usual(times)}; }
  // How far the samples, taken at different times, differ: the standard error of their mean by their range, which
  // for few samples is all there is.
  [[nodiscard]] double drift() const {
    const double n = static_cast<double>(times.size());
    return (times.back() - times.front()) / (2 * std::sqrt(n) * time().value());
  }
};

double traffic(const Work& work) { return std::max(1.0, (work.read + work.written).value()); }

// The better founded first; then the smaller error.
bool better(const KernelEstimate& a, const KernelEstimate& b) {
  return std::pair(a.time.provenance, a.time.relative_error) < std::pair(b.time.provenance, b.time.relative_error);
}

// Parts that run one after another. Their errors are taken as fully correlated; the whole is as well founded as the
// worst founded part that matters.
KernelEstimate sum(const std::vector<KernelEstimate>& parts) {
  KernelEstimate total;
  total.time.provenance = Provenance::measured;
  double error = 0.0;
  for (const KernelEstimate& part : parts) {
    total.time.time += part.time.time;
    error += part.time.relative_error * part.time.time.value();
    total.workspace = std::max(total.workspace, part.workspace);
    total.kept = std::max(total.kept, part.kept);
  }
  constexpr double matters = 0.05;
  for (const KernelEstimate& part : parts)
    if (part.time.time > matters * total.time.time)
      total.time.provenance = std::max(total.time.provenance, part.time.provenance);
  total.time.relative_error = total.time.time.value() > 0 ? error / total.time.time.value() : 0.0;
  return total;
}

std::vector<std::uint32_t> single_gradients(std::uint32_t mask) {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t bit = 1; bit != 0 && bit <= mask; bit <<= 1U)
    if ((mask & bit) != 0) bits.push_back(bit);
  return bits;
}

}  // namespace

struct KernelTable::Index {
  Device device;
  std::size_t sample_count = 0;
  std::unordered_map<KernelKey, Exact> exact;
  std::unordered_map<Family, FamilyFit> families;
  double typical_spread = 0.0;

  Index(Device of, const std::vector<KernelSample>& samples);

  [[nodiscard]] Roofline roofline(DType dtype) const { return interpolation::datasheet_roofline(device, dtype); }
  [[nodiscard]] std::optional<KernelEstimate> measured(const KernelKey& key) const;
  [[nodiscard]] std::optional<KernelEstimate> measured_in_parts(const KernelKey& key) const;
  [[nodiscard]] std::optional<KernelEstimate> within(const Place& place, const KernelKey& key) const;
  [[nodiscard]] std::optional<KernelEstimate> from_relatives(const KernelKey& key) const;
  [[nodiscard]] KernelEstimate from_datasheet(const KernelKey& key) const;
  [[nodiscard]] KernelEstimate single(const KernelKey& key) const;
  [[nodiscard]] KernelEstimate estimate(const KernelKey& key) const;
  [[nodiscard]] double spread(const KernelKey& key) const;
};

KernelTable::Index::Index(Device of, const std::vector<KernelSample>& samples)
    : device(std::move(of)), sample_count(samples.size()) {
  std::vector<std::pair<KernelKey, Exact*>> order;  // of first appearance: what follows must not depend on hashing
  for (const KernelSample& sample : samples) {
    if (!(sample.time.value() > 0)) continue;
    const auto [entry, is_new] = exact.try_emplace(cost_key(sample.key));
    Exact& e = entry->second;
    if (is_new) order.emplace_back(entry->first, &e);
    e.times.push_back(sample.time.value());
    e.spread = std::max(e.spread, sample.spread);
    e.runs += sample.runs;
    e.workspace = std::max(e.workspace, sample.workspace);
    e.kept = std::max(e.kept, sample.kept);
  }

  std::vector<double> spreads;
  for (const auto& [key, e] : order)
    if (e->spread > 0) spreads.push_back(e->spread);
  if (!spreads.empty()) typical_spread = median(spreads);

  std::unordered_map<Family, std::vector<FitPoint>> points;
  for (const auto& [key, e] : order) {
    std::sort(e->times.begin(), e->times.end());
    const Place p = interpolation::place(key);
    const Work work = work_of(key, device.backend);
    points[p.family].push_back({{p.features, p.variant},
                                std::log(e->time() / roofline(key.signature.dtype).time(work)),
                                e->workspace.value() / traffic(work),
                                e->kept.value() / traffic(work)});
  }
  for (auto& [family, of_family] : points) families.try_emplace(family, std::move(of_family));
}

double KernelTable::Index::spread(const KernelKey& key) const {
  const auto found = exact.find(cost_key(key));
  return found != exact.end() && found->second.spread > 0 ? found->second.spread : typical_spread;
}

std::optional<KernelEstimate> KernelTable::Index::measured(const KernelKey& key) const {
  const auto found = exact.find(key);
  if (found == exact.end()) return std::nullopt;
  const Exact& e = found->second;
  // The median of n timings is known to about 1.25 spread / sqrt(n).
  const double own = e.spread > 0 ? 1.25 * e.spread / std::sqrt(std::max(1.0, e.runs)) : unstated_spread;
  const double error = std::hypot(own, e.drift(), transfer_error);
  return KernelEstimate{{e.time(), error, Provenance::measured}, e.workspace, e.kept};
}

// All gradients = the sum of single ones; one gradient = all of them less the others.
std::optional<KernelEstimate> KernelTable::Index::measured_in_parts(const KernelKey& key) const {
  if (key.pass != Pass::backward || !interpolation::one_kernel_per_gradient(key.signature.attributes))
    return std::nullopt;
  std::vector<KernelEstimate> parts;
  const auto bits = single_gradients(key.gradients);
  for (const std::uint32_t bit : bits)
    if (const auto part = measured(interpolation::with_gradients(key, bit))) parts.push_back(*part);
  if (parts.size() == bits.size()) return sum(parts);
  for (std::uint32_t others = 1; others <= all_operands; ++others) {
    if ((others & key.gradients) != 0) continue;
    const auto all = measured(interpolation::with_gradients(key, key.gradients | others));
    const auto rest = measured(interpolation::with_gradients(key, others));
    if (!all || !rest || all->time.time <= 1.2 * rest->time.time) continue;
    KernelEstimate difference = *all;
    difference.time.time -= rest->time.time;
    difference.time.relative_error *= (all->time.time + rest->time.time) / difference.time.time;
    return difference;
  }
  return std::nullopt;
}

std::optional<KernelEstimate> KernelTable::Index::within(const Place& place, const KernelKey& key) const {
  const auto found = families.find(place.family);
  if (found == families.end()) return std::nullopt;
  const auto answer = found->second.at({place.features, place.variant});
  const Work work = work_of(key, device.backend);
  const Seconds time = roofline(key.signature.dtype).time(work) * std::exp(answer.y);
  return KernelEstimate{{time, answer.error, answer.inside ? Provenance::interpolated : Provenance::estimated},
                        Bytes{answer.workspace * traffic(work)},
                        Bytes{answer.kept * traffic(work)}};
}

std::optional<KernelEstimate> KernelTable::Index::from_relatives(const KernelKey& key) const {
  for (const interpolation::Relative& relative : interpolation::related(key))
    if (auto guess = within(relative.place, key)) {
      guess->time.time *= relative.slowdown;
      guess->time.provenance = Provenance::estimated;
      guess->time.relative_error = std::hypot(guess->time.relative_error, relative.error);
      return guess;
    }
  return std::nullopt;
}

KernelEstimate KernelTable::Index::from_datasheet(const KernelKey& key) const {
  const double slowdown = interpolation::usual_slowdown(key.signature.attributes);
  const Seconds time = roofline(key.signature.dtype).time(work_of(key, device.backend)) * slowdown;
  return {{time, datasheet_error, Provenance::estimated}, Bytes{}, Bytes{}};
}

// One kernel: what was measured, else its family, else (or far from the family's samples) its nearest relatives.
KernelEstimate KernelTable::Index::single(const KernelKey& key) const {
  if (const auto found = measured(key)) return *found;
  const auto own = within(interpolation::place(key), key);
  if (own && own->time.provenance == Provenance::interpolated) return *own;
  const auto relative = from_relatives(key);
  if (own && relative) return better(*own, *relative) ? *own : *relative;
  return own ? *own : relative ? *relative : from_datasheet(key);
}

KernelEstimate KernelTable::Index::estimate(const KernelKey& given) const {
  const KernelKey key = cost_key(given);
  if (const auto found = measured(key)) return *found;
  if (const auto found = measured_in_parts(key)) return *found;
  const KernelEstimate whole = single(key);
  const auto bits = single_gradients(key.gradients);
  if (bits.size() < 2 || !interpolation::one_kernel_per_gradient(key.signature.attributes)) return whole;

  std::vector<KernelEstimate> parts;
  for (const std::uint32_t bit : bits) parts.push_back(single(interpolation::with_gradients(key, bit)));
  const KernelEstimate in_parts = sum(parts);
  return better(in_parts, whole) ? in_parts : whole;
}

KernelTable::KernelTable(Device device, std::vector<KernelSample> samples)
    : device_(std::move(device)), index_(std::make_shared<const Index>(device_, samples)) {}

KernelTable::~KernelTable() = default;

std::size_t KernelTable::size() const { return index_->sample_count; }

KernelEstimate KernelTable::estimate(const KernelKey& key) const {
  KernelEstimate result = index_->estimate(key);
  result.spread = index_->spread(key);
  const Work work = work_of(key, device_.backend);
  const DType dtype = key.signature.dtype;
  const double ratio =
      interpolation::datasheet_roofline(device_, dtype).time(work) / index_->roofline(dtype).time(work);
  if (ratio == 1.0) return result;
  result.time.time *= ratio;
  result.time.relative_error = std::hypot(result.time.relative_error, error_per_octave * std::abs(std::log2(ratio)));
  result.time.provenance = std::max(result.time.provenance, Provenance::interpolated);
  return result;
}

KernelTable KernelTable::on(Device device) const {
  KernelTable other = *this;
  other.device_ = std::move(device);
  return other;
}

}  // namespace sibyl
