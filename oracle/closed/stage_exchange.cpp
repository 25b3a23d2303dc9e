// What a stage's ranks exchange for its parameters, in which buckets, and what each of them holds of these.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "netmodel/collective/partition.h"
#include "oracle/closed/stage_form.h"
#include "oracle/plan/precision.h"
#include "oracle/plan/regathered.h"

namespace sibyl::closed {

void StageFormula::prepare(const StageWork& work) {
  if (work_ == &work) return;
  work_ = &work;
  const Range range = work.range();
  messages_.clear();
  units_.clear();
  updates_.clear();
  compressed_.clear();
  copies_back_ = part_sums_ = {};
  gathers_ = buffers_ = compression_alone_ = unsent_ = 0;
  freed_ = sums_norms_ = false;
  weights_ = work.weights();
  std::set<MeshAxis> parting;  // of the norms of parameters
  std::size_t parameters = 0;
  for (Summed& summed : summed_) summed.arrivals.clear();
  for (std::size_t u = table_.uses_from(range.end); u < table_.uses_from(range.begin); ++u) {
    const Use& use = table_.uses()[u];
    const Parameter& parameter = table_.parameters()[use.parameter];
    if (use.before > range.begin) continue;
    if (has_half_weights(replicas_.strategy()) && size_in_bytes(parameter.dtype) == 2) updates_.cast_to_masters();
    Summed& summed = summed_[parameter.summed];
    const bool tied = work.tied(parameter);
    if (summed.parts == 1 || tied) add_whole(use);
    if (tied && !gradients_in_buckets(replicas_.strategy())) buffers_ += parameter.gradient_bytes();
    if (!summed.axes.empty() && !tied) summed.arrivals.emplace_back(use.parameter, use.step);
    if (summed.axes.empty() && !tied) unsent_ += parameter.gradient_bytes();
    if (!updates_.has_norms()) continue;
    ++parameters;
    for (const PartOf& cut : table_.program()[parameter.tensor].cuts) parting.insert(cut.axis);
    if (summed.parts > 1 && !tied) parting.insert(summed.axes.begin(), summed.axes.end());
  }
  if (!parting.empty()) {
    sums_norms_ = true;
    const double bytes = 2.0 * static_cast<double>(parameters) * size_in_bytes(DType::f32);
    gathers_ += replicas_.sent(Collective::all_reduce, bytes, {parting.begin(), parting.end()}).seconds;
  }
  find_outside();
  if (replicas_.strategy().zero == 3) find_stretches();
  for (const std::size_t index : order_)
    if (!summed_[index].arrivals.empty()) add_group(summed_[index]);
  // No group waits for another.
  const auto earlier = [](const Message& a, const Message& b) { return a.sent > b.sent; };
  if (!std::is_sorted(messages_.begin(), messages_.end(), earlier))
    std::stable_sort(messages_.begin(), messages_.end(), earlier);
  std::ranges::stable_sort(compressed_, std::ranges::greater{}, &Compressed::step);
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

// Where each segment's copies take the stream.
void StageFormula::find_outside() {
  outside_.clear();
  const Tier tier = replicas_.strategy().activation_tier;
  using Way = OffloadCopy::Way;
  for (const StageWork::Outside& kept : work_->outside())
    outside_.push_back({kept.segment, copies_.of(kept.bytes, tier, Way::out).estimate.time.value(),
                        copies_.of(kept.bytes, tier, Way::in).estimate.time.value()});
}

// As the program has its parameters, or where it is cut a stage: as its steps first read them.
StageUpdates::Order StageFormula::order_of(const Use& use) const {
  const LocalTensorId id = table_.parameters()[use.parameter].tensor;
  if (replicas_.strategy().stages() == 1) return {id.index(), 0};
  const auto read = sibyl::inputs_of(table_.program().steps[use.step]);
  return {use.step, static_cast<std::size_t>(std::ranges::find(read, id) - read.begin())};
}

// Updated by every rank that has it.
void StageFormula::add_whole(const Use& use) {
  const Parameter& parameter = table_.parameters()[use.parameter];
  updates_.add_whole(table_.program()[parameter.tensor], order_of(use));
  if (!work_->exchanged(parameter) || work_->asked().in_buckets) return;
  copies_back_.add({parameter.copy, bare_});
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
  const bool overlapped = strategy.exchange == GradientExchange::overlapped;
  const bool in_buckets = gradients_in_buckets(strategy);
  double largest = 0;
  CompressionMemory compressed;  // the largest
  std::size_t count = 0;
  std::size_t sent = overlapped ? range.end : 0;
  for (const Bucket& bucket : gathered ? by_unit(arrivals) : in_turn(arrivals)) {
    const double size = size_in_bytes(bucket.dtype), bytes = static_cast<double>(bucket.elements) * size;
    const double gradient_size = size_in_bytes(bucket.summed);
    const double gradient_bytes = static_cast<double>(bucket.elements) * gradient_size;
    const Replicas::Summed& sum = replicas_.summed(bucket.elements, bucket.summed, axes);
    messages_.push_back({sum.sent, bucket.step, overlapped, sent = std::min(sent, bucket.step)});
    if (sum.compress.launches > 0) compressed_.push_back({bucket.step, sum.compress});
    copies_back_.add(sum.decompress);
    compression_alone_ += sum.alone;
    compressed.sent = std::max(compressed.sent, sum.memory.sent);
    compressed.scratch = std::max(compressed.scratch, sum.memory.scratch);
    buffers_ += static_cast<double>(sum.memory.residual);
    if (!sharded || strategy.zero == 1) buffers_ += static_cast<double>(sum.memory.sent);
    largest = std::max(largest, gradient_bytes);
    ++count;
    if ((!sharded || strategy.zero == 1) && !in_buckets) buffers_ += gradient_bytes;
    if (!sharded) continue;
    const std::int64_t part = collective::part(bucket.elements, parts, 0).size();
    const double own = static_cast<double>(part);
    const bool outside = gathered && strategy.parameter_tier != Tier::device;
    const std::int64_t part_bytes = part * static_cast<std::int64_t>(size);
    updates_.add_part(part, bucket.dtype, bucket.of_each, outside ? part_bytes : 0);
    if (work_->asked().each) part_sums_.add({table_.sum_seconds(part, bucket.summed), bare_});
    if (strategy.zero > 1) {
      buffers_ += own * gradient_size;
      const bool copied = on_cpu() && sum.decompress.launches == 0;  // else a cast puts it in its place
      if (copied) copies_back_.add({part_copy_seconds(part, bucket.summed), bare_});
    }
    const Replicas::Sent& gather = replicas_.gathered(bytes, axes);
    if (!gathered) {
      gathers_ += gather.seconds;
      continue;
    }
    weights_ += (outside ? 0.0 : own * size) - bytes;
    const Segment steps =
        bucket.stretch < stretches_.size() ? stretches_[bucket.stretch] : Segment{range.begin, range.end};
    Unit unit{steps, {gather, part_copy_seconds(part, bucket.dtype)}, bytes, own * size};
    if (outside)
      unit.gather.brought = copies_.of(part_bytes, strategy.parameter_tier, OffloadCopy::Way::in).estimate.time.value();
    units_.push_back(unit);
  }
  if (sharded && strategy.zero > 1)
    buffers_ += std::min(2.0, static_cast<double>(count)) * (largest + static_cast<double>(compressed.sent));
  buffers_ += static_cast<double>(compressed.scratch);
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
      buckets.push_back({0, parameter.dtype, parameter.gradient_type, step});
    }
    Bucket& bucket = buckets[type->last];
    bucket.elements += parameter.elements;
    if (updates_.has_norms()) bucket.of_each.push_back(parameter.elements);
    bucket.step = std::min(bucket.step, step);
    if (!overlapped || static_cast<double>(bucket.elements) * size_in_bytes(bucket.summed) < type->cap.value())
      continue;
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
    const auto [entry, added] =
        units.try_emplace({order, parameter.dtype}, Bucket{0, parameter.dtype, parameter.gradient_type, step, stretch});
    entry->second.elements += parameter.elements;
    if (updates_.has_norms()) entry->second.of_each.push_back(parameter.elements);
    entry->second.step = std::min(entry->second.step, step);
  }
  std::vector<Bucket> buckets;
  for (const auto& [key, bucket] : units) buckets.push_back(bucket);
  return buckets;
}

}  // namespace sibyl::closed
