// SimGrid (Casanova et al., 2014) as an independent judge: the same flows over the same ways through the same links, by
// its fluid model with all corrections for TCP off, so that it is max-min fair sharing and nothing else. A platform is
// made link by link: a host for each device, a link for each channel, a route for each pair that talks.
//
// SimGrid allows one simulation a process, so each runs in a child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>
#include <simgrid/s4u.hpp>

#include "tests/unit/netmodel/fabric_machine.h"

namespace sibyl::fabric {
namespace {

namespace sg = simgrid::s4u;

struct Platform {
  std::vector<double> bandwidths;                // of channels
  std::vector<std::vector<ChannelId>> channels;  // of each flow
};

Platform platform_of(const Fabric& fabric, const std::vector<Flow>& flows) {
  Platform platform{fabric.capacities(), {}};
  for (std::size_t i = 0; i < flows.size(); ++i) {
    std::vector<Step> steps;
    fabric.route(flows[i].from, flows[i].to, i, steps);
    platform.channels.emplace_back();
    for (const Step& step : steps) {
      EXPECT_EQ(step.share, 1.0);  // SimGrid knows no split flows
      platform.channels.back().push_back(fabric.graph().edges()[step.edge].channel);
    }
  }
  return platform;
}

std::vector<double> simulate(const Platform& platform, const std::vector<Flow>& flows, int hosts) {
  int argc = 2;
  std::string name = "judge";
  std::string quiet = "--log=root.threshold:warning";
  char* argv[] = {name.data(), quiet.data(), nullptr};
  sg::Engine engine(&argc, argv);
  for (const char* setting :
       {"network/model:CM02", "network/bandwidth-factor:1", "network/latency-factor:1", "network/weight-S:0",
        "network/TCP-gamma:0", "network/crosstraffic:0", "maxmin/precision:1e-9"})
    sg::Engine::set_config(setting);
  sg::NetZone* zone = sg::create_full_zone("fabric");
  std::vector<sg::Host*> host;
  for (int i = 0; i < hosts; ++i) host.push_back(zone->create_host("h" + std::to_string(i), 1e9));
  std::map<ChannelId, sg::Link*> link;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    std::vector<sg::LinkInRoute> route;
    for (const ChannelId channel : platform.channels[i]) {
      sg::Link*& it = link[channel];
      if (it == nullptr)
        it = zone->create_link("c" + std::to_string(channel), platform.bandwidths[channel])->set_latency(0.0);
      route.emplace_back(it);
    }
    zone->add_route(host[static_cast<std::size_t>(flows[i].from)]->get_netpoint(),
                    host[static_cast<std::size_t>(flows[i].to)]->get_netpoint(), nullptr, nullptr, route, false);
  }
  zone->seal();
  std::vector<double> ends(flows.size(), 0.0);
  sg::Actor::create("sender", host[0], [&] {
    std::vector<sg::CommPtr> comms;
    for (const Flow& flow : flows)
      comms.push_back(sg::Comm::sendto_async(host[static_cast<std::size_t>(flow.from)],
                                             host[static_cast<std::size_t>(flow.to)],
                                             static_cast<std::uint64_t>(flow.bytes)));
    for (const sg::CommPtr& comm : comms) comm->wait();
    for (std::size_t i = 0; i < comms.size(); ++i) ends[i] = comms[i]->get_finish_time();
  });
  engine.run();
  return ends;
}

// By a child that writes the times into a pipe.
std::vector<double> by_simgrid(const Fabric& fabric, const std::vector<Flow>& flows) {
  const Platform platform = platform_of(fabric, flows);
  std::array<int, 2> ends_of_pipe{};
  if (pipe(ends_of_pipe.data()) != 0) return {};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    // Whatever happens, a child is not to come back into the tests.
    try {
      const std::vector<double> ends = simulate(platform, flows, fabric.devices());
      const std::size_t size = ends.size() * sizeof(double);
      _exit(write(ends_of_pipe[1], ends.data(), size) == static_cast<ssize_t>(size) ? 0 : 1);
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "SimGrid: %s\n", problem.what());
      _exit(1);
    }
  }
  close(ends_of_pipe[1]);
  std::vector<double> ends(flows.size());
  std::size_t got = 0;
  const std::size_t size = ends.size() * sizeof(double);
  while (got < size) {
    const ssize_t n = read(ends_of_pipe[0], reinterpret_cast<char*>(ends.data()) + got, size - got);
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  close(ends_of_pipe[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || got != size) return {};
  return ends;
}

// Sets of flows with sizes of their own, so that they end one after another.
class Traffic {
 public:
  explicit Traffic(int devices) : devices_(devices) {}

  std::vector<Flow> permutation() {
    std::vector<int> to(static_cast<std::size_t>(devices_));
    for (int i = 0; i < devices_; ++i) to[static_cast<std::size_t>(i)] = i;
    std::ranges::shuffle(to, random_);
    for (int i = 0; i < devices_; ++i) add(i, to[static_cast<std::size_t>(i)]);
    return std::move(flows_);
  }
  std::vector<Flow> all_to_all(int among) {
    const int apart = devices_ / among;
    for (int i = 0; i < among; ++i)
      for (int j = 0; j < among; ++j) add(i * apart, j * apart);
    return std::move(flows_);
  }
  std::vector<Flow> incast() {
    for (int i = 0; i < devices_; i += 3) add(i, devices_ / 2);
    for (int i = 1; i < devices_; i += 3) add(i, devices_ / 3);
    return std::move(flows_);
  }
  std::vector<Flow> neighbours() {
    for (int i = 0; i < devices_; ++i) add(i, (i + 1) % devices_), add((i + 1) % devices_, i);
    return std::move(flows_);
  }

 private:
  void add(int from, int to) {
    const double bytes = 1e8 * (1 + static_cast<double>(random_() % 1000) / 250);
    if (from != to) flows_.push_back({from, to, std::floor(bytes), 0.0});
  }
  int devices_;
  std::vector<Flow> flows_;
  std::minstd_rand random_{1};
};

void judge(const Fabric& fabric, const std::vector<Flow>& flows, const std::string& what) {
  const FlowSet set(fabric, fabric.capacities(), flows);
  const std::vector<double> ours = finish_times(set.without_latency(), flows), theirs = by_simgrid(fabric, flows);
  ASSERT_EQ(ours.size(), theirs.size()) << what << ": SimGrid gave no times";
  double worst = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] / theirs[i] - 1.0));
  EXPECT_LT(worst, 1e-3) << what;  // seen: 1e-6
  testing::Test::RecordProperty(what, std::to_string(worst));
}

void judge_all(const Fabric& fabric, const std::string& name) {
  judge(fabric, Traffic(fabric.devices()).permutation(), name + "_permutation");
  judge(fabric, Traffic(fabric.devices()).all_to_all(std::min(fabric.devices(), 32)), name + "_all_to_all");
  judge(fabric, Traffic(fabric.devices()).incast(), name + "_incast");
  judge(fabric, Traffic(fabric.devices()).neighbours(), name + "_neighbours");
}

TEST(SimGrid, FatTree) {
  judge_all(test::with_nics(FatTree::k_ary(4), 16, 1, Ecmp::destination), "k4");
  judge_all(test::with_nics(FatTree::k_ary(8), 128, 1, Ecmp::hash), "k8_hash");
  judge_all(test::with_nics(FatTree{{16, 16}, {16}}, 256, 1, Ecmp::split, 3.0), "two_levels_3_to_1");
}

TEST(SimGrid, Torus) {
  for (const Torus& shape : {Torus{{4, 4}}, Torus{{8, 8, 4}}, Torus{{16, 16}}, Torus{{7, 5}, false}}) {
    int nodes = 1;
    for (const int extent : shape.dimensions) nodes *= extent;
    FabricSpec spec = test::shape(shape, Ecmp::hash);
    spec.direct = true;
    judge_all(Fabric::make(test::cpu_spec(nodes, 1), spec).value(), "torus_of_" + std::to_string(nodes));
  }
}

TEST(SimGrid, Dragonfly) {
  judge_all(test::with_nics(Dragonfly{9, 4, 2, 2}, 72, 1, Ecmp::hash), "minimal_72");
  judge_all(test::with_nics(Dragonfly{16, 8, 2, 2}, 256, 1, Ecmp::hash), "minimal_256");
  judge_all(test::with_nics(Dragonfly{9, 4, 2, 2, true}, 72, 1, Ecmp::hash), "valiant_72");
}

TEST(SimGrid, DragonflyPlus) {
  judge_all(test::with_nics(DragonflyPlus{9, 4, 4, 2, 2}, 72, 1, Ecmp::hash), "plus_72");
  judge_all(test::with_nics(DragonflyPlus{8, 8, 4, 4, 4}, 256, 1, Ecmp::destination), "plus_256");
}

// A link that both directions share.
TEST(SimGrid, HalfDuplex) {
  Custom chain;
  const LinkRate link{BytesPerSecond{test::rate}, Seconds{}, Duplex::half};
  for (int i = 0; i < 7; ++i)
    chain.cables.push_back({"node" + std::to_string(i), "node" + std::to_string(i + 1), link, {}, 1, ""});
  judge_all(test::with_nics(chain, 8, 1, Ecmp::hash), "half_duplex_chain");
}

}  // namespace
}  // namespace sibyl::fabric
