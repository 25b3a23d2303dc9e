// What a rank sends in a step, counted as the communicator counts it.
#include <algorithm>
#include <cmath>

#include "oracle/plan/compression.h"
#include "oracle/plan/message_bytes.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/recompute.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

// Each rank gives its last rows to the next as what comes before its own, and its first ones to the one before.
std::int64_t halo_bytes(const Transfer& transfer, std::int64_t row_bytes, int size, int coordinate) {
  const std::int64_t forwards = coordinate + 1 < size ? 1 : 0, backwards = coordinate > 0 ? 1 : 0;
  // A halo's gradient goes home: the other way.
  const bool home = transfer.motion == Motion::halo_sum;
  const std::int64_t to_next = home ? transfer.halo.after : transfer.halo.before;
  const std::int64_t to_last = home ? transfer.halo.before : transfer.halo.after;
  return row_bytes * (forwards * to_next + backwards * to_last);
}

std::int64_t transfer_bytes(const Transfer& transfer, const LocalTensor& from, const Shape& to, Algorithm algorithm,
                            int size, int coordinate) {
  const auto width = static_cast<std::int64_t>(size_in_bytes(transfer.type.value_or(from.dtype)));
  if (transfer.motion == Motion::halo || transfer.motion == Motion::halo_sum)
    return halo_bytes(transfer, element_count(from.shape) / from.shape[transfer.dim] * width, size, coordinate);
  const std::optional<Collective> collective = collective_of(transfer.motion);
  if (!collective) return 0;
  return bytes_sent(*collective, algorithm, buffer_elements(transfer, from.shape, to), width, size, coordinate);
}

// One rank's messages among the ranks that differ along some axes.
struct Group {
  const Plan& plan;
  int rank;
  Algorithm algorithm;

  [[nodiscard]] std::int64_t sends(const std::vector<MeshAxis>& axes, Collective collective, std::int64_t elements,
                                   DType type) const {
    return axes.empty() ? 0 : sends(plan.mesh.group(rank, axes), collective, elements, type);
  }
  [[nodiscard]] std::int64_t sends(const std::vector<int>& ranks, Collective collective, std::int64_t elements,
                                   DType type) const {
    const auto place = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
    return bytes_sent(collective, algorithm, elements, static_cast<std::int64_t>(size_in_bytes(type)),
                      static_cast<int>(ranks.size()), place);
  }
};

void add_sync(const Stage& stage, std::size_t index, const Group& group, BytesSent& sent) {
  const GradientSync& sync = stage.gradients[index];
  const int times = stage.reduces_each ? stage.micro_batches() : 1;
  const std::vector<int> ranks = shard_group(group.plan.mesh, sync, group.rank);
  const std::vector<int> copies = copies_group(group.plan.mesh, sync, group.rank);
  const auto place = static_cast<int>(std::ranges::find(ranks, group.rank) - ranks.begin());
  for (std::size_t b = 0; b < sync.buckets.size(); ++b) {
    const Bucket& bucket = sync.buckets[b];
    for (const BucketMessage& message : bucket_messages(sync, bucket))
      sent.gradients += times * group.sends(ranks, message.collective, message.elements, message.dtype);
    if (!sync.sharded()) continue;
    sent.gradients += times * group.sends(copies, Collective::all_reduce, part_of(bucket, sync.parts, place).size(),
                                          travelling_type(sync, bucket));
    if (!has_unit(stage, index, b))
      sent.parameters += group.sends(ranks, Collective::all_gather, bucket.elements, bucket.dtype);
  }
}

// Gathered for forward, and again for backward unless it was kept from there.
std::int64_t unit_bytes(const Stage& stage, const Group& group) {
  std::int64_t total = 0;
  for (const ParameterUnit& unit : stage.units) {
    const GradientSync& sync = stage.gradients[unit.sync];
    const Bucket& bucket = sync.buckets[unit.bucket];
    total += (stays_gathered(stage, unit) ? 1 : 2) * group.sends(shard_group(group.plan.mesh, sync, group.rank),
                                                                 Collective::all_gather, bucket.elements, bucket.dtype);
  }
  return total;
}

}  // namespace

std::optional<Collective> collective_of(Motion motion) {
  switch (motion) {
    case Motion::none:
    case Motion::slice:
    case Motion::own_numbers:
    case Motion::fill: return std::nullopt;
    case Motion::all_gather:
    case Motion::pass_round:
    case Motion::sum_round: return Collective::all_gather;
    case Motion::all_reduce:
    case Motion::maximum: return Collective::all_reduce;
    case Motion::reduce_scatter: return Collective::reduce_scatter;
    case Motion::all_to_all: return Collective::all_to_all;
    case Motion::halo:
    case Motion::halo_sum: return Collective::send_receive;
  }
  return std::nullopt;
}

Bytes message_bytes(const Transfer& transfer, const LocalTensor& from, const Shape& to, int ways) {
  const std::optional<Collective> collective = collective_of(transfer.motion);
  if (!collective) return {};
  const std::int64_t elements = *collective == Collective::send_receive
                                    ? halo_elements_given(transfer, from.shape, to, ways)
                                    : buffer_elements(transfer, from.shape, to);
  return Bytes{static_cast<double>(elements) * size_in_bytes(transfer.type.value_or(from.dtype))};
}

// Where slots are not all filled, of a rank that gives as much as it gets: the mean.
std::int64_t bytes_sent(const Plan& plan, const Stage& stage, const Exchange& exchange, int rank, Pass pass,
                        Algorithm algorithm) {
  const int size = plan.mesh.size(exchange.axis), coordinate = plan.mesh.coordinate(rank, exchange.axis);
  const LocalTensor& in = stage[exchange.input];
  const LocalTensor& out = stage[exchange.output];
  const std::int64_t all = pass == Pass::forward
                               ? transfer_bytes(exchange.forward, in, out.shape, algorithm, size, coordinate)
                               : transfer_bytes(exchange.backward, out, in.shape, algorithm, size, coordinate);
  return exchange.filled < 1.0 ? std::llround(static_cast<double>(all) * exchange.filled) : all;
}

std::int64_t link_bytes(const Stage& stage, Pass pass) {
  const auto bytes = [&](const Link& link) {
    return element_count(stage[link.tensor].shape) * static_cast<std::int64_t>(size_in_bytes(stage[link.tensor].dtype));
  };
  std::int64_t total = 0;
  if (pass == Pass::forward)
    for (const Link& link : stage.sends) total += bytes(link);
  else
    for (const Link& link : stage.receives) total += link.gradient ? bytes(link) : 0;
  return total;
}

BytesSent bytes_by_kind(const Plan& plan, int rank, Algorithm algorithm) {
  BytesSent sent;
  const Group group{plan, rank, algorithm};
  const std::int64_t micro_batches = plan.strategy.accumulation;
  const auto coordinates = static_cast<std::size_t>(plan.mesh.size(MeshAxis::pipeline));
  const auto own = static_cast<std::size_t>(plan.mesh.coordinate(rank, MeshAxis::pipeline));
  for (std::size_t place = own; place < plan.stages.size(); place += coordinates) {
    const Stage& stage = plan.stages[place];
    for (std::size_t s = 0; s < stage.gradients.size(); ++s) add_sync(stage, s, group, sent);
    if (stage.clip && stage.clip->sends)
      sent.norms += group.sends(stage.clip->axes, Collective::all_reduce, 1, DType::f32);
    sent.norms += group.sends(stage.norm_axes, Collective::all_reduce, norm_elements(stage), DType::f32);
    for (const std::int64_t bytes : stage.buffer_broadcasts)
      sent.parameters += group.sends({MeshAxis::data}, Collective::broadcast, bytes, DType::u8);
    sent.parameters += micro_batches * unit_bytes(stage, group);
    sent.links += micro_batches * (link_bytes(stage, Pass::forward) + link_bytes(stage, Pass::backward));
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
      if (!exchange) continue;
      const std::int64_t forward = bytes_sent(plan, stage, *exchange, rank, Pass::forward, algorithm);
      const std::int64_t backward = bytes_sent(plan, stage, *exchange, rank, Pass::backward, algorithm);
      sent.exchanges += micro_batches * (forward * (again[i] ? 2 : 1) + backward);
    }
  }
  return sent;
}

std::int64_t bytes_sent_per_step(const Plan& plan, int rank, Algorithm algorithm) {
  return bytes_by_kind(plan, rank, algorithm).total();
}

}  // namespace sibyl
