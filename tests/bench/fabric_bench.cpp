// How long fabrics take: to build and compile, to simulate a collective step by step, to answer once compiled.
#include <benchmark/benchmark.h>

#include "netmodel/fabric/contention/simulation.h"
#include "netmodel/fabric/costs.h"

namespace sibyl::fabric {
namespace {

TopologySpec nodes_of_eight(int nodes) {
  TopologySpec spec;
  spec.nodes = nodes;
  spec.devices_per_node = spec.nics_per_node = 8;
  spec.device_link = {LinkKind::nvswitch, BytesPerSecond{370e9}, Seconds{2e-6}};
  spec.nic_bandwidth = BytesPerSecond{50e9};
  return spec;
}

std::shared_ptr<const Fabric> rails(int devices) {
  FabricSpec shape;
  shape.network = RailOptimised{std::min(32, devices / 8), std::max(1, devices / 256), 32, true};
  return std::make_shared<const Fabric>(Fabric::make(nodes_of_eight(devices / 8), shape).value());
}

std::shared_ptr<const Fabric> torus_of_1024() {
  TopologySpec spec = nodes_of_eight(1024);
  spec.devices_per_node = spec.nics_per_node = 1;
  FabricSpec shape;
  shape.network = Torus{{8, 8, 16}};
  shape.direct = true;
  shape.link.latency = Seconds{5e-7};
  return std::make_shared<const Fabric>(Fabric::make(spec, shape).value());
}

constexpr double gibibyte = 1024.0 * 1024 * 1024;

// Every device in one ring all-reduce, step by step, rates shared at every event.
void simulate_ring(benchmark::State& state) {
  const Costs costs(torus_of_1024(), {1024, 1.0, 1.0, true});
  for (auto _ : state) {
    const Schedule ring = costs.schedule_of(Collective::all_reduce, Algorithm::ring, {1, 1024, 1});
    benchmark::DoNotOptimize(simulated_seconds(*costs.fabric(), costs.capacities(), ring, gibibyte));
  }
}
BENCHMARK(simulate_ring)->Unit(benchmark::kMillisecond);

// The graph, the ways of a ring and of a tree over all devices, and their closed forms.
void compile_fabric(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const Costs costs(rails(devices), {devices / 8, 1.0, 1.0, true});
    benchmark::DoNotOptimize(costs.seconds(Collective::all_reduce, Algorithm::ring, gibibyte, {8, devices / 8, 1}));
    benchmark::DoNotOptimize(costs.seconds(Collective::all_reduce, Algorithm::tree, gibibyte, {8, devices / 8, 1}));
  }
}
BENCHMARK(compile_fabric)->Arg(64)->Arg(512)->Arg(4096)->Arg(65536)->Unit(benchmark::kMillisecond);

void answer_compiled(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  const Costs costs(rails(devices), {devices / 8, 1.0, 1.0, true});
  double bytes = 1e6;
  for (auto _ : state) {
    bytes += 1.0;
    benchmark::DoNotOptimize(costs.seconds(Collective::all_reduce, Algorithm::ring, bytes, {8, devices / 8, 1}));
  }
}
BENCHMARK(answer_compiled)->Arg(64)->Arg(65536);

}  // namespace
}  // namespace sibyl::fabric
