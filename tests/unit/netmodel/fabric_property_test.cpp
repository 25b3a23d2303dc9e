// What holds for any fabric, any collective.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "netmodel/collective/algorithms.h"
#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

constexpr double rounding = 1.0 + 1e-9;

int from(int least, int most) { return *rc::gen::inRange(least, most + 1); }

// Node 0 to n - 1 in a ring, with chords.
Custom any_links(int nodes) {
  Custom custom;
  const auto cable = [&](int a, int b) {
    const LinkRate link{BytesPerSecond{from(1, 20) * 10e6}, Seconds{from(0, 9) * 1e-6},
                        from(0, 3) == 0 ? Duplex::half : Duplex::full};
    custom.cables.push_back({"node" + std::to_string(a), "node" + std::to_string(b), link, {}, from(1, 2), ""});
  };
  for (int i = 0; i < nodes; ++i) cable(i, (i + 1) % nodes);
  for (int chords = from(0, 4); chords > 0; --chords) {
    const int a = from(0, nodes - 1);
    cable(a, (a + from(2, nodes - 1)) % nodes == a ? (a + 1) % nodes : (a + from(2, nodes - 1)) % nodes);
    if (custom.cables.back().from == custom.cables.back().to) custom.cables.pop_back();
  }
  return custom;
}

InnerLinks all_behind_a_bridge(int devices) {
  InnerLinks links;
  for (int i = 0; i < devices; ++i)
    links.links.push_back({"device" + std::to_string(i), "bridge", {}, {}, {}, Duplex::full, 1, ""});
  return links;
}

Outside any_network(int nodes) {
  switch (from(0, 7)) {
    case 0: return Torus{{from(2, 4), nodes}, from(0, 1) == 1};
    case 1: return FatTree{{from(2, 6), from(2, 4), nodes}, {from(1, 3), from(1, 3)}};
    case 2: return LeafSpine{from(2, 5), nodes, from(1, 4)};
    case 3: return RailOptimised{from(2, 5), nodes, from(1, 3), from(0, 1) == 1};
    case 4: return Dragonfly{from(2, 5), from(2, 4), 2 * nodes, 2, from(0, 1) == 1};
    case 5: return FullyConnected{};
    case 6: return DragonflyPlus{from(2, 5), from(2, 4), from(2, 3), 2 * nodes, 2};
    default: return any_links(nodes);
  }
}

struct Case {
  TopologySpec spec;
  FabricSpec shape;
  GroupPlacement placement;
  Collective collective = Collective::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  double bytes = 1e6;
};

Case any_case() {
  Case c;
  c.spec = test::cpu_spec(from(3, 8), from(1, 4));
  c.spec.nics_per_node = from(1, 2);
  c.spec.oversubscription = 1.0 + from(0, 4);
  c.shape = test::shape(any_network(c.spec.nodes));
  if (std::holds_alternative<Custom>(c.shape.network)) c.spec.nics_per_node = 1;  // links name no second one
  if (from(0, 3) == 0)
    c.shape.inside = *rc::gen::element<Inside>(NvSwitch{2}, Mesh{}, InnerRing{}, PcieTree{},
                                               all_behind_a_bridge(c.spec.devices_per_node));
  c.shape.background = from(0, 5) / 10.0;
  c.placement = {from(1, c.spec.devices_per_node), from(1, c.spec.nodes), 1};
  if (c.placement.size() == 1) c.placement.nodes = 2;
  c.collective = *rc::gen::element(Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                   Collective::broadcast, Collective::all_to_all, Collective::send_receive);
  c.algorithm = *rc::gen::element(Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::bruck,
                                  Algorithm::halving_doubling, Algorithm::binomial, Algorithm::linear,
                                  Algorithm::pairwise, Algorithm::recursive_doubling, Algorithm::rabenseifner,
                                  Algorithm::tree, Algorithm::hierarchical, Algorithm::multi_dimensional);
  c.algorithm = collective::resolve(c.collective, c.algorithm, 1 << 20, c.placement.size());
  c.bytes = std::pow(10.0, from(0, 90) / 10.0);
  return c;
}

double seconds(const Case& c) {
  const auto fabric = std::make_shared<const Fabric>(Fabric::make(c.spec, c.shape).value());
  return Costs(fabric, {c.spec.nodes, 1.0, 1.0, true}).seconds(c.collective, c.algorithm, c.bytes, c.placement);
}

TEST(FabricProperty, MoreBandwidthIsNeverSlower) {
  EXPECT_TRUE(rc::check("of devices, NICs, or a single cable", [] {
    const Case c = any_case();
    Case better = c;
    const double factor = 1.0 + from(1, 30) / 10.0;
    if (auto* custom = std::get_if<Custom>(&better.shape.network); custom != nullptr && from(0, 1) == 0)
      custom->cables[static_cast<std::size_t>(from(0, static_cast<int>(custom->cables.size()) - 1))].link.bandwidth *=
          factor;
    else if (from(0, 1) == 0)
      better.spec.device_link.bandwidth *= factor;
    else
      better.spec.nic_bandwidth *= factor;
    RC_ASSERT(seconds(better) <= seconds(c) * rounding);
  }));
}

TEST(FabricProperty, WhatIsWorseIsNeverFaster) {
  EXPECT_TRUE(rc::check("oversubscription, background, latency, bytes, groups", [] {
    const Case c = any_case();
    Case worse = c;
    switch (from(0, 4)) {
      case 0: worse.spec.oversubscription *= 2; break;
      case 1: worse.shape.background += 0.2; break;
      case 2: worse.spec.nic_latency *= 3; break;
      case 3: worse.bytes *= 2; break;
      default: worse.placement.groups_per_node = 2; break;
    }
    RC_ASSERT(seconds(c) <= seconds(worse) * rounding);
  }));
}

// On a torus each node may be called the first: the same flows from there take the same time.
TEST(FabricProperty, RelabellingAlikeHostsChangesNothing) {
  EXPECT_TRUE(rc::check("of a torus and of a leaf-spine", [] {
    const int a = from(2, 5), b = from(2, 5), nodes = a * b;
    const bool torus = from(0, 1) == 0;
    const Fabric fabric =
        torus ? test::direct(Torus{{a, b}}, nodes) : test::with_nics(LeafSpine{a, b, 2}, nodes, 1, Ecmp::split, 2.0);
    const int along = from(0, a - 1), across = from(0, b - 1);
    const auto moved = [&](int node) { return (node % a + along) % a + (node / a + across) % b * a; };
    std::vector<Flow> flows, others;
    for (int count = from(1, 30); count > 0; --count) {
      flows.push_back({from(0, nodes - 1), from(0, nodes - 1), from(1, 9) * 1e6, 0.0});
      others.push_back({moved(flows.back().from), moved(flows.back().to), flows.back().bytes, 0.0});
    }
    RC_ASSERT(std::abs(test::last_end(fabric, flows) / test::last_end(fabric, others) - 1.0) < 1e-6 ||
              test::last_end(fabric, flows) == test::last_end(fabric, others));
  }));
}

// No channel carries more than it can; every flow meets a full channel on which nobody has more.
TEST(FabricProperty, FairRatesAreMaxMinFair) {
  EXPECT_TRUE(rc::check("for any flows on any fabric", [] {
    Case c = any_case();
    c.shape.ecmp = *rc::gen::element(Ecmp::split, Ecmp::hash, Ecmp::destination);
    const Fabric fabric = Fabric::make(c.spec, c.shape).value();
    const auto capacities = fabric.capacities();
    std::vector<Flow> flows;
    for (int count = from(1, 40); count > 0; --count) {
      const int a = from(0, fabric.devices() - 1), b = from(0, fabric.devices() - 1);
      if (a != b) flows.push_back({a, b, 1.0, 0.0});
    }
    const FlowSet set(fabric, capacities, flows);
    const std::vector<double> rates = fair_rates(set);
    std::vector<double> used(set.capacities().size(), 0.0);
    for (std::size_t f = 0; f < set.size(); ++f)
      for (const FlowSet::Use& use : set.uses(f)) used[use.channel] += use.share * rates[f];
    for (std::size_t ch = 0; ch < used.size(); ++ch) RC_ASSERT(used[ch] <= set.capacities()[ch] * (1 + 1e-6));
    for (std::size_t f = 0; f < set.size(); ++f) {
      bool limited = false;
      for (const FlowSet::Use& use : set.uses(f)) {
        bool nobody_has_more = used[use.channel] >= set.capacities()[use.channel] * (1 - 1e-6);
        for (const std::uint32_t other : set.flows_over(use.channel))
          nobody_has_more = nobody_has_more && rates[other] <= rates[f] * (1 + 1e-6);
        limited = limited || nobody_has_more;
      }
      RC_ASSERT(limited);
    }
  }));
}

}  // namespace
}  // namespace sibyl::fabric
