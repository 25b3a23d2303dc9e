#include "oracle/memory/state.h"

#include <algorithm>

#include "oracle/plan/compression.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/regathered.h"
#include "oracle/plan/zero.h"

namespace sibyl {

namespace {

using enum MemoryKind;

double bytes_of(const LocalTensor& tensor) {
  return static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype);
}

class StateOf {
 public:
  StateOf(const Stage& stage, const Strategy& strategy, Ledger& ledger)
      : stage_(stage), strategy_(strategy), ledger_(ledger) {}

  void take() {
    const std::vector<bool> sharded = sharded_parameters(stage_);
    for (std::size_t i = 0; i < stage_.tensors.size(); ++i) {
      const LocalTensor& tensor = stage_.tensors[i];
      const bool weight = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer;
      if (weight && !sharded[i]) ledger_.take(weights, bytes_of(tensor), owner(What::tensor, i));
    }
    for (const Update& update : stage_.updates)
      if (!sharded[update.parameter.index()])
        take_optimizer(element_count(stage_[update.parameter].shape), owner(What::state, update.parameter.index()));
    for (std::size_t s = 0; s < stage_.gradients.size(); ++s) {
      if (stage_.gradients[s].sharded())
        take_shards(s);
      else
        for (std::size_t b = 0; b < stage_.gradients[s].buckets.size(); ++b) take_bucket(stage_.gradients[s], b);
      take_compressed(stage_.gradients[s]);
    }
  }

 private:
  using What = MemoryOwner::What;
  [[nodiscard]] MemoryOwner owner(MemoryOwner::What what, std::size_t index) const { return {what, &stage_, index}; }

  void take_optimizer(std::int64_t elements, const MemoryOwner& whose) {
    if (stage_.state_tier != Tier::device) return;
    for (int i = 0; i < state_tensors(stage_); ++i) ledger_.take(optimizer, 4.0 * static_cast<double>(elements), whose);
  }

  void take_bucket(const GradientSync& sync, std::size_t index) {
    if (gradients_in_buckets(strategy_)) return;
    ledger_.take(communication, static_cast<double>(sync.buckets[index].bytes()), owner(What::bucket, index));
  }

  // Of sharded buckets: the parameters, flat, or the rank's part of them, if it is here; its part's state; gradients'
  // buffers and parts.
  void take_shards(std::size_t index) {
    const GradientSync& sync = stage_.gradients[index];
    std::int64_t largest = 0;
    for (std::size_t b = 0; b < sync.buckets.size(); ++b) {
      const Bucket& bucket = sync.buckets[b];
      const BucketPart own = part_of(bucket, sync.parts, 0);
      const double part = static_cast<double>(own.size()) * size_in_bytes(bucket.dtype);
      const auto whole = static_cast<double>(bucket.parameter_bytes());
      const MemoryOwner shard = owner(What::shard, b);
      if (!has_unit(stage_, index, b))
        ledger_.take(weights, whole, shard);
      else if (stage_.parameter_tier == Tier::device)
        ledger_.take(weights, part, shard);
      if (takes_norms(strategy_.optimizer))
        for (const Piece& piece : pieces(stage_, bucket, own.begin, own.end)) take_optimizer(piece.elements, shard);
      else
        take_optimizer(own.size(), shard);
      largest = std::max(largest, bucket.bytes());
      if (sync.buffers > 0)
        ledger_.take(gradients, static_cast<double>(own.size()) * size_in_bytes(bucket.summed), shard);
      else
        take_bucket(sync, b);
    }
    for (int i = 0; i < std::min<int>(sync.buffers, static_cast<int>(sync.buckets.size())); ++i)
      ledger_.take(communication, static_cast<double>(largest), owner(What::buffer, static_cast<std::size_t>(i)));
  }

  // Buckets that take turns in buffers do so in compressed ones, too.
  void take_compressed(const GradientSync& sync) {
    CompressionMemory largest;
    const auto take = [&](std::int64_t bytes, MemoryOwner::What what, std::size_t index) {
      if (bytes > 0) ledger_.take(communication, static_cast<double>(bytes), owner(what, index));
    };
    for (std::size_t b = 0; b < sync.buckets.size(); ++b) {
      const CompressionMemory own = compression_memory(sync, sync.buckets[b]);
      take(own.residual, What::residual, b);
      if (sync.buffers == 0) take(own.sent, What::compressed, b);
      largest.sent = std::max(largest.sent, own.sent);
      largest.scratch = std::max(largest.scratch, own.scratch);
    }
    for (std::size_t i = 0; i < std::min(static_cast<std::size_t>(sync.buffers), sync.buckets.size()); ++i)
      take(largest.sent, What::compressed, i);
    take(largest.scratch, What::compressing, 0);
  }

  const Stage& stage_;
  const Strategy& strategy_;
  Ledger& ledger_;
};

}  // namespace

void take_state(const Stage& stage, const Strategy& strategy, Ledger& ledger) {
  StateOf(stage, strategy, ledger).take();
}

std::vector<double> direction_bytes(const Stage& stage) {
  const std::vector<bool> sharded = sharded_parameters(stage);
  std::vector<double> bytes;
  for (const Update& update : stage.updates)
    if (!sharded[update.parameter.index()]) bytes.push_back(bytes_of(stage[update.parameter]));
  for (const GradientSync& sync : stage.gradients)
    for (const Bucket& bucket : sync.buckets) {
      if (!sync.sharded()) continue;
      const BucketPart own = part_of(bucket, sync.parts, 0);
      for (const Piece& piece : pieces(stage, bucket, own.begin, own.end))
        bytes.push_back(static_cast<double>(piece.elements) * size_in_bytes(bucket.dtype));
    }
  return bytes;
}

}  // namespace sibyl
