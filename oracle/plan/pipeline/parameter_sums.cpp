#include "oracle/plan/pipeline/parameter_sums.h"

#include <algorithm>
#include <limits>
#include <map>

#include "oracle/plan/blocks.h"
#include "oracle/plan/buckets.h"
#include "oracle/plan/compression.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/precision.h"
#include "oracle/plan/regathered.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

bool is_trained(const LocalTensor& tensor) { return tensor.kind == TensorKind::parameter && tensor.requires_gradient; }

// By tensor, the parameters and buffers that its value is made of alone, by steps that each stage makes again.
std::vector<std::vector<LocalTensorId>> made_of(const Stage& whole, const std::vector<bool>& repeatable) {
  std::vector<std::vector<LocalTensorId>> roots(whole.tensors.size());
  for (std::size_t t = 0; t < roots.size(); ++t)
    if (whole.tensors[t].kind == TensorKind::parameter || whole.tensors[t].kind == TensorKind::buffer)
      roots[t] = {LocalTensorId{t}};
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    if (!repeatable[i]) continue;
    std::vector<LocalTensorId> all;
    for (const LocalTensorId in : inputs_of(whole.steps[i]))
      if (in.valid()) all.insert(all.end(), roots[in.index()].begin(), roots[in.index()].end());
    for (const LocalTensorId out : outputs_of(whole.steps[i]))
      if (out.valid()) roots[out.index()] = all;
  }
  return roots;
}

// How the gradient of such a parameter is exchanged, as a plan has it; none where it is not.
std::vector<GradientSync> exchange_of(const LocalTensor& parameter, Strategy strategy, bool tied) {
  Stage stage;
  stage.tensors = {parameter, parameter};
  stage.tensors[1].kind = TensorKind::activation;
  stage.steps = {Compute{{}, Unary{}, {LocalTensorId{0}}, {LocalTensorId{1}}, parameter.dtype, 1}};
  std::map<LocalTensorId, Tie> ties;
  if (tied) ties[LocalTensorId{0}] = {{0, 1}, 0};
  stage.gradients = gradient_syncs(stage, strategy, ties);
  strategy.zero = std::min(strategy.zero, 2);  // what units there are does not say who shares
  shard_state(stage, strategy);
  compress_gradients(stage, strategy);
  return stage.gradients;
}

// For each byte of a parameter: what is there, and buffers of the size of a bucket.
struct ForAByte {
  double held = 1, buffers = 0;
  bool sharded = false;
};

ForAByte for_a_byte(const LocalTensor& parameter, const Strategy& strategy, bool tied) {
  ForAByte result;
  if (!is_trained(parameter)) return result;
  const int width = static_cast<int>(size_in_bytes(parameter.dtype));
  const double states = 4.0 * (optimizer_states(strategy.optimizer) + (has_half_weights(strategy) ? 1 : 0)) / width;
  const double state = strategy.optimizer_tier == Tier::device ? states : 0.0;
  const std::vector<GradientSync> syncs = exchange_of(parameter, strategy, tied);
  const double gradient = static_cast<double>(size_in_bytes(parameter.gradient_type())) / width;
  result.held += gradient;
  if (syncs.empty()) {
    result.held += state;
    return result;
  }
  const GradientSync& sync = syncs.front();
  const double share = 1.0 / sync.parts;
  result.sharded = sync.sharded();
  if (result.sharded && strategy.zero == 3) result.held += share - 1;
  result.held += state * share;
  if (!gradients_in_buckets(strategy)) result.held += gradient * (sync.buffers > 0 && result.sharded ? share : 1.0);
  Bucket bucket;
  bucket.elements = 1 << 20;
  bucket.dtype = parameter.dtype;
  bucket.summed = parameter.gradient_type();
  const auto bytes = static_cast<double>(bucket.parameter_bytes());
  const CompressionMemory compressed = compression_memory(sync, bucket);
  const double sent = static_cast<double>(compressed.sent) / bytes;
  result.held += static_cast<double>(compressed.residual) / bytes + (sync.buffers == 0 ? sent : 0.0);
  result.buffers = sync.buffers * (gradient + sent) + static_cast<double>(compressed.scratch) / bytes;
  return result;
}

bool like_each_other(const LocalTensor& a, const LocalTensor& b) {
  return a.dtype == b.dtype && is_trained(a) == is_trained(b) && a.summed_over == b.summed_over;
}

}  // namespace

ParameterSums::ParameterSums(const Stage& whole, const Places& places)
    : whole_(whole), places_(places), largest_(places.count(), 0.0) {
  const std::vector<bool> repeatable = repeatable_steps(whole);
  const std::vector<std::vector<LocalTensorId>> roots = made_of(whole, repeatable);
  std::vector<std::vector<std::size_t>> used(whole.tensors.size());  // places
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    if (repeatable[i]) continue;
    for (const LocalTensorId in : inputs_of(whole.steps[i])) {
      if (!in.valid()) continue;
      for (const LocalTensorId root : roots[in.index()]) {
        std::vector<std::size_t>& places_of_root = used[root.index()];
        if (places_of_root.empty() || places_of_root.back() != places.of_step(i))
          places_of_root.push_back(places.of_step(i));
      }
    }
  }
  for (std::size_t t = 0; t < used.size(); ++t)
    if (!used[t].empty()) add(whole.tensors[t], used[t], places.count());
}

void ParameterSums::add(const LocalTensor& tensor, const std::vector<std::size_t>& places, std::size_t count) {
  const double bytes = tensor_bytes(tensor).value();
  if (places.size() > 1) {
    shared_.push_back({tensor, {places, count, bytes}});
    return;
  }
  auto kind = std::ranges::find_if(kinds_, [&](const Kind& known) { return like_each_other(known.first, tensor); });
  if (kind == kinds_.end()) {
    kinds_.push_back({tensor, std::vector<double>(count, 0.0)});
    kind = kinds_.end() - 1;
  }
  kind->bytes[places.front()] += bytes;
  if (is_trained(tensor)) largest_[places.front()] = std::max(largest_[places.front()], bytes);
}

HeldState ParameterSums::sums(const Strategy& strategy, Buffers& buffers) const {
  HeldState held;
  std::vector<double> all(places_.count(), 0.0), exchanged = all;
  for (const Kind& kind : kinds_) {
    const ForAByte each = for_a_byte(kind.first, strategy, false);
    buffers.for_a_byte = std::max(buffers.for_a_byte, each.buffers);
    buffers.sharded = buffers.sharded || each.sharded;
    for (std::size_t p = 0; p < all.size(); ++p) {
      all[p] += kind.bytes[p] * each.held;
      if (each.buffers > 0 || each.sharded) exchanged[p] += kind.bytes[p];
    }
  }
  for (const Shared& shared : shared_) {
    held.shared.push_back(shared.wanted);
    held.shared.back().bytes *= for_a_byte(shared.tensor, strategy, is_trained(shared.tensor)).held;
  }
  held.sums = sums_before(all);
  held.parameters = sums_before(exchanged);
  return held;
}

HeldState ParameterSums::without_buckets(const Strategy& strategy) const {
  Buffers none;
  return sums(strategy, none);
}

HeldState ParameterSums::held(const Strategy& strategy, const std::vector<std::size_t>& like) {
  Buffers buffers;
  HeldState held = sums(strategy, buffers);
  held.buffers = buffers.for_a_byte;
  if (buffers.sharded && strategy.zero == 3) {
    add_units(held, strategy, like);
  } else if (held.buffers > 0) {
    const bool overlapped = strategy.exchange == GradientExchange::overlapped;
    held.smallest_bucket = overlapped ? strategy.bucket.value() : std::numeric_limits<double>::infinity();
    held.buckets = RangeMaximum(largest_);
  }
  return held;
}

// Of units: blocks, and between them as many places as have a bucket's size of parameters (plan/zero.h). Backward
// gathers the one before beside each.
void ParameterSums::add_units(HeldState& held, const Strategy& strategy, const std::vector<std::size_t>& like) {
  std::vector<double> size(places_.count(), 0.0), gathered = size;
  double before = 0;
  const auto unit = [&](std::size_t begin, std::size_t end) {
    const double bytes = held.parameters[end] - held.parameters[begin];
    for (std::size_t p = begin; p < end; ++p) {
      size[p] = bytes;
      gathered[p] = bytes + before;
    }
    if (bytes > 0) before = bytes;
  };
  std::size_t at = 0;
  const auto fill = [&](std::size_t end) {
    for (std::size_t p = at; p < end; ++p)
      if (held.parameters[p + 1] - held.parameters[at] >= strategy.bucket.value() || p + 1 == end) {
        unit(at, p + 1);
        at = p + 1;
      }
  };
  if (!blocks_) blocks_ = find_blocks(whole_, like);
  for (const Segment& block : *blocks_) {
    const std::size_t begin = places_.of_step(block.begin), end = places_.of_step(block.end - 1) + 1;
    if (begin < at) continue;
    fill(begin);
    unit(begin, end);
    at = end;
  }
  fill(places_.count());
  held.buckets = RangeMaximum(std::move(size));
  held.gathered = RangeMaximum(std::move(gathered));
}

}  // namespace sibyl
