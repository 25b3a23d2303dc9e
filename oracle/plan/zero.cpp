#include "oracle/plan/zero.h"

#include <algorithm>
#include <map>
#include <utility>

#include "netmodel/collective/partition.h"
#include "oracle/axes.h"
#include "oracle/plan/blocks.h"

namespace sibyl {
namespace {

// Blocks and what lies between them, the latter cut where its parameters reach a bucket.
std::vector<Segment> stretches(const Stage& stage, double cap) {
  std::vector<Segment> result;
  std::vector<bool> counted(stage.tensors.size(), false);
  const auto fill = [&](std::size_t begin, std::size_t end) {
    Segment open{begin, begin};
    double bytes = 0;
    for (; open.end < end;) {
      for (const LocalTensorId in : inputs_of(stage.steps[open.end]))
        if (in.valid() && stage[in].kind == TensorKind::parameter && !counted[in.index()]) {
          counted[in.index()] = true;
          bytes += static_cast<double>(element_count(stage[in].shape)) * size_in_bytes(stage[in].dtype);
        }
      ++open.end;
      if (bytes < cap && open.end < end) continue;
      result.push_back(open);
      open.begin = open.end;
      bytes = 0;
    }
  };
  std::size_t at = 0;
  for (const Segment& block : find_blocks(stage)) {
    fill(at, block.begin);
    result.push_back(block);
    at = block.end;
  }
  fill(at, stage.steps.size());
  return result;
}

// By tensor: the stretch whose steps alone read it; the number of stretches where several do.
std::vector<std::size_t> readers(const Stage& stage, const std::vector<Segment>& stretches) {
  const std::size_t unread = stretches.size() + 1;
  std::vector<std::size_t> reader(stage.tensors.size(), unread);
  for (std::size_t s = 0; s < stretches.size(); ++s)
    for (std::size_t i = stretches[s].begin; i < stretches[s].end; ++i)
      for (const LocalTensorId in : inputs_of(stage.steps[i]))
        if (in.valid() && reader[in.index()] != s)
          reader[in.index()] = reader[in.index()] == unread ? s : stretches.size();
  return reader;
}

// Buckets of one unit and element type each, in the order in which backward completes them: the last unit first, the
// shared one last.
void make_units(Stage& stage, const Strategy& strategy) {
  const std::vector<Segment> all = stretches(stage, strategy.bucket.value());
  const std::vector<std::size_t> reader = readers(stage, all);
  for (std::size_t s = 0; s < stage.gradients.size(); ++s) {
    GradientSync& sync = stage.gradients[s];
    if (!sync.sharded()) continue;
    // The shared unit has the greatest number and is to come last.
    std::map<std::pair<std::size_t, DType>, Bucket> by_stretch;
    for (const Bucket& bucket : sync.buckets)
      for (const LocalTensorId parameter : bucket.parameters) {
        const std::size_t r = reader[parameter.index()];
        const DType dtype = stage[parameter].dtype;
        Bucket& unit = by_stretch[{r == all.size() ? r : all.size() - 1 - r, dtype}];
        unit.dtype = dtype;
        unit.summed = bucket.summed;
        unit.parameters.push_back(parameter);
        unit.elements += element_count(stage[parameter].shape);
      }
    sync.buckets.clear();
    for (auto& [key, bucket] : by_stretch) {
      const std::size_t at = key.first;
      const Segment steps = at == all.size() ? Segment{0, stage.steps.size()} : all[all.size() - 1 - at];
      const int ahead_backward = strategy.gather_late ? 0 : 1;
      stage.units.push_back({steps.begin, steps.end, s, sync.buckets.size(), 1, ahead_backward});
      sync.buckets.push_back(std::move(bucket));
    }
  }
  std::stable_sort(stage.units.begin(), stage.units.end(), [](const ParameterUnit& a, const ParameterUnit& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
}

}  // namespace

namespace {

// Ranks with samples of their own hold the same parameters.
bool among_replicas(const GradientSync& sync) { return std::ranges::any_of(sync.axes, has_own_samples); }

}  // namespace

bool can_shard_more(const Graph& graph, const Strategy& strategy) {
  if (strategy.zero == 3 || strategy.data * strategy.samplers() == 1) return false;
  Strategy more = strategy;
  ++more.zero;
  return check_strategy(graph, more).has_value();
}

void shard_state(Stage& stage, const Strategy& strategy) {
  if (strategy.zero == 0) return;
  for (GradientSync& sync : stage.gradients) {
    if (!among_replicas(sync) || !sync.stages.empty()) continue;
    for (const MeshAxis axis : sync.axes) sync.parts *= strategy.degree(axis);
    if (strategy.zero_ranks > 0) {
      const int copies = strategy.data / strategy.zero_ranks;
      sync.parts /= copies;
      sync.copies = sync.sharded() ? copies : 1;
    }
    if (strategy.zero > 1) sync.buffers = 2;  // one is filled while the other is on its way
  }
  if (strategy.zero == 3) make_units(stage, strategy);
  for (GradientSync& sync : stage.gradients)
    if (sync.sharded()) sync.first_buckets = sync.buckets;  // who holds what must not change
  stage.reduces_each = strategy.reduces_each() && std::ranges::any_of(stage.gradients, &GradientSync::sharded);
}

Result<void> check_reduce_each(const Strategy& s) {
  if (!s.reduce_each) return {};
  const auto no = [](std::string what, std::string hint) {
    return fail(ErrorCode::infeasible, std::move(what), "--reduce-each", std::move(hint));
  };
  if (s.zero < 2) return no("only parts of gradients can be summed by parts", "--zero 2 or 3, or leave it out");
  if (s.stages() > 1) return no("a pipeline's stages reduce gradients after their last micro-batch", "leave it out");
  if (s.exchange != GradientExchange::overlapped)
    return no("gradients are reduced at the end", "leave out --no-overlap");
  if (s.compression.kind != Compression::Kind::none)
    return no("compressed gradients are reduced after the last micro-batch", "leave out one of the two");
  return {};
}

Result<void> check_reduced_each(const Stage& stage) {
  return check_reduced_each(stage.reduces_each, std::ranges::all_of(stage.gradients, &GradientSync::sharded));
}

Result<void> check_reduced_each(bool some_by_parts, bool all_by_parts) {
  if (!some_by_parts || all_by_parts) return {};
  return fail(ErrorCode::infeasible,
              "some gradients are summed over ranks that share no state, after the last micro-batch", "--reduce-each",
              "leave it out");
}

std::vector<bool> sharded_parameters(const Stage& stage) {
  std::vector<bool> result(stage.tensors.size(), false);
  for (const GradientSync& sync : stage.gradients)
    for (const Bucket& bucket : sync.buckets)
      for (const LocalTensorId parameter : bucket.parameters) result[parameter.index()] = sync.sharded();
  return result;
}

bool has_unit(const Stage& stage, std::size_t sync, std::size_t bucket) {
  return std::any_of(stage.units.begin(), stage.units.end(),
                     [&](const ParameterUnit& unit) { return unit.sync == sync && unit.bucket == bucket; });
}

bool stays_gathered(const Stage& stage, const ParameterUnit& unit) {
  const bool linked = !stage.receives.empty() || !stage.sends.empty();
  return !linked && unit.begin == 0 && unit.end == stage.steps.size();
}

std::vector<Piece> pieces(const Stage& stage, const Bucket& bucket, std::int64_t begin, std::int64_t end) {
  std::vector<Piece> result;
  std::int64_t at = 0;
  for (const LocalTensorId parameter : bucket.parameters) {
    const std::int64_t size = element_count(stage[parameter].shape);
    const std::int64_t from = std::max(begin, at), to = std::min(end, at + size);
    if (from < to) result.push_back({parameter, from - at, to - from, from});
    at += size;
  }
  return result;
}

BucketPart part_of(const Bucket& bucket, int parts, int index) {
  const collective::Range range = collective::part(bucket.elements, parts, index);
  return {range.begin, range.end};
}

}  // namespace sibyl
