// What a stage's ranks exchange for its parameters, in which buckets, and what each of them holds of these.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "netmodel/collective/partition.h"
#include "oracle/closed/stage_form.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/precision.h"
#include "oracle/plan/regathered.h"

namespace sibyl::closed {

void StageFormula::prepare(const StageWork& work) {
  if (work_ == &work) return;
  work_ = &work;
  const Range range = work.range();
  messages_.clear();
  units_.clear();
  updated_.clear();
  elements_ = 0;
  gathers_ = copies_back_ = optimizer_ = buffers_ = 0;
  copied_back_ = 0;
  freed_ = casts_ = false;
  weights_ = work.weights();
  for (Summed& summed : summed_) summed.arrivals.clear();
  for (std::size_t u = table_.uses_from(range.end); u < table_.uses_from(range.begin); ++u) {
    const Use& use = table_.uses()[u];
    const Parameter& parameter = table_.parameters()[use.parameter];
    if (use.before > range.begin) continue;
    casts_ = casts_ || (has_half_weights(replicas_.strategy()) && size_in_bytes(parameter.dtype) == 2);
    Summed& summed = summed_[parameter.summed];
    const bool tied = work.tied(parameter);
    if (summed.parts == 1 || tied) add_whole(parameter);
    if (tied && !gradients_in_buckets(replicas_.strategy())) buffers_ += parameter.bytes();
    if (!summed.axes.empty() && !tied) summed.arrivals.emplace_back(use.parameter, use.step);
  }
  if (replicas_.strategy().zero == 3) find_stretches();
  for (const std::size_t index : order_)
    if (!summed_[index].arrivals.empty()) add_group(summed_[index]);
  // No group waits for another.
  const auto earlier = [](const Message& a, const Message& b) { return a.sent > b.sent; };
  if (!std::is_sorted(messages_.begin(), messages_.end(), earlier))
    std::stable_sort(messages_.begin(), messages_.end(), earlier);
  std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) {
    return a.steps.begin != b.steps.begin ? a.steps.begin < b.steps.begin : a.steps.end > b.steps.end;
  });
  by_end_.resize(units_.size());
  std::iota(by_end_.begin(), by_end_.end(), std::size_t{0});
  std::ranges::stable_sort(by_end_, {}, [&](std::size_t u) { return units_[u].steps.end; });
}

// Over the axes along which ranks hold parts of a parameter, or of what is shared out, and over stages: as add_norms()
// and join_clips() have them.
double StageFormula::sum_norm() {
  std::set<MeshAxis> axes;
  for (const Parameter& parameter : table_.parameters())
    for (const PartOf& cut : table_.program()[parameter.tensor].cuts) axes.insert(cut.axis);
  for (const Summed& summed : summed_)
    if (summed.parts > 1) axes.insert(summed.axes.begin(), summed.axes.end());
  if (replicas_.strategy().stages() > 1) axes.insert(MeshAxis::pipeline);
  if (axes.empty()) return 0.0;
  return replicas_.sent(Collective::all_reduce, size_in_bytes(DType::f32), {axes.begin(), axes.end()}).seconds;
}

void StageFormula::update(const Shape& shape) {
  if (together_)
    elements_ += element_count(shape);
  else
    updated_.push_back(shape);
}

// Updated by every rank that has it.
void StageFormula::add_whole(const Parameter& parameter) {
  const Strategy& strategy = replicas_.strategy();
  update(parameter.shape);
  optimizer_ += 4.0 * (optimizer_states(strategy.optimizer) + (has_half_weights(strategy) ? 1 : 0)) *
                static_cast<double>(parameter.elements);
  if (!work_->exchanged(parameter)) return;
  copies_back_ += parameter.copy;
  ++copied_back_;
}

bool StageFormula::on_cpu() const { return table_.kernels().cluster().kernels.device().backend == Backend::cpu; }

// As StageKernels has them.
double StageFormula::part_copy_seconds(std::int64_t elements, DType dtype) const {
  return on_cpu() ? table_.copy_seconds(elements, dtype) : 0.0;
}

// As make_buckets() and zero.h's make_units() have them.
void StageFormula::add_group(const Summed& summed) {
  const Strategy& strategy = replicas_.strategy();
  const auto& [axes, parts, arrivals] = summed;
  const Range range = work_->range();
  const bool sharded = parts > 1, gathered = sharded && strategy.zero == 3;
  const double states = 4.0 * (optimizer_states(strategy.optimizer) + (has_half_weights(strategy) ? 1 : 0));
  const bool overlapped = strategy.exchange == GradientExchange::overlapped;
  const bool in_buckets = gradients_in_buckets(strategy);
  double largest = 0;
  std::size_t sent = overlapped ? range.end : 0;
  for (const Bucket& bucket : gathered ? by_unit(arrivals) : in_turn(arrivals)) {
    const double size = size_in_bytes(bucket.dtype), bytes = static_cast<double>(bucket.elements) * size;
    messages_.push_back({replicas_.sent(sharded ? Collective::reduce_scatter : Collective::all_reduce, bytes, axes),
                         bucket.step, overlapped, sent = std::min(sent, bucket.step)});
    largest = std::max(largest, bytes);
    if ((!sharded || strategy.zero == 1) && !in_buckets) buffers_ += bytes;
    if (!sharded) continue;
    const std::int64_t part = collective::part(bucket.elements, parts, 0).size();
    const double own = static_cast<double>(part);
    update({part});
    optimizer_ += states * own;
    if (strategy.zero > 1) {
      buffers_ += own * size;
      copies_back_ += part_copy_seconds(part, bucket.dtype);
      copied_back_ += on_cpu() ? 1 : 0;
    }
    const Replicas::Sent& gather = replicas_.sent(Collective::all_gather, bytes, axes);
    if (!gathered) {
      gathers_ += gather.seconds;
      continue;
    }
    weights_ += own * size - bytes;
    const Segment steps =
        bucket.stretch < stretches_.size() ? stretches_[bucket.stretch] : Segment{range.begin, range.end};
    units_.push_back({steps, gather, bytes, part_copy_seconds(part, bucket.dtype)});
  }
  if (sharded && strategy.zero > 1) buffers_ += 2 * largest;
  freed_ = freed_ || (sharded && overlapped && !in_buckets);
}

std::vector<StageFormula::Bucket> StageFormula::in_turn(const Arrivals& arrivals) const {
  const Strategy& strategy = replicas_.strategy();
  const bool overlapped = strategy.exchange == GradientExchange::overlapped;
  std::vector<Bucket> buckets;
  struct OfType {
    DType dtype = DType::f32;
    std::size_t last = 0;  // of buckets
    Bytes cap;
  };
  std::vector<OfType> types;
  std::size_t closed = 0;
  for (const auto& [index, step] : arrivals) {
    const Parameter& parameter = table_.parameters()[index];
    auto type = std::ranges::find(types, parameter.dtype, &OfType::dtype);
    if (type == types.end() || buckets[type->last].closed != Bucket::open) {
      if (type == types.end()) {
        types.push_back({parameter.dtype, 0, strategy.first_bucket});
        type = types.end() - 1;
      }
      type->last = buckets.size();
      buckets.push_back({0, parameter.dtype, step});
    }
    Bucket& bucket = buckets[type->last];
    bucket.elements += parameter.elements;
    bucket.step = std::min(bucket.step, step);
    if (!overlapped || static_cast<double>(bucket.elements) * size_in_bytes(bucket.dtype) < type->cap.value()) continue;
    bucket.closed = closed++;
    type->cap = strategy.bucket;
  }
  if (types.size() > 1) std::ranges::stable_sort(buckets, {}, &Bucket::closed);
  return buckets;
}

// Blocks, and what lies between them up to a bucket's size.
void StageFormula::find_stretches() {
  stretches_.clear();
  const Range range = work_->range();
  const double cap = replicas_.strategy().bucket.value();
  const auto fill = [&](std::size_t begin, std::size_t end) {
    Segment open{begin, begin};
    double bytes = 0;
    while (open.end < end) {
      for (std::size_t u = table_.uses_from(open.end + 1); u < table_.uses_from(open.end); ++u)
        if (table_.uses()[u].before <= range.begin) bytes += table_.parameters()[table_.uses()[u].parameter].bytes();
      ++open.end;
      if (bytes < cap && open.end < end) continue;
      stretches_.push_back(open);
      open.begin = open.end;
      bytes = 0;
    }
  };
  std::size_t at = range.begin;
  for (const Segment& block : table_.blocks(range.begin, range.end)) {
    fill(at, block.begin);
    stretches_.push_back(block);
    at = block.end;
  }
  fill(at, range.end);
}

// The last stretch first, what several read last; of each element type one.
std::vector<StageFormula::Bucket> StageFormula::by_unit(const Arrivals& arrivals) {
  const auto stretch_of = [&](std::size_t step) {
    const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), step,
                                        [](std::size_t s, const Segment& stretch) { return s < stretch.end; });
    return static_cast<std::size_t>(after - stretches_.begin());
  };
  std::map<std::pair<std::size_t, DType>, Bucket> units;
  for (const auto& [index, step] : arrivals) {
    const Parameter& parameter = table_.parameters()[index];
    const std::size_t first = stretch_of(parameter.first_use);
    const std::size_t stretch = first == stretch_of(parameter.last_use) ? first : stretches_.size();
    const std::size_t order = stretch == stretches_.size() ? stretch : stretches_.size() - 1 - stretch;
    const auto [entry, added] = units.try_emplace({order, parameter.dtype}, Bucket{0, parameter.dtype, step, stretch});
    entry->second.elements += parameter.elements;
    entry->second.step = std::min(entry->second.step, step);
  }
  std::vector<Bucket> buckets;
  for (const auto& [key, bucket] : units) buckets.push_back(bucket);
  return buckets;
}

}  // namespace sibyl::closed
