#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "netmodel/collective/algorithms.h"
#include "netmodel/library.h"
#include "netmodel/topology.h"

namespace sibyl {
namespace {

constexpr double rounding = 1.0 + 1e-9;

double any_real(int low_exponent, int high_exponent) {
  return std::pow(10.0, *rc::gen::inRange(low_exponent * 100, high_exponent * 100) / 100.0);
}

TopologySpec any_spec() {
  TopologySpec spec;
  spec.nodes = *rc::gen::inRange(1, 100);
  spec.devices_per_node = *rc::gen::inRange(1, 9);
  spec.device_link = {
      *rc::gen::element(LinkKind::nvswitch, LinkKind::nvlink_mesh, LinkKind::pcie, LinkKind::shared_memory),
      BytesPerSecond{any_real(8, 12)}, Seconds{any_real(-7, -4)}};
  spec.device_link.reduces = spec.device_link.kind == LinkKind::nvswitch && *rc::gen::arbitrary<bool>();
  spec.switches_reduce = *rc::gen::arbitrary<bool>();
  spec.nics_per_node = *rc::gen::inRange(1, 9);
  spec.nic_bandwidth = BytesPerSecond{any_real(7, 11)};
  spec.nic_latency = Seconds{any_real(-7, -4)};
  spec.switch_latency = Seconds{any_real(-8, -5)};
  spec.levels = *rc::gen::inRange(1, 4);
  spec.nodes_per_switch = *rc::gen::inRange(0, 40);
  spec.oversubscription = 1.0 + *rc::gen::inRange(0, 30) / 10.0;
  return spec;
}

// Half of them fill their nodes evenly.
GroupPlacement any_placement() {
  GroupPlacement result{*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 100), *rc::gen::inRange(1, 9)};
  const int most = (result.ranks_per_node - 1) * (result.nodes - 1);
  if (*rc::gen::arbitrary<bool>()) result.missing = *rc::gen::inRange(0, most + 1);
  return result;
}

Collective any_collective() {
  return *rc::gen::element(Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                           Collective::broadcast, Collective::reduce, Collective::all_to_all, Collective::send_receive);
}

Algorithm any_algorithm() {
  return *rc::gen::element(Algorithm::automatic, Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::bruck,
                           Algorithm::halving_doubling, Algorithm::binomial, Algorithm::linear, Algorithm::pairwise,
                           Algorithm::recursive_doubling, Algorithm::rabenseifner, Algorithm::tree,
                           Algorithm::hierarchical, Algorithm::multi_dimensional, Algorithm::in_network);
}

std::vector<PointToPointSample> any_messages() {
  std::vector<PointToPointSample> samples;
  for (int count = *rc::gen::inRange(0, 12); count > 0; --count)
    samples.push_back({*rc::gen::arbitrary<bool>(), *rc::gen::inRange(1, 4), Bytes{std::floor(any_real(0, 8))},
                       Seconds{any_real(-6, 0)}, 0.01, *rc::gen::arbitrary<bool>()});
  return samples;
}

std::vector<CollectiveSample> any_timed() {
  std::vector<CollectiveSample> samples;
  for (int count = *rc::gen::inRange(0, 12); count > 0; --count)
    samples.push_back({any_collective(),
                       any_algorithm(),
                       {*rc::gen::inRange(1, 5), *rc::gen::inRange(1, 5), 1},
                       Bytes{std::floor(any_real(0, 8))},
                       Seconds{any_real(-6, 0)},
                       0.01,
                       ""});
  return samples;
}

Library any_library() {
  return *rc::gen::element(Library::automatic, Library::sibyl, Library::nccl, Library::open_mpi, Library::mpich,
                           Library::gloo);
}

double seconds(const Network& network, Collective collective, double bytes, const GroupPlacement& placement) {
  return network.collective(collective, Bytes{bytes}, placement).time.time.value();
}

Network bare(const TopologySpec& spec, Algorithm algorithm) {
  return {Topology::make(spec).value(), {}, {}, algorithm};
}

TEST(NetworkProperty, MoreBytesAreNeverFaster) {
  EXPECT_TRUE(rc::check("whatever was measured, or not", [] {
    const Network network = Network(Topology::make(any_spec()).value(), any_messages(), any_timed(), any_algorithm())
                                .running({any_library()});
    const Collective collective = any_collective();
    const GroupPlacement placement = any_placement();
    const double a = any_real(0, 10), b = any_real(0, 10);
    RC_ASSERT(seconds(network, collective, std::min(a, b), placement) <=
              seconds(network, collective, std::max(a, b), placement) * rounding);
  }));
}

TEST(NetworkProperty, MoreBandwidthIsNeverSlower) {
  EXPECT_TRUE(rc::check("of a device link, of a NIC", [] {
    const TopologySpec spec = any_spec();
    TopologySpec better = spec;
    better.device_link.bandwidth *= 1.0 + any_real(-2, 1);
    better.nic_bandwidth *= 1.0 + any_real(-2, 1);
    const Algorithm algorithm = any_algorithm();
    const Collective collective = any_collective();
    const GroupPlacement placement = any_placement();
    const double bytes = any_real(0, 10);
    RC_ASSERT(seconds(bare(better, algorithm), collective, bytes, placement) <=
              seconds(bare(spec, algorithm), collective, bytes, placement) * rounding);
  }));
}

TEST(NetworkProperty, LongerLatencyIsNeverFaster) {
  EXPECT_TRUE(rc::check("of any part", [] {
    const TopologySpec spec = any_spec();
    TopologySpec worse = spec;
    worse.device_link.latency *= 1.5;
    worse.nic_latency *= 2.0;
    worse.switch_latency *= 3.0;
    const Algorithm algorithm = any_algorithm();
    const Collective collective = any_collective();
    const GroupPlacement placement = any_placement();
    const double bytes = any_real(0, 10);
    RC_ASSERT(seconds(bare(spec, algorithm), collective, bytes, placement) <=
              seconds(bare(worse, algorithm), collective, bytes, placement) * rounding);
  }));
}

TEST(NetworkProperty, MoreGroupsAtOnceAreNeverFaster) {
  EXPECT_TRUE(rc::check("on the same NICs", [] {
    const Network network = bare(any_spec(), any_algorithm());
    const Collective collective = any_collective();
    GroupPlacement placement = any_placement();
    const double bytes = any_real(0, 10);
    const double before = seconds(network, collective, bytes, placement);
    ++placement.groups_per_node;
    RC_ASSERT(before <= seconds(network, collective, bytes, placement) * rounding);
  }));
}

bool same(const CollectiveEstimate& a, const CollectiveEstimate& b) {
  return a.time.time == b.time.time && a.time.relative_error == b.time.relative_error &&
         a.time.provenance == b.time.provenance && a.algorithm == b.algorithm && a.in_turn == b.in_turn;
}

// What is found once for a group, and for sizes near one another, is what a network finds that was never asked before.
TEST(NetworkProperty, WhatWasAskedBeforeChangesNoAnswer) {
  EXPECT_TRUE(rc::check("to the bit", [] {
    const Network asked_often =
        Network(Topology::make(any_spec()).value(), any_messages(), any_timed(), any_algorithm())
            .running({any_library()});
    const std::vector<GroupPlacement> groups{any_placement(), any_placement()};
    for (int i = 0; i < 20; ++i) {
      const Collective collective = any_collective();
      const GroupPlacement placement = *rc::gen::elementOf(groups);
      const Bytes bytes{any_real(0, 10)};
      const Algorithm algorithm = any_algorithm();
      RC_ASSERT(
          same(asked_often.collective(collective, bytes, placement, algorithm),
               asked_often.knowing(asked_often.collectives()).collective(collective, bytes, placement, algorithm)));
    }
  }));
}

// What a tree waits is a root of what bytes add to an empty message, of which few digits are left where that is little.
bool alike(double a, double b) { return std::abs(a - b) <= 1e-9 * b; }

// The formula itself, whose ways are found anew for each message, in the quickest protocol; without protocols what goes
// down a tree, or up, is not sent back, so messages one way tell. A GPU library spends 7 us
// before its first byte moves, and its trees wait between nodes.
double by_hand(const TopologySpec& spec, const std::vector<PointToPointSample>& samples, const collective::Job& job,
               Algorithm algorithm) {
  const Topology topology = Topology::make(spec).value();
  const PointToPoint messages(topology, samples);
  const bool gpus = spec.device_link.kind != LinkKind::shared_memory;
  const bool waits = job.collective == Collective::all_reduce && job.placement.nodes > 1 && gpus &&
                     (algorithm == Algorithm::tree || (algorithm == Algorithm::in_network && !spec.switches_reduce));
  const auto known = collective::protocols_of(job.collective, algorithm, spec.device_link.kind);
  const bool protocols = !known.empty() && !messages.measured(true) && !messages.measured(false);
  const bool one_way = job.collective == Collective::broadcast || job.collective == Collective::reduce;
  const collective::Ways ways = one_way && !protocols ? collective::Ways::one : collective::Ways::both;
  const auto in = [&](const collective::ProtocolCost& cost) {
    const auto moving = [&](double bytes) {
      return collective::seconds({job.collective, bytes, job.placement}, algorithm,
                                 collective::Wire(topology, messages, cost, ways))
          .value();
    };
    const double empty = moving(0.0), all = moving(job.bytes.value());
    const double waiting = waits ? std::min(2 * std::sqrt(empty * std::max(0.0, all - empty)), empty / 2) : 0.0;
    return cost.launch + all + waiting;
  };
  double quickest = std::numeric_limits<double>::infinity();
  if (!protocols)
    quickest = in({});
  else
    for (const Protocol protocol : known)
      quickest = std::min(
          quickest, in(collective::cost_of(protocol, job.collective, algorithm, spec.device_link.kind, job.placement)));
  return (gpus ? 7e-6 : 0.0) + quickest;
}

TEST(NetworkProperty, WhatIsCompiledIsTheFormula) {
  EXPECT_TRUE(rc::check("to rounding; a GPU library takes the fastest", [] {
    const TopologySpec spec = any_spec();
    const std::vector<PointToPointSample> samples = any_messages();
    const Network network(Topology::make(spec).value(), samples, {}, Algorithm::automatic);
    GroupPlacement placement = any_placement();
    placement.nodes += placement.size() == 1 ? 1 : 0;
    for (int i = 0; i < 20; ++i) {
      const double bytes = any_real(0, 10);
      const collective::Job job{any_collective(), bytes, placement};
      const auto expected = [&](Algorithm algorithm) { return by_hand(spec, samples, job, algorithm); };
      const auto answered = [&](Algorithm asked) {
        return network.collective(job.collective, Bytes{bytes}, placement, asked).time.time.value();
      };
      const bool adds = spec.device_link.reduces || spec.switches_reduce;
      const Algorithm named = any_algorithm();
      if (collective::runs(job.collective, named) && (adds || named != Algorithm::in_network))
        RC_ASSERT(alike(answered(named), expected(named)));
      if (job.collective != Collective::all_reduce || spec.device_link.kind == LinkKind::shared_memory) continue;
      double fastest = std::min(expected(Algorithm::ring), expected(Algorithm::tree));
      if (adds) fastest = std::min(fastest, expected(Algorithm::in_network));
      RC_ASSERT(alike(answered(Algorithm::automatic), fastest));
    }
  }));
}

TEST(NetworkProperty, EveryAnswerIsFiniteAndOneRankIsFree) {
  EXPECT_TRUE(rc::check("and errors are not negative", [] {
    const Network network(Topology::make(any_spec()).value(), any_messages(), any_timed(), any_algorithm());
    const Collective collective = any_collective();
    const Estimate estimate = network.collective(collective, Bytes{any_real(0, 12)}, any_placement()).time;
    RC_ASSERT(std::isfinite(estimate.time.value()) && estimate.time.value() >= 0.0);
    RC_ASSERT(std::isfinite(estimate.relative_error) && estimate.relative_error >= 0.0);
    RC_ASSERT(seconds(network, collective, 1e6, {1, 1, 1}) == 0.0);
  }));
}

}  // namespace
}  // namespace sibyl
