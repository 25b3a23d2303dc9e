// How long Sibyl itself takes: reading a model, pricing one strategy, pricing a scaling study, searching; how that
// grows with devices and layers; a step's timeline; and one strategy more of a program that is known.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "models/onnx/import.h"
#include "models/zoo/builder.h"
#include "models/zoo/families.h"
#include "models/zoo/zoo.h"
#include "oracle/closed/closed_form.h"
#include "oracle/closed/first_answer.h"
#include "oracle/plan/folding.h"
#include "oracle/predict.h"
#include "oracle/search/search.h"
#include "oracle/trace/trace.h"

namespace sibyl {
namespace {

Graph graph_of(const std::string& name) {
  ImportOptions options;
  options.batch = 1;
  return inspect_onnx_bytes(zoo_model_bytes(name).value(), name, options).value().graph;
}

void import_model(benchmark::State& state, const std::string& name) {
  const std::string bytes = zoo_model_bytes(name).value();
  ImportOptions options;
  options.batch = 1;
  for (auto _ : state) benchmark::DoNotOptimize(inspect_onnx_bytes(bytes, name, options));
}
BENCHMARK_CAPTURE(import_model, resnet50, "resnet50")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(import_model, gpt2, "gpt2")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(import_model, gpt_1t, "gpt-1t")->Unit(benchmark::kMillisecond);

void predict_model(benchmark::State& state, const std::string& name, const std::string& cluster_name) {
  const Graph graph = graph_of(name);
  const Cluster cluster = load_cluster(cluster_name).value();
  const Strategy strategy = {.data = 64, .global_batch = 64 * 16};
  for (auto _ : state) benchmark::DoNotOptimize(predict(graph, strategy, cluster));
}
BENCHMARK_CAPTURE(predict_model, resnet50, "resnet50", "abci-v100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict_model, gpt2, "gpt2", "dgx-a100")->Unit(benchmark::kMillisecond);

void scale_model(benchmark::State& state) {
  const Graph graph = graph_of("resnet50");
  const Cluster cluster = load_cluster("abci-v100").value();
  const Strategy strategy = {.data = 1, .global_batch = 64};
  const std::vector<int> devices = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  for (auto _ : state) benchmark::DoNotOptimize(scale(graph, strategy, cluster, devices, Scaling::weak));
}
BENCHMARK(scale_model)->Unit(benchmark::kMillisecond);

// Items are strategies.
void search_model(benchmark::State& state, const std::string& name, std::int64_t batch) {
  const Graph graph = graph_of(name);
  const Cluster cluster = load_cluster("dgx-a100").value();
  SearchSpace space;
  space.fixed.global_batch = batch;
  space.fixed.precision = Precision::bf16;
  space.fixed.optimizer = OptimizerKind::adamw;
  space.devices = {8};
  const auto size = static_cast<std::int64_t>(strategies(space).size());
  for (auto _ : state) benchmark::DoNotOptimize(search(graph, space, cluster));
  state.SetItemsProcessed(state.iterations() * size);
}
BENCHMARK_CAPTURE(search_model, resnet50, "resnet50", 64)->Unit(benchmark::kSecond)->UseRealTime();
BENCHMARK_CAPTURE(search_model, bert_base, "bert-base", 64)->Unit(benchmark::kSecond)->UseRealTime();

// Like Megatron-LM's: GPT-3 175B and its kin, bf16 beside f32 masters.
Strategy large(int tensor, int pipeline, int devices, std::int64_t micro_batches) {
  Strategy s;
  s.tensor = tensor, s.pipeline = pipeline, s.data = devices / (tensor * pipeline);
  s.sequence = tensor > 1;
  s.accumulation = micro_batches, s.global_batch = s.data * micro_batches;
  s.precision = Precision::bf16, s.half_weights = true;
  s.optimizer = OptimizerKind::adam, s.zero = s.data > 1 ? 1 : 0;
  return s;
}

Cluster with_devices(const std::string& name, int devices) {
  const Cluster one = load_cluster(name).value();
  return resized(one, (devices + one.devices_per_node - 1) / one.devices_per_node, one.devices_per_node).value();
}

// What is timed next is asked of a cluster that was asked before: its first answer also sorts what was measured of
// kernels, once.
void first_prediction(benchmark::State& state, const std::string& name, const std::string& cluster_name) {
  const Graph graph = graph_of(name);
  const Strategy strategy = {.data = 64, .global_batch = 64};
  for (auto _ : state) {
    state.PauseTiming();
    const Cluster cluster = with_devices(cluster_name, 64);
    state.ResumeTiming();
    benchmark::DoNotOptimize(predict(graph, strategy, cluster));
  }
}
BENCHMARK_CAPTURE(first_prediction, resnet50, "resnet50", "abci-v100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(first_prediction, gpt2, "gpt2", "dgx-a100")->Unit(benchmark::kMillisecond);

// A step in every detail, as a timeline.
// `most`: kernels that are shown; of a pipeline that has more its turns alone are.
void trace_of(benchmark::State& state, const std::string& name, const std::string& cluster_name,
              const Strategy& strategy, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  const Graph graph = graph_of(name);
  const Cluster cluster = with_devices(cluster_name, strategy.devices());
  benchmark::DoNotOptimize(predict(graph, strategy, cluster));
  std::size_t spans = 0;
  for (auto _ : state) {
    const PredictedTrace trace = trace_step(graph, strategy, cluster, most).value();
    spans = 0;
    for (const TraceProcess& process : trace.processes)
      for (const TraceTrack& track : process.tracks) spans += track.spans.size();
    benchmark::DoNotOptimize(spans);
  }
  state.counters["spans"] = static_cast<double>(spans);
}
BENCHMARK_CAPTURE(trace_of, resnet50, "resnet50", "abci-v100", Strategy{.data = 64, .global_batch = 64 * 64})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(trace_of, gpt2_xl, "gpt2-xl", "dgx-a100", Strategy{.data = 64, .global_batch = 64 * 4})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(trace_of, gpt3_175b, "gpt3-175b", "dgx-a100", large(8, 8, 512, 24))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(trace_of, gpt3_175b_turns, "gpt3-175b", "dgx-a100", large(8, 8, 512, 24), 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(trace_of, gpt3_175b_deep, "gpt3-175b", "dgx-a100", large(8, 64, 4096, 192))
    ->Unit(benchmark::kMillisecond);

// From 64 devices to 65,536, the batch growing with the replicas: replicas alone, and GPT-3 in replicas of 64.
void devices_of_replicas(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const Graph graph = graph_of("resnet50");
  const Cluster cluster = with_devices("abci-v100", devices);
  const Strategy strategy = {.data = devices, .global_batch = std::int64_t{devices} * 64};
  benchmark::DoNotOptimize(predict(graph, strategy, cluster));
  for (auto _ : state) benchmark::DoNotOptimize(predict(graph, strategy, cluster));
}
BENCHMARK(devices_of_replicas)->RangeMultiplier(4)->Range(64, 65536)->Unit(benchmark::kMillisecond);

void devices_of_pipelines(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const Graph graph = graph_of("gpt3-175b");
  const Cluster cluster = with_devices("dgx-a100", devices);
  benchmark::DoNotOptimize(predict(graph, large(8, 8, devices, 24), cluster));
  for (auto _ : state) benchmark::DoNotOptimize(predict(graph, large(8, 8, devices, 24), cluster));
}
BENCHMARK(devices_of_pipelines)->RangeMultiplier(4)->Range(64, 65536)->Unit(benchmark::kMillisecond);

// GPT-2's layers, 1,600 wide, 25 heads: as many as are asked for.
std::string gpt_of(std::int64_t layers) {
  zoo::Builder builder("gpt");
  zoo::gpt2(builder, {.layers = layers, .width = 1600, .heads = 25});
  return builder.bytes();
}
Graph graph_of_layers(std::int64_t layers) {
  ImportOptions options;
  options.batch = 1;
  return inspect_onnx_bytes(gpt_of(layers), "gpt", options).value().graph;
}
constexpr std::int64_t few_layers = 10, many_layers = 1000;

void layers_imported(benchmark::State& state) {
  const std::string bytes = gpt_of(state.range(0));
  ImportOptions options;
  options.batch = 1;
  for (auto _ : state) benchmark::DoNotOptimize(inspect_onnx_bytes(bytes, "gpt", options));
  state.SetComplexityN(state.range(0));
}
void layers_predicted(benchmark::State& state) {
  const Graph graph = graph_of_layers(state.range(0));
  const Cluster cluster = with_devices("dgx-a100", 64);
  const Strategy strategy = {.data = 64, .global_batch = 64};
  benchmark::DoNotOptimize(predict(graph, strategy, cluster));
  for (auto _ : state) benchmark::DoNotOptimize(predict(graph, strategy, cluster));
  state.SetComplexityN(state.range(0));
}
// The first answer of a model: its program is made, and every kernel priced.
void layers_by_formula(benchmark::State& state) {
  const Graph graph = graph_of_layers(state.range(0));
  const Cluster cluster = with_devices("dgx-a100", 64);
  const Strategy strategy = {.data = 64, .global_batch = 64};
  benchmark::DoNotOptimize(closed::FirstAnswers(graph, cluster).of(strategy));
  for (auto _ : state) benchmark::DoNotOptimize(closed::FirstAnswers(graph, cluster).of(strategy));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(layers_imported)
    ->RangeMultiplier(10)
    ->Range(few_layers, many_layers)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();
BENCHMARK(layers_predicted)
    ->RangeMultiplier(10)
    ->Range(few_layers, many_layers)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();
BENCHMARK(layers_by_formula)
    ->RangeMultiplier(10)
    ->Range(few_layers, many_layers)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

double microseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// GPT-3 175B on 4,096 devices, the default space of a search: the program that most of its strategies share, made and
// priced, and these strategies with what each takes then, ascending.
struct Compiled {
  Graph graph = graph_of("gpt3-175b");
  Cluster cluster = with_devices("dgx-a100", 4096);
  KernelPrices kernels{cluster};
  std::optional<Folding> folding = fold(graph);
  std::vector<Strategy> strategies;
  std::unique_ptr<closed::ProgramForm> form;
  double within_goal = 0;  // of them, in 20 us

  Compiled() {
    SearchSpace space;
    space.fixed = large(1, 1, 1, 1536);
    space.devices = {4096};
    std::map<closed::FormKey, std::vector<Strategy>> by_program;
    for (const Strategy& strategy : sibyl::strategies(space))
      by_program[closed::form_key(strategy, cluster)].push_back(strategy);
    const auto size = [](const auto& entry) { return entry.second.size(); };
    strategies = std::ranges::max_element(by_program, {}, size)->second;
    form = made();
    std::erase_if(strategies, [&](const Strategy& strategy) { return !form->of(strategy); });
    std::vector<std::pair<double, std::size_t>> taken;
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      double least = 1e9;
      for (int again = 0; again < 5; ++again) {
        const double begin = microseconds();
        benchmark::DoNotOptimize(form->of(strategies[i]));
        least = std::min(least, microseconds() - begin);
      }
      taken.emplace_back(least, i);
    }
    std::ranges::sort(taken);
    constexpr double goal = 20;
    std::vector<Strategy> ascending;
    for (const auto& [time, i] : taken) {
      ascending.push_back(strategies[i]);
      within_goal += time < goal ? 1.0 / static_cast<double>(taken.size()) : 0.0;
    }
    strategies = std::move(ascending);
  }
  std::unique_ptr<closed::ProgramForm> made() {
    return closed::ProgramForm::make(graph, folding ? &*folding : nullptr, strategies.front(), kernels).value();
  }
};
Compiled& compiled() {
  static Compiled once;
  return once;
}

// Once more of one that is known: the one at this share of them, from the fastest priced to the slowest.
void strategy_evaluated(benchmark::State& state, double share) {
  Compiled& c = compiled();
  const Strategy& strategy =
      c.strategies[static_cast<std::size_t>(share * static_cast<double>(c.strategies.size() - 1))];
  for (auto _ : state) benchmark::DoNotOptimize(c.form->of(strategy));
  state.SetLabel(strategy_words(strategy));
  state.counters["within_20us"] = c.within_goal;
}
BENCHMARK_CAPTURE(strategy_evaluated, first_quartile, 0.25)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(strategy_evaluated, median, 0.5)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(strategy_evaluated, of_100_the_90th, 0.9)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(strategy_evaluated, of_100_the_99th, 0.99)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(strategy_evaluated, slowest, 1.0)->Unit(benchmark::kMicrosecond);

// All of them for the first time, of a program that was just made: items are strategies.
void strategies_first_evaluated(benchmark::State& state) {
  Compiled& c = compiled();
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<closed::ProgramForm> form = c.made();
    state.ResumeTiming();
    for (const Strategy& strategy : c.strategies) benchmark::DoNotOptimize(form->of(strategy));
    state.PauseTiming();
    form.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(c.strategies.size()));
}
BENCHMARK(strategies_first_evaluated)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sibyl
