// How long fabrics take, and how much memory: to build and compile, to simulate a collective step by step, to answer
// once compiled; from 64 to 65,536 ranks.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "netmodel/fabric/contention/simulation.h"
#include "netmodel/fabric/contention/steps.h"
#include "netmodel/fabric/costs.h"
#include "netmodel/network.h"
#include "netmodel/topology.h"

namespace {

std::atomic<std::size_t> allocated{0}, most_allocated{0};

}  // namespace

// All that this program allocates is counted, so that benchmarks can tell the most at once.
void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = allocated += malloc_usable_size(memory);
  for (std::size_t most = most_allocated; now > most && !most_allocated.compare_exchange_weak(most, now);) continue;
  return memory;
}
void operator delete(void* memory) noexcept {
  allocated -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace sibyl::fabric {
namespace {

// Beyond what was allocated when it was made, until it is asked: counter "MB".
class Memory {
 public:
  Memory() : before_(allocated) { most_allocated = before_; }
  void report(benchmark::State& state) const {
    state.counters["MB"] = static_cast<double>(most_allocated - before_) / 1e6;
  }

 private:
  std::size_t before_;
};

TopologySpec nodes_of_eight(int nodes) {
  TopologySpec spec;
  spec.nodes = nodes;
  spec.devices_per_node = spec.nics_per_node = 8;
  spec.device_link = {LinkKind::nvswitch, BytesPerSecond{370e9}, Seconds{2e-6}};
  spec.nic_bandwidth = BytesPerSecond{50e9};
  return spec;
}

FabricSpec rail_shape(int devices) {
  FabricSpec shape;
  shape.network = RailOptimised{std::min(32, devices / 8), std::max(1, devices / 256), 32, true};
  return shape;
}

std::shared_ptr<const Fabric> rails(int devices) {
  return std::make_shared<const Fabric>(Fabric::make(nodes_of_eight(devices / 8), rail_shape(devices)).value());
}

std::shared_ptr<const Fabric> torus(int devices) {
  TopologySpec spec = nodes_of_eight(devices);
  spec.devices_per_node = spec.nics_per_node = 1;
  FabricSpec shape;
  shape.network = Torus{{4, 4, devices / 16}};
  shape.direct = true;
  shape.link.latency = Seconds{5e-7};
  return std::make_shared<const Fabric>(Fabric::make(spec, shape).value());
}

constexpr double gibibyte = 1024.0 * 1024 * 1024;

// Every device in one ring all-reduce, whose rounds are alike: one of them event by event, so many times.
void simulate_ring(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  const Memory memory;
  const Costs costs(torus(devices), {devices, 1.0, 1.0, true});
  for (auto _ : state) {
    const Schedule ring = costs.schedule_of(Collective::all_reduce, Algorithm::ring, {1, devices, 1});
    benchmark::DoNotOptimize(simulated_seconds(*costs.fabric(), costs.capacities(), ring, gibibyte));
  }
  memory.report(state);
}
BENCHMARK(simulate_ring)->Arg(64)->Arg(1024)->Arg(8192)->Arg(65536)->Unit(benchmark::kMillisecond);

// The same step by step: every message of every round.
void simulate_ring_step_by_step(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  const Memory memory;
  const Costs costs(torus(devices), {devices, 1.0, 1.0, true});
  for (auto _ : state) {
    const Schedule ring = costs.schedule_of(Collective::all_reduce, Algorithm::ring, {1, devices, 1});
    benchmark::DoNotOptimize(step_by_step(*costs.fabric(), costs.capacities(), ring, gibibyte).seconds);
  }
  memory.report(state);
}
BENCHMARK(simulate_ring_step_by_step)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

// The graph, the ways of a ring and of a tree over all devices, and their closed forms.
void compile_fabric(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  const Memory memory;
  for (auto _ : state) {
    const Costs costs(rails(devices), {devices / 8, 1.0, 1.0, true});
    benchmark::DoNotOptimize(costs.seconds(Collective::all_reduce, Algorithm::ring, gibibyte, {8, devices / 8, 1}));
    benchmark::DoNotOptimize(costs.seconds(Collective::all_reduce, Algorithm::tree, gibibyte, {8, devices / 8, 1}));
  }
  memory.report(state);
}
BENCHMARK(compile_fabric)->Arg(64)->Arg(512)->Arg(4096)->Arg(65536)->Unit(benchmark::kMillisecond);

// One algorithm's closed form.
void answer_compiled(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  const Costs costs(rails(devices), {devices / 8, 1.0, 1.0, true});
  double bytes = 1e6;
  benchmark::DoNotOptimize(costs.seconds(Collective::all_reduce, Algorithm::ring, bytes, {8, devices / 8, 1}));
  for (auto _ : state) {
    bytes += 1.0;
    benchmark::DoNotOptimize(costs.seconds(Collective::all_reduce, Algorithm::ring, bytes, {8, devices / 8, 1}));
  }
}
BENCHMARK(answer_compiled)->Arg(64)->Arg(1024)->Arg(65536);

// What Network::collective answers once a group was asked about, sizes never the same: of an algorithm by name, and as
// a GPU library chooses, for which it weighs rings and trees in each protocol; by links, and by formula where there are
// none.
void ask(benchmark::State& state, const Network& network, Collective collective, Algorithm asked,
         const GroupPlacement& all) {
  double bytes = 1e6;
  benchmark::DoNotOptimize(network.collective(collective, Bytes{bytes}, all, asked));
  for (auto _ : state) {
    bytes += 1.0;
    benchmark::DoNotOptimize(network.collective(collective, Bytes{bytes}, all, asked));
  }
}
void ask_links(benchmark::State& state, Collective collective, Algorithm asked) {
  const int devices = static_cast<int>(state.range(0));
  ask(state, Network::on_fabric(nodes_of_eight(devices / 8), rail_shape(devices), {}, {}).value(), collective, asked,
      {8, devices / 8, 1});
}
void ask_formula(benchmark::State& state, Collective collective, Algorithm asked) {
  const int nodes = static_cast<int>(state.range(0)) / 8;
  ask(state, Network(Topology::make(nodes_of_eight(nodes)).value(), {}, {}), collective, asked, {8, nodes, 1});
}
// Between hosts of two ranks, over messages that were timed on a wire of 1 Gb/s behind a token bucket of 32 KiB.
Network shaped_hosts(int ranks, std::vector<CollectiveSample> timed) {
  std::vector<PointToPointSample> samples;
  for (double bytes = 64; bytes <= 1 << 24; bytes *= 2)
    for (const bool both_ways : {false, true}) {
      samples.push_back({true, 1, Bytes{bytes}, Seconds{1e-6 + bytes / 5e9}, 0.0, both_ways});
      samples.push_back({false, 1, Bytes{bytes}, Seconds{2e-5 + std::max(0.0, bytes - 32768) * 8e-9}, 0.0, both_ways});
    }
  TopologySpec spec = nodes_of_eight(ranks / 2);
  spec.devices_per_node = 2;
  spec.nics_per_node = 1;
  spec.device_link.kind = LinkKind::shared_memory;
  return {Topology::make(spec).value(), std::move(samples), std::move(timed)};
}
void ask_messages(benchmark::State& state, Collective collective, Algorithm asked) {
  const auto ranks = static_cast<int>(state.range(0));
  ask(state, shaped_hosts(ranks, {}), collective, asked, {2, ranks / 2, 1});
}
// By samples of the group, whose shape between sizes is that of messages.
void ask_samples_and_messages(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const GroupPlacement all{2, ranks / 2, 1};
  std::vector<CollectiveSample> timed;
  for (double bytes = 1024; bytes <= gibibyte; bytes *= 4)
    timed.push_back({Collective::all_reduce, Algorithm::automatic, all, Bytes{bytes}, Seconds{1e-4 + bytes * 2e-8},
                     0.01, "made up"});
  ask(state, shaped_hosts(ranks, std::move(timed)), Collective::all_reduce, Algorithm::automatic, all);
}
// By samples of a node's groups: of this very placement, and carried to several groups of a node at once.
void ask_samples(benchmark::State& state) {
  std::vector<CollectiveSample> samples;
  for (double bytes = 1024; bytes <= gibibyte; bytes *= 4)
    samples.push_back({Collective::all_reduce,
                       Algorithm::automatic,
                       {8, 1, 1},
                       Bytes{bytes},
                       Seconds{1e-5 + bytes / 2e11},
                       0.01,
                       "made up"});
  const Network network(Topology::make(nodes_of_eight(1)).value(), {}, std::move(samples));
  const GroupPlacement placement{8, 1, static_cast<int>(state.range(0))};
  double bytes = 1e6;
  for (auto _ : state) {
    bytes += 1.0;
    benchmark::DoNotOptimize(network.collective(Collective::all_reduce, Bytes{bytes}, placement));
  }
}
BENCHMARK(ask_samples)->Arg(1)->Arg(2);
BENCHMARK(ask_samples_and_messages)->Arg(64)->Arg(1024);
BENCHMARK_CAPTURE(ask_links, ring, Collective::all_reduce, Algorithm::ring)->Arg(64)->Arg(1024)->Arg(65536);
BENCHMARK_CAPTURE(ask_links, all_to_all, Collective::all_to_all, Algorithm::automatic)->Arg(64)->Arg(1024);
BENCHMARK_CAPTURE(ask_links, chosen, Collective::all_reduce, Algorithm::automatic)->Arg(64)->Arg(1024)->Arg(65536);
BENCHMARK_CAPTURE(ask_formula, ring, Collective::all_reduce, Algorithm::ring)->Arg(64)->Arg(1024)->Arg(65536);
BENCHMARK_CAPTURE(ask_formula, chosen, Collective::all_reduce, Algorithm::automatic)->Arg(64)->Arg(1024)->Arg(65536);
BENCHMARK_CAPTURE(ask_messages, ring, Collective::all_reduce, Algorithm::ring)->Arg(64)->Arg(1024);
BENCHMARK_CAPTURE(ask_messages, rabenseifner, Collective::all_reduce, Algorithm::rabenseifner)->Arg(64)->Arg(1024);
BENCHMARK_CAPTURE(ask_messages, chosen, Collective::all_reduce, Algorithm::automatic)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace sibyl::fabric
