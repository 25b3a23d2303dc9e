// What a rank sends in a step, counted as the communicator counts it.
#include <algorithm>

#include "oracle/plan/plan.h"

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
  const auto width = static_cast<std::int64_t>(size_in_bytes(from.dtype));
  if (transfer.motion == Motion::halo || transfer.motion == Motion::halo_sum)
    return halo_bytes(transfer, element_count(from.shape) / from.shape[transfer.dim] * width, size, coordinate);
  const std::optional<Collective> collective = collective_of(transfer.motion);
  if (!collective) return 0;
  return bytes_sent(*collective, algorithm, buffer_elements(transfer, from.shape, to), width, size, coordinate);
}

}  // namespace

std::optional<Collective> collective_of(Motion motion) {
  switch (motion) {
    case Motion::none:
    case Motion::slice: return std::nullopt;
    case Motion::all_gather: return Collective::all_gather;
    case Motion::all_reduce: return Collective::all_reduce;
    case Motion::reduce_scatter: return Collective::reduce_scatter;
    case Motion::all_to_all: return Collective::all_to_all;
    case Motion::halo:
    case Motion::halo_sum: return Collective::send_receive;
  }
  return std::nullopt;
}

std::int64_t bytes_sent(const Plan& plan, const Stage& stage, const Exchange& exchange, int rank, Pass pass,
                        Algorithm algorithm) {
  const int size = plan.mesh.size(exchange.axis), coordinate = plan.mesh.coordinate(rank, exchange.axis);
  const LocalTensor& in = stage[exchange.input];
  const LocalTensor& out = stage[exchange.output];
  if (pass == Pass::forward) return transfer_bytes(exchange.forward, in, out.shape, algorithm, size, coordinate);
  return transfer_bytes(exchange.backward, out, in.shape, algorithm, size, coordinate);
}

std::int64_t bytes_sent_per_step(const Plan& plan, int rank, Algorithm algorithm) {
  std::int64_t total = 0;
  for (const Stage& stage : plan.stages) {
    for (const GradientSync& sync : stage.gradients) {
      const std::vector<int> group = plan.mesh.group(rank, sync.axes);
      const auto place = static_cast<int>(std::find(group.begin(), group.end(), rank) - group.begin());
      for (const Bucket& bucket : sync.buckets)
        total +=
            bytes_sent(Collective::all_reduce, algorithm, bucket.elements,
                       static_cast<std::int64_t>(size_in_bytes(bucket.dtype)), static_cast<int>(group.size()), place);
    }
    std::int64_t of_micro_batch = 0;
    for (const Step& step : stage.steps)
      if (const auto* exchange = std::get_if<Exchange>(&step))
        for (const Pass pass : {Pass::forward, Pass::backward})
          of_micro_batch += bytes_sent(plan, stage, *exchange, rank, pass, algorithm);
    total += of_micro_batch * plan.strategy.accumulation;
  }
  return total;
}

}  // namespace sibyl
