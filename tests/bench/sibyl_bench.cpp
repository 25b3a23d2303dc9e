// How long Sibyl itself takes: reading a model, pricing one strategy, pricing a scaling study, searching.
#include <benchmark/benchmark.h>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/predict.h"
#include "oracle/search/search.h"

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

}  // namespace
}  // namespace sibyl
