// Two to four nodes of two to eight ranks under one switch, the ranks of a node sharing its NIC: every message step by
// step, flow by flow, beside the closed form of the links, and that beside the formulas over messages, which know a NIC
// only by how many leave it at once.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "netmodel/collective/partition.h"
#include "netmodel/fabric/contention/steps.h"
#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

using enum Collective;

struct Exchange {
  Collective collective = all_reduce;
  Algorithm algorithm = Algorithm::ring;
};

// Whose rounds begin when the one before has ended everywhere, or go round rings of links that are alike. Of counts
// that are no powers of two halving a reduce-scatter is a ring.
constexpr std::array exchanges{Exchange{all_reduce, Algorithm::recursive_doubling},
                               Exchange{all_reduce, Algorithm::rabenseifner},
                               Exchange{all_reduce, Algorithm::hierarchical},
                               Exchange{all_gather, Algorithm::halving_doubling},
                               Exchange{all_gather, Algorithm::bruck},
                               Exchange{all_gather, Algorithm::hierarchical},
                               Exchange{reduce_scatter, Algorithm::halving_doubling},
                               Exchange{reduce_scatter, Algorithm::hierarchical},
                               Exchange{all_to_all, Algorithm::ring},
                               Exchange{all_to_all, Algorithm::pairwise},
                               Exchange{all_to_all, Algorithm::bruck},
                               Exchange{all_to_all, Algorithm::hierarchical}};

bool is_ring(const Exchange& it, int size) {
  return it.algorithm == Algorithm::halving_doubling && it.collective == reduce_scatter &&
         !collective::halves_evenly(size);
}

std::string text(const Exchange& it, const TopologySpec& spec) {
  return std::string(to_string(it.collective)) + " " + std::string(to_string(it.algorithm)) + " on " +
         std::to_string(spec.nodes) + " x " + std::to_string(spec.devices_per_node);
}

struct Machine {
  explicit Machine(const TopologySpec& of)
      : spec(of),
        all{of.devices_per_node, of.nodes, 1},
        costs(std::make_shared<const Fabric>(Fabric::make(of, test::shape(LeafSpine{of.nodes, 1, 1})).value()),
              {of.nodes, 1.0, 1.0, false}) {}

  [[nodiscard]] Schedule schedule_of(const Exchange& it, Algorithm between = Algorithm::ring) const {
    return costs.schedule_of(it.collective, it.algorithm, all, between);
  }
  [[nodiscard]] double steps(const Schedule& schedule, double bytes) const {
    return step_by_step(*costs.fabric(), costs.capacities(), schedule, bytes).seconds;
  }
  [[nodiscard]] double closed(const Exchange& it, double bytes) const {
    return costs.seconds(it.collective, it.algorithm, bytes, all);
  }
  // What rounds wait for, if all wait for the farthest.
  [[nodiscard]] double latencies(const Schedule& schedule) const {
    double sum = 0.0;
    for (const Round& round : schedule.rounds) sum += round.times * 2 * spec.nic_latency.value();
    return sum;
  }

  TopologySpec spec;
  GroupPlacement all;
  Costs costs;
};

// What a message between nodes takes beyond one in a node, here and in a node: each of the machine's rates by itself.
TopologySpec any_spec(int nodes, int ranks) {
  const auto times = [](int least, int most, double unit) { return *rc::gen::inRange(least, most + 1) * unit; };
  TopologySpec spec = test::cpu_spec(nodes, ranks);
  spec.device_link.bandwidth = BytesPerSecond{times(1, 100, 1e8)};
  spec.device_link.latency = Seconds{times(1, 20, 1e-7)};
  spec.nic_bandwidth = BytesPerSecond{times(1, 40, 5e7)};
  spec.nic_latency = Seconds{times(1, 20, 1e-6)};
  return spec;
}

template <class Check>
void on_all_machines(const Check& check) {
  for (int nodes = 2; nodes <= 4; ++nodes)
    for (int ranks = 2; ranks <= 8; ++ranks) check(Machine(test::cpu_spec(nodes, ranks)));
}

// A device has ten times the rate of a NIC, so the NIC is the busiest wherever it is crossed.
TEST(SharedNic, ClosedFormIsStepByStep) {
  on_all_machines([](const Machine& machine) {
    for (const Exchange& it : exchanges) {
      if (is_ring(it, machine.all.size())) continue;
      const Schedule schedule = machine.schedule_of(it), other = machine.schedule_of(it, Algorithm::rabenseifner);
      for (const double bytes : {0.0, 1e3, 1e5, 8e6})
        EXPECT_NEAR(machine.closed(it, bytes) / std::min(machine.steps(schedule, bytes), machine.steps(other, bytes)),
                    1.0, 1e-9)
            << text(it, machine.spec) << ", " << bytes;
    }
  });
}

// Where a device is the slower link a round of both ends before the farthest latency has passed after the last byte.
TEST(SharedNic, ClosedFormIsAtMostLatenciesBeyondStepByStep) {
  EXPECT_TRUE(rc::check("of any rates", [] {
    const Machine machine(any_spec(*rc::gen::inRange(2, 5), *rc::gen::inRange(2, 9)));
    const double bytes = std::pow(10.0, *rc::gen::inRange(0, 80) / 10.0);
    const Exchange it = *rc::gen::elementOf(std::vector<Exchange>(exchanges.begin(), exchanges.end()));
    if (is_ring(it, machine.all.size())) return;
    const Schedule schedule = machine.schedule_of(it), other = machine.schedule_of(it, Algorithm::rabenseifner);
    const double steps = std::min(machine.steps(schedule, bytes), machine.steps(other, bytes));
    const double closed = machine.closed(it, bytes);
    RC_ASSERT(steps <= closed * (1 + 1e-9));
    RC_ASSERT(closed <= (steps + machine.latencies(schedule)) * (1 + 1e-9));
  }));
}

// A ring by its definition: over each link one message after the other, each when it has come over the link before. The
// last link of a node's leads to the next node.
double ring_by_definition(const TopologySpec& spec, double part, int rounds) {
  const int ranks = spec.devices_per_node, size = ranks * spec.nodes;
  std::vector<double> sent(static_cast<std::size_t>(size), 0.0), arrived = sent;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<double> came = arrived;
    for (std::size_t link = 0; link < sent.size(); ++link) {
      const bool leaves = static_cast<int>(link) % ranks == ranks - 1;
      const double latency = leaves ? 2 * spec.nic_latency.value() : spec.device_link.latency.value();
      const double rate = leaves ? std::min(spec.nic_bandwidth, spec.device_link.bandwidth).value()
                                 : spec.device_link.bandwidth.value();
      sent[link] = std::max(sent[link], came[(link + sent.size() - 1) % sent.size()]) + part / rate;
      arrived[link] = sent[link] + latency;
    }
  }
  return *std::max_element(arrived.begin(), arrived.end());
}

// With transfers t and latencies a of its links, R rounds are the longest way through them: each stays at its link, for
// t, or goes on to the next, for a + t. To stay at the slowest is R t; to go on always, R (t + a) in the mean. The
// closed form has both, the largest t and the mean a, in each round: it is never shorter, but for two latencies at the
// ends, and longer by the latencies that pass while the slowest link is busy.
TEST(SharedNic, RingIsBetweenItsSlowestLinkAndItsClosedForm) {
  EXPECT_TRUE(rc::check("of any rates", [] {
    const Machine machine(any_spec(*rc::gen::inRange(2, 5), *rc::gen::inRange(2, 9)));
    const TopologySpec& spec = machine.spec;
    const double bytes = std::pow(10.0, *rc::gen::inRange(0, 80) / 10.0);
    const Exchange it{*rc::gen::element(all_reduce, reduce_scatter, all_gather), Algorithm::ring};
    const int size = machine.all.size(), rounds = (it.collective == all_reduce ? 2 : 1) * (size - 1);
    const double part = bytes / size;
    const double slowest = part / std::min(spec.nic_bandwidth, spec.device_link.bandwidth).value();
    const double latency =
        (2 * spec.nic_latency.value() + (machine.all.ranks_per_node - 1) * spec.device_link.latency.value()) /
        machine.all.ranks_per_node;
    const double steps = machine.steps(machine.schedule_of(it), bytes), closed = machine.closed(it, bytes);
    RC_ASSERT(std::abs(steps / ring_by_definition(spec, part, rounds) - 1) < 1e-9);
    RC_ASSERT(std::abs(closed / (rounds * (latency + slowest)) - 1) < 1e-9);
    RC_ASSERT(steps >= rounds * slowest * (1 - 1e-9));
    RC_ASSERT(steps <= (closed + 2 * latency) * (1 + 1e-9));
  }));
}

// Messages of the same machine, timed by themselves: what leaves a node at once shares its NIC.
TEST(SharedNic, FormulasOverMessagesKnowWhoShares) {
  on_all_machines([](const Machine& machine) {
    const Network network = test::straight_network(machine.spec.nodes, machine.spec.devices_per_node, Algorithm::ring);
    constexpr double bytes = 8e6;
    for (const Exchange& it : exchanges)
      EXPECT_NEAR(network.collective(it.collective, Bytes{bytes}, machine.all, it.algorithm).time.time.value() /
                      machine.closed(it, bytes),
                  1.0, 1e-3)
          << text(it, machine.spec);
  });
}

// The same of groups that do not fill their nodes, and of rings, which cross between nodes once for each of them.
TEST(SharedNic, FormulasKnowUnevenGroups) {
  std::vector<Exchange> all(exchanges.begin(), exchanges.end());
  all.push_back({all_reduce, Algorithm::ring});
  on_all_machines([&](Machine machine) {
    const int nodes = machine.spec.nodes, ranks = machine.spec.devices_per_node;
    const Network network = test::straight_network(nodes, ranks, Algorithm::ring);
    constexpr double bytes = 8e6;
    for (int missing = 1; missing <= (ranks - 1) * (nodes - 1); ++missing) {
      machine.all.missing = missing;
      for (const Exchange& it : all)
        EXPECT_NEAR(network.collective(it.collective, Bytes{bytes}, machine.all, it.algorithm).time.time.value() /
                        machine.closed(it, bytes),
                    1.0, 1e-3)
            << text(it, machine.spec) << " without " << missing;
    }
  });
}

}  // namespace
}  // namespace sibyl::fabric
