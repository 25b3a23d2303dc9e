#include "oracle/plan/pipeline/kept_sums.h"

#include <algorithm>
#include <span>

#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/recompute.h"
#include "oracle/plan/regathered.h"

namespace sibyl {
namespace {

using Wanted = BackwardMemory::Wanted;

// By step, what its backward wants kept, and in segments that run again what is made again for it.
class KeptByStep {
 public:
  KeptByStep(const BackwardMemory& backward, const Strategy& strategy, const std::vector<std::size_t>& like)
      : backward_(backward), program_(backward.program()), segment_inputs_(program_.steps.size()) {
    segments_ = recomputed_segments(program_, strategy, like);
    inside_.assign(program_.steps.size(), false);
    for (const Segment& segment : segments_) {
      std::fill(inside_.begin() + static_cast<std::ptrdiff_t>(segment.begin),
                inside_.begin() + static_cast<std::ptrdiff_t>(segment.end), true);
      for (const LocalTensorId in : inputs_of(program_, segment)) {
        const LocalTensorId storage = backward.storage(in);
        const TensorKind kind = program_[storage].kind;
        if (kind == TensorKind::activation || kind == TensorKind::input)
          segment_inputs_[segment.begin].push_back({storage.index(), backward.bytes_of(storage)});
      }
    }
    outside_ = strategy.activation_tier != Tier::device;
  }

  [[nodiscard]] std::span<const Wanted> kept(std::size_t step) const {
    if (!inside_[step]) return backward_.wanted(step);
    return outside_ ? std::span<const Wanted>{} : segment_inputs_[step];
  }

  // By step, while its backward runs: of its segment what was made again by then. What lies outside is here for two
  // segments at a time.
  [[nodiscard]] std::vector<double> again() const {
    std::vector<double> result(program_.steps.size(), 0.0);
    std::vector<bool> known(program_.tensors.size(), false);
    for (std::size_t i = 0; i < program_.steps.size(); ++i)
      for (const Wanted& wanted : kept(i))
        if (wanted.storage != BackwardMemory::none) known[wanted.storage] = true;
    for (const Segment& segment : segments_) {
      double bytes = 0;
      if (outside_)
        for (const Wanted& in : segment_inputs_[segment.begin]) bytes += 2 * in.bytes;
      for (std::size_t i = segment.begin; i < segment.end; ++i) {
        for (const Wanted& wanted : backward_.wanted(i)) {
          if (wanted.storage != BackwardMemory::none) {
            if (known[wanted.storage]) continue;
            known[wanted.storage] = true;
          }
          bytes += wanted.bytes;
        }
        result[i] = bytes;
      }
    }
    return result;
  }

 private:
  const BackwardMemory& backward_;
  const Stage& program_;
  std::vector<Segment> segments_;
  std::vector<std::vector<Wanted>> segment_inputs_;  // by step: of the segment that begins there
  std::vector<bool> inside_;
  bool outside_ = false;
};

// When a storage is made, wanted and read last; steps.
struct Life {
  std::size_t made = BackwardMemory::none, first_wanted = BackwardMemory::none, last_read = 0;
  double bytes = 0;
  std::vector<std::size_t> wanted_at = {};  // places, of what each stage makes for itself
};

// By tensor that has a storage. What no step makes, and what is made again by whoever wants it, is not `made`.
std::vector<Life> lives_of(const BackwardMemory& backward, const KeptByStep& by_step, const Places& places) {
  const Stage& program = backward.program();
  const std::vector<bool> repeatable = repeatable_steps(program);
  std::vector<Life> lives(program.tensors.size());
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    for (const LocalTensorId in : inputs_of(program.steps[i]))
      if (in.valid()) lives[backward.storage(in).index()].last_read = i;
    for (const LocalTensorId out : outputs_of(program.steps[i])) {
      if (!out.valid()) continue;
      Life& life = lives[backward.storage(out).index()];
      if (!repeatable[i] && life.made == BackwardMemory::none && backward.storage(out) == out) life.made = i;
      life.last_read = std::max(life.last_read, i);
    }
    for (const Wanted& wanted : by_step.kept(i)) {
      if (wanted.storage == BackwardMemory::none) continue;
      Life& life = lives[wanted.storage];
      life.bytes = wanted.bytes;
      if (life.first_wanted == BackwardMemory::none) life.first_wanted = i;
      const std::size_t place = places.of_step(i);
      if (life.made == BackwardMemory::none && (life.wanted_at.empty() || life.wanted_at.back() != place))
        life.wanted_at.push_back(place);
    }
  }
  return lives;
}

// Gradients of a step's parameters, before they are added to those of earlier micro-batches.
double added_to_gradients(const BackwardMemory& backward, std::size_t step) {
  double bytes = 0;
  each_gradient(backward.program(), backward.program().steps[step], [&](LocalTensorId id) {
    if (backward.program()[id].kind == TensorKind::parameter) bytes += backward.bytes_of(id);
  });
  return bytes;
}

}  // namespace

KeptSums::KeptSums(const BackwardMemory& backward, const Places& places, const Strategy& strategy,
                   const std::vector<std::size_t>& like) {
  const Stage& program = backward.program();
  const std::size_t steps = program.steps.size();
  const KeptByStep by_step(backward, strategy, like);
  const bool frees = frees_sent(strategy);
  std::vector<double> made(steps, 0.0), dead(places.count(), 0.0), later(places.count(), 0.0), pass = dead;
  const auto own = [&](std::size_t step, double bytes) {
    made[step] += bytes;
    dead[places.of_step(step)] += bytes;
  };
  for (const Life& life : lives_of(backward, by_step, places)) {
    if (life.first_wanted == BackwardMemory::none) continue;
    if (life.made == BackwardMemory::none) {
      if (life.wanted_at.size() == 1)
        own(life.first_wanted, life.bytes);
      else
        shared_.emplace_back(life.wanted_at, places.count(), life.bytes);
      continue;
    }
    made[frees ? life.first_wanted : life.made] += life.bytes;
    dead[places.of_step(std::max(life.last_read, life.first_wanted))] += life.bytes;
  }
  std::vector<bool> put_off(program.tensors.size(), false);
  for (std::size_t i = 0; i < steps; ++i) {
    for (const Wanted& wanted : by_step.kept(i))
      if (wanted.storage == BackwardMemory::none) own(i, wanted.bytes);
    if (backward.later()[i] == 0) continue;
    double& here = later[places.of_step(i)];
    here += backward.later()[i];
    for (const Wanted& wanted : backward.wanted(i)) {
      if (wanted.storage != BackwardMemory::none) {
        if (put_off[wanted.storage]) continue;
        put_off[wanted.storage] = true;
      }
      here += wanted.bytes;
    }
  }
  const std::vector<double> again = by_step.again();
  std::vector<double> made_at(places.count(), 0.0);
  double by_now = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t place = places.of_step(i);
    made_at[place] += made[i];
    by_now += made[i];
    pass[place] = std::max(pass[place], by_now + again[i] + backward.working()[i] + added_to_gradients(backward, i));
  }
  made_ = sums_before(made_at);
  dead_ = sums_before(dead);
  later_ = sums_before(later);
  pass_ = RangeMaximum(std::move(pass));
}

}  // namespace sibyl
