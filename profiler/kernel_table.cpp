#include "profiler/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "profiler/interpolation/cost_key.h"
#include "profiler/interpolation/ideal.h"
#include "profiler/interpolation/question.h"
#include "profiler/interpolation/roofline.h"
#include "profiler/interpolation/samples.h"
#include "profiler/interpolation/transfer.h"

namespace sibyl {
namespace {

using interpolation::better;
using interpolation::cost_key;
using interpolation::ideal_time;
using interpolation::Question;
using interpolation::roofline_time;
using interpolation::Samples;

// Of an operation's usual slow-down: convolutions and attention differ by factors.
double datasheet_error(const Attributes& attributes) {
  return std::holds_alternative<Convolution>(attributes) || std::holds_alternative<Attention>(attributes) ? 1.0 : 0.5;
}
constexpr double error_per_octave = 0.10;  // of a device twice as fast in what binds the kernel

void keep_better(KernelEstimate& best, const KernelEstimate& other) {
  if (better(other, best)) best = other;
}

}  // namespace

struct KernelTable::Index {
  Samples samples;
  Donors load_donors;
  mutable std::once_flag donors_loaded;
  mutable std::vector<KernelTable> donors_;

  Index(Device device, std::vector<KernelSample> of, Donors load)
      : samples(std::move(device), std::move(of)), load_donors(std::move(load)) {}

  [[nodiscard]] const Device& device() const { return samples.device(); }
  [[nodiscard]] const std::vector<KernelTable>& donors() const;
  [[nodiscard]] KernelEstimate from_datasheet(const KernelKey& key) const;
  [[nodiscard]] bool is_datasheets(const Question& asked, const KernelEstimate& answer) const;
  [[nodiscard]] std::optional<KernelEstimate> from_relatives(const Question& asked) const;
  [[nodiscard]] std::optional<KernelEstimate> from_another_type(const Question& asked) const;
  [[nodiscard]] std::optional<KernelEstimate> from_donors(const Question& asked) const;
  [[nodiscard]] KernelEstimate guess(const Question& asked, std::optional<KernelEstimate> own) const;
  // Without `guesses` perhaps nothing, and then an estimate would be one.
  [[nodiscard]] std::optional<KernelEstimate> single(const Question& asked, bool guesses) const;
  [[nodiscard]] std::optional<KernelEstimate> estimate(const Question& asked, bool guesses) const;
};

const std::vector<KernelTable>& KernelTable::Index::donors() const {
  std::call_once(donors_loaded, [&] {
    if (load_donors) donors_ = load_donors();
  });
  return donors_;
}

KernelEstimate KernelTable::Index::from_datasheet(const KernelKey& key) const {
  const double slowdown = interpolation::usual_slowdown(key.signature.attributes);
  return {{roofline_time(device(), key) * slowdown, datasheet_error(key.signature.attributes), Provenance::estimated},
          Bytes{},
          Bytes{}};
}

// Nothing that was timed here had a say in `answer`.
bool KernelTable::Index::is_datasheets(const Question& asked, const KernelEstimate& answer) const {
  if (answer.time.time == from_datasheet(asked.key()).time.time) return true;
  if (asked.parts().empty()) return false;
  std::vector<KernelEstimate> parts;
  for (const Question& part : asked.parts()) parts.push_back(from_datasheet(part.key()));
  return answer.time.time == interpolation::sum(parts).time.time;
}

std::optional<KernelEstimate> KernelTable::Index::from_relatives(const Question& asked) const {
  for (const interpolation::Relative& relative : asked.relatives(device().backend))
    if (auto found = samples.within(relative.place, asked.key())) {
      found->time.time *= relative.slowdown;
      found->time.provenance = Provenance::estimated;
      found->time.relative_error = std::hypot(found->time.relative_error, relative.error);
      return found;
    }
  return std::nullopt;
}

// The same kernel in a type that runs alike takes as much more than it had to.
std::optional<KernelEstimate> KernelTable::Index::from_another_type(const Question& asked) const {
  for (const auto& [other, error] : asked.substitutes()) {
    auto found = samples.measured(other);
    if (!found) found = samples.within(other.place(), other.key());
    if (!found) found = from_relatives(other);
    if (!found) continue;
    found->time.time *= roofline_time(device(), asked.key()) / roofline_time(device(), other.key());
    found->time.provenance = Provenance::estimated;
    found->time.relative_error = std::hypot(found->time.relative_error, error);
    return found;
  }
  return std::nullopt;
}

// What the donors say that know the kernel best, each as far as it is sure: devices differ in how much of their peaks
// they reach, in both directions. They are wrong alike, so that several are no surer than the surest.
std::optional<KernelEstimate> KernelTable::Index::from_donors(const Question& asked) const {
  std::optional<KernelEstimate> best;
  Provenance known = Provenance::estimated;  // on the donor, by the best of them so far
  double weights = 0.0, logarithms = 0.0;
  for (const KernelTable& donor : donors()) {
    const bool guesses = known == Provenance::estimated;
    const std::optional<KernelEstimate> there = donor.answer(asked, guesses);
    if (!there || (there->time.provenance == Provenance::estimated && !guesses)) continue;
    if (donor.index_->is_datasheets(asked, *there)) continue;
    if (there->time.provenance != Provenance::estimated && guesses) {
      known = there->time.provenance;
      best.reset();
      weights = logarithms = 0.0;
    }
    const KernelEstimate one = interpolation::carried(*there, asked.key(), donor.device(), device());
    if (one.time.provenance != Provenance::estimated) return one;  // the same silicon
    const double weight = 1 / (one.time.relative_error * one.time.relative_error);
    weights += weight;
    logarithms += weight * std::log(one.time.time.value());
    if (!best || better(one, *best)) best = one;
  }
  if (best) best->time.time = Seconds{std::exp(logarithms / weights)};
  return best;
}

// Of all that can be said of a kernel that the samples do not answer, what is surest.
KernelEstimate KernelTable::Index::guess(const Question& asked, std::optional<KernelEstimate> own) const {
  KernelEstimate best = own ? *own : from_datasheet(asked.key());
  if (const auto found = from_relatives(asked)) keep_better(best, *found);
  if (const auto found = from_another_type(asked)) keep_better(best, *found);
  if (const auto found = from_donors(asked)) keep_better(best, *found);
  return best;
}

// One kernel: what was measured, else its family, else a guess.
std::optional<KernelEstimate> KernelTable::Index::single(const Question& asked, bool guesses) const {
  if (const auto found = samples.measured(asked)) return found;
  const auto own = samples.within(asked.place(), asked.key());
  if (own && own->time.provenance == Provenance::interpolated) return own;
  if (!guesses && !load_donors) return std::nullopt;
  return guess(asked, own);
}

// Parts that are guessed may still make a whole that is not.
std::optional<KernelEstimate> KernelTable::Index::estimate(const Question& asked, bool guesses) const {
  if (const auto found = samples.measured(asked)) return found;
  if (const auto found = samples.measured_in_parts(asked)) return found;
  if (asked.parts().empty()) return single(asked, guesses);
  const KernelEstimate whole = single(asked, true).value();
  std::vector<KernelEstimate> parts;
  for (const Question& part : asked.parts()) parts.push_back(single(part, true).value());
  const KernelEstimate in_parts = interpolation::sum(parts);
  return better(in_parts, whole) ? in_parts : whole;
}

KernelTable::KernelTable(Device device, std::vector<KernelSample> samples, Donors donors)
    : device_(std::move(device)),
      knows_workspace_(std::any_of(samples.begin(), samples.end(),
                                   [](const KernelSample& s) { return s.source.empty() || s.workspace.value() > 0; })),
      knows_alone_(std::ranges::any_of(samples, interpolation::faster_alone)),
      knows_cached_(std::ranges::any_of(samples, interpolation::faster_cached)),
      index_(std::make_shared<const Index>(device_, std::move(samples), std::move(donors))) {}

KernelTable::~KernelTable() = default;

std::size_t KernelTable::size() const { return index_->samples.size(); }

std::vector<FamilyCoverage> KernelTable::coverage() const { return index_->samples.coverage(); }

// On a GPU a view is the host's doing alone.
static bool runs_nothing(const Work& work, Backend backend) { return backend == Backend::cuda && work == Work{}; }

KernelEstimate KernelTable::estimate(const KernelKey& key) const {
  return answer(Question(cost_key(key)), true).value();
}

std::optional<KernelEstimate> KernelTable::answer(const Question& asked, bool guesses) const {
  const KernelKey& key = asked.key();
  if (runs_nothing(work_of(key, device_.backend), device_.backend))
    return KernelEstimate{{{}, 0.0, Provenance::measured}, {}, {}};
  const std::optional<KernelEstimate> found = index_->estimate(asked, guesses);
  if (!found) return std::nullopt;
  KernelEstimate result = *found;
  result.spread = index_->samples.spread(asked);
  if (!knows_alone_) result.alone = 1.0;
  if (!knows_cached_) result.cached = 1.0;
  const double ratio = elsewhere_ ? ideal_time(device_, key) / ideal_time(index_->device(), key) : 1.0;
  if (ratio == 1.0) return result;
  result.time.time *= ratio;
  result.time.relative_error = std::hypot(result.time.relative_error, error_per_octave * std::abs(std::log2(ratio)));
  result.time.provenance = std::max(result.time.provenance, Provenance::interpolated);
  return result;
}

KernelTable KernelTable::on(Device device) const {
  KernelTable other = *this;
  other.device_ = std::move(device);
  other.elsewhere_ = true;
  return other;
}

KernelTable KernelTable::as_timed() const {
  KernelTable other = *this;
  other.knows_alone_ = other.knows_cached_ = false;
  return other;
}

}  // namespace sibyl
