#include "oracle/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "base/cancelled.h"
#include "base/quantity.h"
#include "calibration/cluster_change.h"
#include "oracle/cost/offload.h"
#include "oracle/predict.h"

namespace sibyl {
namespace {

bool less_is_better(std::string_view key) {
  return key.ends_with(".latency") || key.ends_with(".dispatch") || key.ends_with(".oversubscription") ||
         key.ends_with(".background");
}

// Of what lies outside devices rates are assumed where they are not known, which is of interest to who uses them.
bool unknown_and_unused(std::string_view key, const Cluster& cluster, const Strategy& strategy) {
  if (key == "host_link.bandwidth") return cluster.host_link.value() <= 0 && !uses_host_link(strategy, cluster);
  return key == "storage.bandwidth" && cluster.storage_read.value() <= 0 && !strategy.offloads_to(Tier::nvme);
}

// Of a link that nobody else uses there is no background to vary: what is left of it varies with its bandwidth.
std::vector<ClusterKey> parts_of(const Cluster& cluster, const Strategy& strategy) {
  std::vector<ClusterKey> parts = cluster_keys();
  std::erase_if(parts, [&](const ClusterKey& key) {
    return (key.share && share_of(cluster, key.name) == 0) || unknown_and_unused(key.name, cluster, strategy);
  });
  return parts;
}

// What a setting becomes, in words and in the strategy.
using Change = Result<std::pair<std::string, Strategy>>;

Failure not_halved(std::string_view what) {
  return fail(ErrorCode::infeasible, fmt::format("{} cannot be halved", what));
}

Change other_batch(const Strategy& strategy, bool twice) {
  Strategy other = strategy;
  if (!twice && other.global_batch % 2 != 0) return not_halved(fmt::format("a batch of {}", other.global_batch));
  other.global_batch = twice ? other.global_batch * 2 : other.global_batch / 2;
  return std::pair(fmt::format("batch={}", other.global_batch), std::move(other));
}

Change other_micro_batches(const Strategy& strategy, bool twice) {
  Strategy other = strategy;
  if (!twice && other.accumulation % 2 != 0)
    return not_halved(other.accumulation == 1 ? "one micro-batch"
                                              : fmt::format("{} micro-batches", other.accumulation));
  other.accumulation = twice ? other.accumulation * 2 : other.accumulation / 2;
  return std::pair(fmt::format("micro-batches={}", other.accumulation), std::move(other));
}

// As the command line reads --bucket: the first bucket is never larger than the others.
Change other_bucket(const Strategy& strategy, bool twice) {
  if (!strategy.has_buckets()) return fail(ErrorCode::infeasible, "gradients are exchanged in one message");
  Strategy other = strategy;
  other.bucket = strategy.bucket * (twice ? 2.0 : 0.5);
  other.first_bucket = std::min(Strategy{}.first_bucket, other.bucket);
  return std::pair(fmt::format("bucket={:.9g}MiB", other.bucket.value() / (1024 * 1024)), std::move(other));
}

std::string batch_now(const Strategy& strategy) {
  return fmt::format("{} sample{}", strategy.global_batch, strategy.global_batch == 1 ? "" : "s");
}
std::string micro_batches_now(const Strategy& strategy) { return fmt::format("{}", strategy.accumulation); }
std::string bucket_now(const Strategy& strategy) {
  return strategy.has_buckets() ? to_string(strategy.bucket) : std::string();
}

struct Setting {
  std::string_view name, title, says;
  Change (*change)(const Strategy& strategy, bool twice);
  std::string (*now)(const Strategy& strategy);
};
constexpr Setting settings[] = {
    {"batch", "batch", "samples of one step", other_batch, batch_now},
    {"micro-batches", "micro-batches", "parts of a replica's batch", other_micro_batches, micro_batches_now},
    {"bucket", "gradient bucket", "gradients exchanged in one message", other_bucket, bucket_now}};

class Study {
 public:
  Study(const Graph& graph, const Strategy& strategy, const Cluster& cluster, const SensitivityOptions& options)
      : graph_(graph),
        strategy_(strategy),
        cluster_(cluster),
        options_(options),
        parts_(parts_of(cluster, strategy)),
        evaluator_(graph, cluster) {}

  Result<Sensitivities> run() {
    Sensitivities all;
    SIBYL_TRY(all.now, evaluator_.evaluate(strategy_, options_.cancelled));
    per_sample_ = per_sample(all.now, strategy_);
    for (const ClusterKey& key : parts_) {
      all.inputs.push_back({std::string(key.name), std::string(key.title), std::string(key.says),
                            value_text(cluster_, key.name, compute_type(strategy_.precision)), true,
                            resource(key, true), resource(key, false)});
      if (!advance()) return interrupted();
    }
    for (const Setting& each : settings) {
      all.inputs.push_back({std::string(each.name), std::string(each.title), std::string(each.says),
                            each.now(strategy_), false, setting(each, true), setting(each, false)});
      if (!advance()) return interrupted();
    }
    std::ranges::stable_sort(all.inputs, std::greater{}, &Sensitivity::effect);
    return all;
  }

 private:
  static double per_sample(const Evaluation& evaluation, const Strategy& strategy) {
    return evaluation.step_time.value() / static_cast<double>(strategy.global_batch);
  }
  bool advance() {
    if (options_.progress) options_.progress(++done_, parts_.size() + std::size(settings));
    return !(options_.cancelled && options_.cancelled());
  }

  Variation variation(std::string setting, Result<Evaluation> evaluation, const Strategy& strategy) const {
    const double change = evaluation ? per_sample(*evaluation, strategy) / per_sample_ - 1 : 0;
    return {std::move(setting), std::move(evaluation), change};
  }

  Variation resource(const ClusterKey& key, bool twice) const {
    const bool larger = twice != less_is_better(key.name);
    const std::string change = fmt::format("{}={}", key.name, larger ? "2x" : "0.5x");
    const Result<Cluster> other = changed(cluster_, std::span(&change, 1), compute_type(strategy_.precision));
    if (!other) return {change, Failure(other.error()), 0};
    return variation(change, Evaluator(graph_, *other).evaluate(strategy_, options_.cancelled), strategy_);
  }

  Variation setting(const Setting& setting, bool twice) {
    const Change change = setting.change(strategy_, twice);
    if (!change) return {std::string(setting.name), Failure(change.error()), 0};
    return variation(change->first, evaluator_.evaluate(change->second, options_.cancelled), change->second);
  }

  const Graph& graph_;
  const Strategy& strategy_;
  const Cluster& cluster_;
  const SensitivityOptions& options_;
  std::vector<ClusterKey> parts_;
  Evaluator evaluator_;  // of the cluster as it is
  double per_sample_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

double Sensitivity::effect() const { return std::max(std::abs(twice.change), std::abs(half.change)); }

Result<Sensitivities> sensitivities(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                                    const SensitivityOptions& options) {
  return Study(graph, strategy, cluster, options).run();
}

}  // namespace sibyl
