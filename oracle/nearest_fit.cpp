#include "oracle/nearest_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "oracle/memory/least_state.h"
#include "oracle/plan/zero.h"
#include "oracle/predict.h"
#include "oracle/smaller_plans.h"

namespace sibyl {
namespace {

constexpr std::int64_t most_parts = 1 << 16;  // nobody trains with more, and the search must end
constexpr int most_larger_batches = 32;       // looked at beyond the one that halving finds
// What pricing plans may come to, a plan without a pipeline being 1: on the devices that were asked for, and on each
// larger number of them; and on all of these.
constexpr int most_work = 200, most_work_beyond = 300, most_work_in_all = 500;
constexpr int most_stages = 64;     // of a pipeline that was not asked for
constexpr int most_doublings = 12;  // of the devices

Strategy with_batch(Strategy strategy, std::int64_t micro_batch) {
  strategy.global_batch = micro_batch * strategy.accumulation * strategy.data;
  return strategy;
}

// "tensor=4" where there is one replica: on as many devices as before nothing is left for more.
std::string parallel_words(const Strategy& strategy) {
  const std::string text = parallel_text(strategy);
  constexpr std::string_view alone = "data=1,";
  return text.starts_with(alone) ? text.substr(alone.size()) : text;
}

// Each stage is looked at with every micro-batch that is on its way, and there are about as many as stages.
int work_of_pricing(const Strategy& strategy) {
  constexpr int of_one = 64;  // squares of stages
  return 1 + strategy.stages() * strategy.stages() / of_one;
}

bool same_split(const Strategy& a, const Strategy& b) {
  return a.data == b.data && a.tensor == b.tensor && a.pipeline == b.pipeline;
}

// The options by which `now` differs from what was `asked` for.
std::string changed_words(const Strategy& asked, const Strategy& now, const Cluster& cluster, bool whole_batch) {
  std::string words;
  const auto add = [&](const std::string& option) { words += (words.empty() ? "" : " ") + option; };
  const int devices = now.devices();
  if (devices > cluster.devices())
    add(fmt::format("--nodes {}", (devices + cluster.devices_per_node - 1) / cluster.devices_per_node));
  if (devices != asked.devices()) add(fmt::format("--devices {}", devices));
  if (!same_split(asked, now)) add("--parallel " + parallel_words(now));
  if (now.global_batch != asked.global_batch)
    add("--batch " + (whole_batch                       ? fmt::format("{}", now.global_batch)
                      : now.global_batch % devices == 0 ? fmt::format("{}/device", now.global_batch / devices)
                                                        : batch_text(now, now.global_batch)));
  if (now.accumulation != asked.accumulation) add(fmt::format("--micro-batches {}", now.accumulation));
  if (now.zero != asked.zero) add("--zero " + zero_text(now));
  if (now.reduce_each && !asked.reduce_each) add("--reduce-each");
  if (recompute_text(now) != recompute_text(asked)) add("--recompute " + recompute_text(now));
  return words;
}

class FitSearch {
 public:
  FitSearch(const Graph& graph, const Strategy& asked, const Cluster& cluster, const std::function<bool()>& cancelled,
            const NearestFitOptions& options)
      : graph_(graph),
        asked_(asked),
        cluster_(cluster),
        cancelled_(cancelled),
        options_(options),
        parameters_(static_cast<double>(graph.parameter_count())),
        here_(graph, cluster) {}

  NearestFit run() {
    result_.most_devices = asked_.devices();
    const Strategy one_sample = with_batch(asked_, asked_.samplers());
    if (try_one(here_, one_sample)) {
      find_micro_batches();
      find_batch();
      return std::move(result_);
    }
    if (const auto least = here_.evaluate(one_sample, cancelled_)) result_.least = least->memory.needed();
    int left = most_work;
    if (find_plan(here_, cluster_, asked_, left)) return std::move(result_);
    // Deep pipelines leave many of these untried.
    if (left <= 0 && find_that(here_, with_little_kept())) return std::move(result_);
    Strategy small = asked_;
    small.accumulation = 1;
    small = with_batch(small, small.samplers());
    left = most_work / 2;
    if (small.global_batch != asked_.global_batch &&
        (find_that(here_, small) || find_plan(here_, cluster_, small, left)))
      return std::move(result_);
    if (options_.split) find_devices();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool stopped() const { return cancelled_ && cancelled_(); }

  // What its fullest device must hold, if it can be planned and fits.
  std::optional<Bytes> try_one(Evaluator& evaluator, const Strategy& strategy) const {
    const Result<Evaluation> e = evaluator.evaluate(strategy, cancelled_);
    if (!e || !e->fits) return std::nullopt;
    return e->memory.needed();
  }

  void add(const Strategy& strategy, Bytes memory) {
    result_.settings.push_back({changed_words(asked_, strategy, cluster_, options_.whole_batch), strategy, memory});
  }

  // What was asked for with everything computed again, and micro-batches as small as they can be.
  [[nodiscard]] Strategy with_little_kept() const {
    Strategy strategy = asked_;
    strategy.recompute = Recompute::full;
    strategy.recompute_every = strategy.recompute_together = 1;
    strategy.recompute_kinds.clear();
    const std::int64_t of_a_rank = asked_.global_batch / asked_.data / asked_.samplers();
    strategy.accumulation = std::clamp<std::int64_t>(of_a_rank, 1, most_micro_batches);
    return strategy;
  }

  bool find_that(Evaluator& evaluator, const Strategy& strategy) {
    const std::optional<Bytes> memory = try_one(evaluator, strategy);
    if (memory) add(strategy, *memory);
    return memory.has_value();
  }

  void find_micro_batches() {
    const std::int64_t per_replica = asked_.global_batch / asked_.data;
    const std::int64_t most = std::min(per_replica, most_parts);
    for (std::int64_t parts = asked_.accumulation + 1; parts <= most && !stopped(); ++parts) {
      if (per_replica % (parts * asked_.samplers()) != 0) continue;
      Strategy split = asked_;
      split.accumulation = parts;
      if (find_that(here_, split)) result_.micro_batches = parts;
      if (result_.micro_batches) return;
      split.reduce_each = true;  // else several make gradients whole
      if (!asked_.reduce_each && check_reduce_each(split) && find_that(here_, split)) result_.micro_batches = parts;
      if (result_.micro_batches) return;
    }
  }

  // Halves [good, bad): what holds for `good`, and not for `bad`, where it holds last.
  template <class Holds>
  std::int64_t last_by_halving(std::int64_t good, std::int64_t bad, const Holds& holds) const {
    while (bad - good > 1 && !stopped()) {
      const std::int64_t middle = good + (bad - good) / 2;
      (holds(middle) ? good : bad) = middle;
    }
    return good;
  }

  // What tensors fill grows with the batch; what the process reserves for them need not: its allocator takes segments
  // of 2 MiB and more, gives free ones back once the device is full, and a block that is a little larger may no longer
  // leave a piece behind that nothing fits in. So one batch may not fit and a larger one may. Halving finds a batch
  // that fits; beyond it there may be others as far as tensors alone fill no more than the device has, and those are
  // tried, from the largest on: each of them, or, where they are many, some at equal distances.
  void find_batch() {
    const std::int64_t samples = asked_.samplers();  // that a micro-batch is a multiple of
    const std::int64_t asked = asked_.global_batch / asked_.data / asked_.accumulation / samples;
    const auto strategy = [&](std::int64_t n) { return with_batch(asked_, n * samples); };
    const auto fits = [&](std::int64_t n) { return try_one(here_, strategy(n)).has_value(); };
    const auto can_hold = [&](std::int64_t n) {
      const Result<Evaluation> e = here_.evaluate(strategy(n), cancelled_);
      return e && !(e->memory.total > e->memory_capacity);
    };
    std::int64_t good = last_by_halving(1, asked, fits);
    const std::int64_t most = can_hold(asked - 1) ? asked - 1 : last_by_halving(good, asked, can_hold);
    const std::int64_t apart = (most - good + most_larger_batches - 1) / most_larger_batches;
    for (std::int64_t n = most; n > good && !stopped(); n -= apart)
      if (fits(n)) good = n;
    if (stopped()) return;
    const std::optional<Bytes> memory = try_one(here_, strategy(good));
    if (!memory) return;
    result_.global_batch = strategy(good).global_batch;
    add(strategy(good), *memory);
  }

  // The first plan of the same step that fits, of as many as can be priced with the work that is left.
  bool find_plan(Evaluator& evaluator, const Cluster& cluster, const Strategy& like, int& left) {
    const Bytes capacity = cluster.kernels.device().memory;
    for (const Strategy& plan : smaller_plans(like, options_.split)) {
      if (left <= 0 || stopped()) return false;
      if (least_state(parameters_, plan) > capacity) continue;
      if (plan.pipeline > std::max(most_stages, asked_.pipeline)) continue;
      if (plan.tensor > std::max(cluster.devices_per_node, asked_.tensor)) continue;  // nobody would between nodes
      left -= work_of_pricing(plan);
      if (find_that(evaluator, plan)) return true;
    }
    return false;
  }

  bool find_on(const Cluster& cluster, const Strategy& more, int& left_in_all) {
    Evaluator evaluator(graph_, cluster);
    int left = std::min(most_work_beyond, left_in_all);
    left_in_all -= left;
    const bool has_room = !(least_state(parameters_, more) > cluster.kernels.device().memory);
    const bool found = (has_room && find_that(evaluator, more)) || find_plan(evaluator, cluster, more, left);
    left_in_all += std::max(0, left);
    return found;
  }

  void find_devices() {
    Strategy more = asked_;
    int left = most_work_in_all;
    for (int doubling = 0; doubling < most_doublings && left > 0 && !stopped(); ++doubling) {
      if (more.devices() > (1 << 20)) return;
      more.data *= 2;
      more.global_batch *= 2;
      result_.most_devices = more.devices();
      if (more.devices() <= cluster_.devices()) {
        if (find_on(cluster_, more, left)) return;
        continue;
      }
      const int per_node = cluster_.devices_per_node;
      const auto larger = resized(cluster_, (more.devices() + per_node - 1) / per_node, per_node);
      if (larger && find_on(*larger, more, left)) return;
    }
  }

  const Graph& graph_;
  const Strategy& asked_;
  const Cluster& cluster_;
  const std::function<bool()>& cancelled_;
  const NearestFitOptions options_;
  double parameters_;
  Evaluator here_;
  NearestFit result_;
};

}  // namespace

NearestFit nearest_fit(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                       const std::function<bool()>& cancelled, const NearestFitOptions& options) {
  return FitSearch(graph, strategy, cluster, cancelled, options).run();
}

std::string batch_text(const Strategy& strategy, std::int64_t global_batch) {
  if (strategy.devices_per_replica() == 1) return fmt::format("{}/device", global_batch / strategy.data);
  return fmt::format("{}", global_batch);
}

std::string to_text(const NearestFit& fit) {
  std::string text;
  const auto add = [&](const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; };
  if (fit.least) add(fmt::format("even single samples need {}", to_string(*fit.least)));
  for (const FittingSetting& s : fit.settings) {
    const bool of_batch = fit.global_batch && s.strategy.global_batch == *fit.global_batch;
    const bool parted = fit.micro_batches && s.strategy.accumulation == *fit.micro_batches;
    add(fmt::format("{} fits{}: {}", s.words,
                    of_batch ? ", the largest batch found to"
                    : parted ? " with the same batch"
                             : "",
                    to_string(s.memory)));
  }
  if (fit.settings.empty())
    add(fmt::format("no smaller batch, recomputing, ZeRO, pipeline or tensor ranks that were tried fit, on up to {} {}",
                    fit.most_devices, fit.most_devices == 1 ? "device" : "devices"));
  return text;
}

}  // namespace sibyl
