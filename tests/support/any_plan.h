// Random models, clusters and strategies of property tests.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <variant>

#include "oracle/strategy.h"
#include "tests/support/clusters.h"
#include "tests/support/experts.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace sibyl::test {

inline int any(int least, int most) { return *rc::gen::resize(100, rc::gen::inRange(least, most + 1)); }
template <class... T>
auto one_of(T... values) {
  const std::array<std::common_type_t<T...>, sizeof...(T)> all = {values...};
  return all[static_cast<std::size_t>(any(0, static_cast<int>(all.size()) - 1))];
}

// Extents are multiples of few primes, so that many degrees divide them.
inline Graph any_model() {
  const int depth = any(1, 3), scale = one_of(1, 2, 8);
  switch (any(0, 8)) {
    case 0:
    case 1: return mlp(std::vector<std::int64_t>(static_cast<std::size_t>(depth) * 2 + 2, 24 * scale), 4);
    case 2:
    case 3: return residual_network(depth, 12 * scale, one_of(16, 32), 4);
    case 4: return residual_network(depth, 12, 8, 4, 3);
    case 5: return mixture_of_experts(depth);
    case 6: return transformer(depth, 24 * scale, 12, one_of(16, 64), 4, true);
    default: return transformer(depth, 24 * scale, 12, one_of(16, 64), 4);
  }
}

// A CPU, whose kernels need no launch, or a GPU, whose small kernels wait for theirs.
// As if collectives of small groups had been timed, to be what formulas say they are, and in turn a share of that.
inline sibyl::Network timed_in_turn(const sibyl::Network& network) {
  std::vector<CollectiveSample> samples;
  const double share = 0.1 * any(5, 12);
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::send_receive})
    for (const int ranks : {1, 2, 4})
      for (const int nodes : {1, 2, 3, 4})
        for (const double bytes : {1e2, 1e4, 1e6}) {
          if (ranks * nodes == 1) continue;
          const GroupPlacement placement{ranks, nodes, 1};
          samples.push_back({collective, Algorithm::automatic, placement, Bytes{bytes},
                             network.collective(collective, Bytes{bytes}, placement).time.time, 0.0, "test", share});
        }
  return network.knowing(std::move(samples));
}

inline Cluster any_cluster() {
  Device device = cpu_device();
  device.peak = {{DType::f32, FlopsPerSecond{1e12}},
                 {DType::tf32, FlopsPerSecond{4e12}},
                 {DType::f16, FlopsPerSecond{8e12}},
                 {DType::bf16, FlopsPerSecond{8e12}}};
  device.memory_bandwidth = BytesPerSecond{1e11};
  if (any(0, 1) == 1) {
    device.backend = Backend::cuda;
    device.dispatch = Seconds{1e-6 * one_of(0, 2, 5, 20)};
  }
  const BytesPerSecond nic{1e8 * one_of(1, 10, 100, 1000)};
  Cluster cluster = test::cluster(64, one_of(1, 2, 4, 8), nic, {}, std::move(device));
  cluster.step_overhead_per_operation = Seconds{1e-6 * any(0, 20)};
  if (any(0, 2) == 0) cluster.network = timed_in_turn(cluster.network);
  return cluster;
}

// A replica split in one more way, or left as it is.
inline void split_once(Strategy& s) {
  const int degree = one_of(2, 3, 4);
  switch (any(0, 8)) {
    case 0: s.tensor = degree; break;
    case 1: s.tensor = degree, s.sequence = true; break;
    case 2: s.filter = degree; break;
    case 3: s.channel = degree; break;
    case 4: s.height = 2, s.width = one_of(1, 2); break;
    case 5: s.depth = 2, s.height = one_of(1, 2), s.width = one_of(1, 2); break;
    case 6: s.context = degree; break;
    default: break;  // whole
  }
}

inline void split_replica(Strategy& s) {
  split_once(s);
  if (any(0, 3) == 0) split_once(s);
}

inline void put_in_stages(Strategy& s) {
  s.pipeline = any(2, 4);
  s.schedule = one_of(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                      PipelineSchedule::interleaved, PipelineSchedule::zero_bubble);
  if (s.schedule == PipelineSchedule::interleaved) s.chunks = 2;
  s.accumulation = s.pipeline * any(1, 20);
}

inline Strategy any_strategy() {
  Strategy s;
  s.data = any(1, 4);
  split_replica(s);
  s.accumulation = any(1, 4);
  if (any(0, 1) == 1) put_in_stages(s);
  s.global_batch = s.data * s.accumulation * 2 * any(1, 8);
  s.precision = one_of(Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16);
  s.optimizer = one_of(OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adam, OptimizerKind::adamw,
                       OptimizerKind::lamb, OptimizerKind::lars);
  s.zero = any(0, s.schedule == PipelineSchedule::zero_bubble ? 1 : 3);
  if (s.zero > 0 && s.data == 4 && any(0, 2) == 0) s.zero_ranks = 2;
  if (any(0, 3) == 0) s.batch_norm = BatchNorm::synchronised;
  s.recompute = one_of(Recompute::none, Recompute::selective, Recompute::full, Recompute::operations);
  if (s.recompute == Recompute::operations) s.recompute_kinds = {"normalization", "gelu", "relu"};
  if (s.recompute == Recompute::full) s.recompute_every = any(1, 3);
  if (s.recompute == Recompute::full && s.recompute_every == 1 && s.zero < 3) s.recompute_together = any(1, 3);
  if (any(0, 2) == 0) s.clip = 1;
  if (any(0, 3) == 0) s.exchange = GradientExchange::at_end;
  s.bucket = Bytes{1024.0 * any(1, 4000)};
  s.first_bucket = s.bucket / 4;
  using Kind = Compression::Kind;
  if (any(0, 2) == 0)
    s.compression = s.zero > 0 ? Compression{one_of(Kind::fp16, Kind::bf16)}
                               : Compression{one_of(Kind::fp16, Kind::one_bit, Kind::two_bit, Kind::top_k), 0.001 * any(1, 1000)};
  if (any(0, 1) == 1) s.order = {MeshAxis::pipeline, MeshAxis::data};
  return s;
}

// Experts are dealt out where the model has some.
inline Strategy any_strategy(const Graph& model) {
  Strategy s = any_strategy();
  const auto deals = [](const Operation& operation) {
    return std::holds_alternative<GroupedLinear>(operation.attributes);
  };
  if (any(0, 1) == 1 && std::ranges::any_of(model.operations(), deals)) s.expert = one_of(2, 4);
  s.global_batch *= s.expert;
  return s;
}

}  // namespace sibyl::test
