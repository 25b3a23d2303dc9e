#include "profiler/interpolation/samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/statistics.h"
#include "profiler/interpolation/cost_key.h"
#include "profiler/interpolation/ideal.h"

namespace sibyl::interpolation {
namespace {

constexpr double unstated_spread = 0.03;   // of samples whose source gives none
constexpr double alone_or_in_step = 0.02;  // between a kernel timed alone and the same kernel in a step
constexpr double clearly_less = 0.95;      // of two timings of one kernel under two conditions
constexpr std::uint32_t all_operands = 3;  // masks of decomposable operations: x, weight, [bias]

// All samples of one kernel, taken at different times: of those up to twice their median, as well as each is known.
class Exact {
 public:
  void add(const KernelSample& sample) {
    timings_.push_back({sample.time.value(), sample.spread, sample.runs});
    workspace = std::max(workspace, sample.workspace);
    kept = std::max(kept, sample.kept);
    if (sample.alone.value() > 0) alone_.push_back(sample.alone / sample.time);
    if (sample.cached.value() > 0) cached_.push_back(sample.cached / sample.time);
  }
  // Once all are there. The mean, so that kernels add up to the mean step.
  void pool() {
    std::vector<double> times;
    for (const Timing& timing : timings_) times.push_back(timing.time);
    const double middle = median(times);
    std::erase_if(timings_, [&](const Timing& timing) { return timing.time > 2 * middle; });
    std::vector<Known> known;
    for (const Timing& timing : timings_) known.push_back({timing.time, middle * timing.unsure()});
    const Pooled all = pooled(known);
    time = Seconds{all.mean};
    error = all.error / all.mean;
    double square = 0;
    for (std::size_t i = 0; i < timings_.size(); ++i)
      square += all.weights[i] * timings_[i].spread * timings_[i].spread;
    spread = std::sqrt(square);
  }

  Seconds time;
  double error = 0.0;   // of the mean, relative: of each sample's timings, and of samples from each other
  double spread = 0.0;  // of one run from the next, relative; 0 where no sample states it
  Bytes workspace, kept;

  [[nodiscard]] double alone_share() const { return share(alone_); }
  [[nodiscard]] double cached_share() const { return share(cached_); }

 private:
  struct Timing {
    double time = 0.0, spread = 0.0;
    int runs = 0;
    // The median of n timings is known to about 1.25 spread / sqrt(n).
    [[nodiscard]] double unsure() const {
      return spread > 0 ? 1.25 * spread / std::sqrt(std::max(1, runs)) : unstated_spread;
    }
  };
  // Of kernels that were not timed so, because they need little of the memory's rate or because nobody did, all of it.
  [[nodiscard]] static double share(const std::vector<double>& shares) {
    const double middle = shares.empty() ? 1.0 : median(shares);
    return middle < clearly_less ? middle : 1.0;
  }

  std::vector<Timing> timings_;
  std::vector<double> alone_, cached_;  // shares of times
};

double traffic(const Work& work) { return std::max(1.0, (work.read + work.written).value()); }

constexpr std::size_t bucket_count = std::variant_size_v<Attributes>;
const std::size_t gemm_bucket = Attributes{Linear{}}.index();

std::size_t bucket_of_operation(std::size_t operation) {
  const bool product = operation == gemm_operation || operation == Attributes{MatMul{}}.index() ||
                       operation == Attributes{GroupedLinear{}}.index();
  return product ? gemm_bucket : operation;
}

struct Extent {
  const KernelKey* first = nullptr;  // a member of the family
  Seconds fastest, slowest;
};

// What all kernels of a family have in common of their keys.
std::string family_name(const Family& family, const KernelKey& key) {
  if (family.operation == gemm_operation) return "matrix products";
  const std::string text = to_string(key);
  std::string head = text.substr(0, text.find('['));
  if (const auto* convolution = std::get_if<Convolution>(&key.signature.attributes)) {
    head = head.substr(0, head.find('('));
    head += (family.category & pointwise) != 0 ? " 1x1" : " wider than 1x1";
    if ((family.category & strided) != 0) head += ", strided";
    if (convolution->groups > 1) head += (family.category & depthwise) != 0 ? ", depthwise" : ", grouped";
    if (convolution->transposed) head += ", transposed";
  }
  return head;
}

}  // namespace

bool faster_alone(const KernelSample& sample) {
  return sample.alone.value() > 0 && sample.alone < clearly_less * sample.time;
}

bool faster_cached(const KernelSample& sample) {
  return sample.cached.value() > 0 && sample.cached < clearly_less * sample.time;
}

bool better(const KernelEstimate& a, const KernelEstimate& b) {
  return std::pair(a.time.provenance, a.time.relative_error) < std::pair(b.time.provenance, b.time.relative_error);
}

KernelEstimate sum(const std::vector<KernelEstimate>& parts) {
  KernelEstimate total;
  total.time.provenance = Provenance::measured;
  double error = 0.0, alone = 0.0, cached = 0.0;
  for (const KernelEstimate& part : parts) {
    total.time.time += part.time.time;
    error += part.time.relative_error * part.time.time.value();
    total.workspace = std::max(total.workspace, part.workspace);
    total.kept = std::max(total.kept, part.kept);
    alone += part.alone * part.time.time.value();
    cached += part.cached * part.time.time.value();
  }
  if (total.time.time.value() > 0) {
    total.alone = alone / total.time.time.value();
    total.cached = cached / total.time.time.value();
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

namespace {

// A key is found by its hash where that is known.
struct HashOfKey {
  using is_transparent = void;
  std::size_t operator()(const KernelKey& key) const { return hash_value(key); }
  std::size_t operator()(const Question& asked) const { return asked.hash(); }
};
struct SameKey {
  using is_transparent = void;
  bool operator()(const KernelKey& a, const KernelKey& b) const { return a == b; }
  bool operator()(const Question& a, const KernelKey& b) const { return a.key() == b; }
  bool operator()(const KernelKey& a, const Question& b) const { return a == b.key(); }
};

}  // namespace

struct Samples::Bucket {
  std::vector<std::uint32_t> members;  // indices of samples
  std::once_flag once;
  std::unordered_map<KernelKey, Exact, HashOfKey, SameKey> exact;
  std::unordered_map<Family, FamilyFit> families;
  std::map<Family, Extent> extents;

  void build(const Device& device, const std::vector<KernelSample>& samples);
};

void Samples::Bucket::build(const Device& device, const std::vector<KernelSample>& samples) {
  std::vector<const std::pair<const KernelKey, Exact>*>
      order;  // of first appearance: what follows must not depend on hashing
  exact.reserve(members.size());
  for (const std::uint32_t i : members) {
    const auto [entry, is_new] = exact.try_emplace(cost_key(samples[i].key));
    if (is_new) order.push_back(&*entry);
    entry->second.add(samples[i]);
  }
  for (auto& [key, e] : exact) e.pool();

  std::unordered_map<Family, std::vector<FitPoint>> points;
  for (const auto* entry : order) {
    const auto& [key, e] = *entry;
    const Place p = place(key);
    const double bytes = traffic(work_of(key, device.backend));
    const auto [extent, is_first] = extents.try_emplace(p.family, Extent{&key, e.time, e.time});
    extent->second.fastest = std::min(extent->second.fastest, e.time);
    extent->second.slowest = std::max(extent->second.slowest, e.time);
    points[p.family].push_back({{p.features, p.variant},
                                std::log(e.time / roofline_time(device, key)),
                                e.workspace.value() / bytes,
                                e.kept.value() / bytes,
                                e.alone_share(),
                                e.cached_share()});
  }
  for (auto& [family, of_family] : points) families.try_emplace(family, std::move(of_family));
}

Samples::Samples(Device device, std::vector<KernelSample> samples)
    : device_(std::move(device)), samples_(std::move(samples)), buckets_(new Bucket[bucket_count]) {
  std::vector<double> spreads;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const KernelSample& sample = samples_[i];
    if (!(sample.time.value() > 0)) continue;
    buckets_[bucket_of_operation(sample.key.signature.attributes.index())].members.push_back(
        static_cast<std::uint32_t>(i));
    if (sample.spread > 0) spreads.push_back(sample.spread);
  }
  if (!spreads.empty()) typical_spread_ = median(spreads);
}

Samples::~Samples() = default;

const Samples::Bucket& Samples::bucket(std::size_t number) const {
  Bucket& b = buckets_[bucket_of_operation(number)];
  std::call_once(b.once, [&] { b.build(device_, samples_); });
  return b;
}

double Samples::spread(const Question& asked) const {
  const Bucket& b = bucket(asked.key().signature.attributes.index());
  const auto found = b.exact.find(asked);
  return found != b.exact.end() && found->second.spread > 0 ? found->second.spread : typical_spread_;
}

std::optional<KernelEstimate> Samples::measured(const Question& asked) const {
  const Bucket& b = bucket(asked.key().signature.attributes.index());
  const auto found = b.exact.find(asked);
  if (found == b.exact.end()) return std::nullopt;
  const Exact& e = found->second;
  const double error = std::hypot(e.error, alone_or_in_step);
  return KernelEstimate{
      {e.time, error, Provenance::measured}, e.workspace, e.kept, 0.0, e.alone_share(), e.cached_share()};
}

// All gradients = the sum of single ones; one gradient = all of them less the others.
std::optional<KernelEstimate> Samples::measured_in_parts(const Question& asked) const {
  const KernelKey& key = asked.key();
  if (key.pass != Pass::backward || !one_kernel_per_gradient(key.signature.attributes)) return std::nullopt;
  if (bucket(key.signature.attributes.index()).exact.empty()) return std::nullopt;
  std::vector<KernelEstimate> parts;
  for (const Question& of_one : asked.parts())
    if (const auto part = measured(of_one)) parts.push_back(*part);
  if (!parts.empty() && parts.size() == asked.parts().size()) return sum(parts);
  for (std::uint32_t others = 1; others <= all_operands; ++others) {
    if ((others & key.gradients) != 0) continue;
    const auto all = measured(Question(with_gradients(key, key.gradients | others)));
    const auto rest = measured(Question(with_gradients(key, others)));
    if (!all || !rest || all->time.time <= 1.2 * rest->time.time) continue;
    KernelEstimate difference = *all;
    difference.time.time -= rest->time.time;
    difference.time.relative_error *= (all->time.time + rest->time.time) / difference.time.time;
    return difference;
  }
  return std::nullopt;
}

std::optional<KernelEstimate> Samples::within(const Place& place, const KernelKey& key) const {
  const Bucket& b = bucket(place.family.operation);
  const auto found = b.families.find(place.family);
  if (found == b.families.end()) return std::nullopt;
  const auto answer = found->second.at({place.features, place.variant});
  const double bytes = traffic(work_of(key, device_.backend));
  const Seconds time = roofline_time(device_, key) * std::exp(answer.y);
  return KernelEstimate{{time, answer.error, answer.inside ? Provenance::interpolated : Provenance::estimated},
                        Bytes{answer.workspace * bytes},
                        Bytes{answer.kept * bytes},
                        0.0,
                        answer.alone,
                        answer.cached};
}

std::vector<FamilyCoverage> Samples::coverage() const {
  std::vector<FamilyCoverage> all;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    if (bucket_of_operation(i) != i) continue;
    const Bucket& b = bucket(i);
    for (const auto& [family, extent] : b.extents) {
      const FamilyFit& fit = b.families.at(family);
      all.push_back({family_name(family, *extent.first), family.dtype, fit.size(), extent.fastest, extent.slowest,
                     fit.median_error(), fit.p90_error()});
    }
  }
  return all;
}

}  // namespace sibyl::interpolation
