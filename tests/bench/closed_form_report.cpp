// How far strategies by formula (oracle/closed) are from their simulation, and how much sooner they are known: real
// models, the space of `sibyl search`, every n-th strategy of it. docs/search.md has its table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/closed/closed_form.h"
#include "oracle/predict.h"
#include "oracle/search/space.h"

namespace sibyl {
namespace {

struct Case {
  const char *zoo, *cluster;
  int devices = 1;
  std::int64_t batch = 1, sequence = 0;
  Precision precision = Precision::bf16;
  std::size_t every = 1;  // is simulated, too
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double quantile(std::vector<double>& all, double share) {
  std::ranges::sort(all);
  return 100 * all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
}

SearchSpace space_of(const Case& c) {
  SearchSpace space;
  space.devices = {c.devices};
  space.fixed.global_batch = c.batch;
  space.fixed.precision = c.precision;
  space.fixed.half_weights = c.sequence > 0;
  space.fixed.optimizer = c.sequence > 0 ? OptimizerKind::adamw : OptimizerKind::momentum;
  return space;
}

std::vector<std::optional<closed::Form>> by_formula(const Graph& graph, const Cluster& cluster,
                                                    const std::vector<Strategy>& all) {
  KernelPrices kernels(cluster);
  const std::optional<Folding> folding = fold(graph);
  std::map<closed::FormKey, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < all.size(); ++i) groups[closed::form_key(all[i], cluster)].push_back(i);
  std::vector<std::optional<closed::Form>> forms(all.size());
  for (const auto& [key, members] : groups) {
    const Strategy& first = all[members.front()];
    const auto made = closed::ProgramForm::make(graph, folding ? &*folding : nullptr, first, kernels);
    for (const std::size_t i : members)
      if (const auto form = made ? (*made)->of(all[i]) : tl::unexpected(made.error())) forms[i] = *form;
  }
  return forms;
}

void report(const Case& c) {
  ImportOptions options;
  if (c.sequence > 0) options.dims["seq"] = c.sequence;
  const Graph graph = inspect_onnx_bytes(*zoo_model_bytes(c.zoo), c.zoo, options).value().graph;
  const Cluster one = load_cluster(c.cluster).value();
  const Cluster cluster =
      resized(one, (c.devices + one.devices_per_node - 1) / one.devices_per_node, one.devices_per_node).value();
  const std::vector<Strategy> all = strategies(space_of(c));
  const double begin = now();
  const auto forms = by_formula(graph, cluster, all);
  const double formula = (now() - begin) / static_cast<double>(all.size());
  Evaluator evaluator(graph, cluster);
  std::vector<double> time, memory;
  const double then = now();
  for (std::size_t i = 0; i < all.size(); i += c.every) {
    const auto exact = evaluator.evaluate(all[i]);
    if (!exact || !forms[i]) continue;
    time.push_back(std::abs(forms[i]->step_time / exact->step_time - 1));
    memory.push_back(std::abs(forms[i]->memory / exact->memory.total - 1));
  }
  const double simulation = (now() - then) / static_cast<double>((all.size() + c.every - 1) / c.every);
  fmt::print("| {} on {} of {} | {} | {} | {:.2f} | {:.2f} | {:.1f} | {:.1f} | {:.1f} | {:.0f} | {:.0f} | {:.0f} |\n",
             c.zoo, c.devices, c.cluster, all.size(), time.size(), quantile(time, 0.5), quantile(time, 0.9),
             quantile(time, 1.0), quantile(memory, 0.5), quantile(memory, 0.9), quantile(memory, 1.0), formula * 1e6,
             simulation * 1e6);
}

}  // namespace
}  // namespace sibyl

int main() {
  using namespace sibyl;
  fmt::print(
      "| | strategies | simulated | time: median % | 90 % | most | memory: median % | 90 % | most | formula us | "
      "simulation us |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const Case& c : {Case{"gpt2-xl", "dgx-a100", 8, 64, 1024, Precision::bf16, 11},
                        Case{"bert-large", "dgx1-v100", 8, 128, 512, Precision::fp16, 11},
                        Case{"resnet50", "dgx1-v100", 8, 512, 0, Precision::fp16, 7},
                        Case{"llama3-8b", "dgx-h100", 64, 512, 2048, Precision::bf16, 211}})
    report(c);
}
