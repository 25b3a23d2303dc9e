// How many strategies a second a search goes through, on all processors: a model and device count that Calculon's
// exhaustive search is published for (GPT-3 175B on 64; Isaev et al., "Calculon: a methodology and tool for high-level
// co-design of systems and large language models", SC 2023), and smaller ones. Of its options, those that Sibyl has:
// tensor, pipeline and data degrees, micro-batches, interleaving, recomputing, a sharded optimizer, the sequence split,
// overlap of gradients; and once more with all that Sibyl's search varies: which axis lies nearest (Calculon: which
// network each is given), sizes of buckets, ZeRO 2 and 3, zero-bubble schedules. Then large clusters by formula alone,
// and what a strategy takes that shares all it needs with others that were priced. Last the spaces that Calculon's
// llm-optimal-execution goes through itself, as far as Sibyl has words for them: its degrees, its batch for each number
// of replicas, its micro-batches; what no formula knows of them (tensor exchanges beside products, optimizer state in
// the host's memory) is sampled. Words on the command line: only rows that begin with one of them ("gpt3-175b on
// 4096"). docs/validation/speed.md has the tables, and what of Calculon's has no counterpart.
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/closed/closed_form.h"
#include "oracle/plan/folding.h"
#include "oracle/search/search.h"
#include "oracle/search/trials.h"

namespace sibyl {
namespace {

struct Case {
  const char *zoo, *cluster;
  int devices = 1;
  std::int64_t batch = 1, sequence = 0;
  std::vector<int> chunks = {2, 4, 8};
  bool simulated = true;  // those that matter, as a search does; else by formula alone
  bool wide = false;      // all that the search varies
  int hidden = 0, heads = 0, layers = 0;  // Calculon's space, that goes by what these can be divided by; 0: it does not

  [[nodiscard]] std::string name() const {
    return fmt::format("{} on {} of {}{}{}", zoo, devices, cluster, wide ? ", all varied" : "",
                       layers > 0 ? ", Calculon's space" : "");
  }
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Of all threads: what a busy machine changes least.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double resident_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}

SearchSpace space_of(const Case& c) {
  SearchSpace space;
  space.devices = {c.devices};
  space.fixed.global_batch = c.batch;
  space.fixed.precision = Precision::bf16;
  space.fixed.half_weights = true;
  space.fixed.optimizer = OptimizerKind::adam;
  space.zero = {0, 1};
  space.chunks = c.chunks;
  space.schedules = {PipelineSchedule::one_forward_one_backward, PipelineSchedule::interleaved};
  space.buckets = {Bytes{25.0 * 1024 * 1024}, Bytes{}};  // overlapped or not
  if (!c.wide) return space;
  space.zero = {0, 1, 2, 3};
  space.schedules = SearchSpace{}.schedules;
  space.buckets = usual_buckets;
  space.orders = true;
  return space;
}

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= number; ++n)
    if (number % n == 0) all.push_back(n);
  return all;
}

// Tensor exchanges beside products or not, where there are some, and optimizer state on the device or in the host's
// memory.
void add_ways(const Strategy& strategy, std::vector<Strategy>& all) {
  for (const bool beside : {false, true})
    for (const Tier tier : {Tier::device, Tier::host}) {
      if (beside && !strategy.sequence) continue;
      all.push_back(strategy);
      all.back().overlap_tensor = beside;
      all.back().optimizer_tier = tier;
    }
}

// Tensor ranks divide the width and the heads, stages the layers; the batch is the greatest multiple of the replicas
// that is no more than the one asked for, one sample a replica at the least.
std::vector<Strategy> calculon_space(const Case& c) {
  std::vector<Strategy> all;
  for (const std::int64_t data : divisors_of(c.devices)) {
    SearchSpace space = space_of(c);
    space.fixed.global_batch = std::max<std::int64_t>(c.batch / data, 1) * data;
    space.micro_batches = divisors_of(space.fixed.global_batch / data);
    space.layers = c.layers;
    space.chunks.clear();
    for (const std::int64_t chunks : divisors_of(c.layers))
      if (chunks > 1) space.chunks.push_back(static_cast<int>(chunks));
    space.orders = true;
    for (const Strategy& s : strategies(space))
      if (s.data == data && c.hidden % s.tensor == 0 && c.heads % s.tensor == 0 && c.layers % s.stages() == 0)
        add_ways(s, all);
  }
  return all;
}

// One thread. Of the program that most strategies share: each of them once, and once more.
void report_again(const Graph& graph, const Cluster& cluster, const std::vector<Strategy>& all) {
  std::map<closed::FormKey, std::vector<const Strategy*>> by_program;
  for (const Strategy& strategy : all) by_program[closed::form_key(strategy, cluster)].push_back(&strategy);
  const auto size = [](const auto& entry) { return entry.second.size(); };
  const auto& most = std::ranges::max_element(by_program, {}, size)->second;
  const std::optional<Folding> folding = fold(graph);
  KernelPrices kernels(cluster);
  const double begin = now();
  const auto form = closed::ProgramForm::make(graph, folding ? &*folding : nullptr, *most.front(), kernels);
  const double made = now();
  if (!form) return;
  std::size_t priced = 0;
  for (const Strategy* strategy : most) priced += (*form)->of(*strategy) ? 1 : 0;
  const double once = now();
  std::vector<double> again;  // microseconds
  for (const Strategy* strategy : most) {
    const double before = now();
    if ((*form)->of(*strategy)) again.push_back((now() - before) * 1e6);
  }
  std::ranges::sort(again);
  if (again.empty()) return;
  fmt::print(
      "|   its largest program: {:.2f} ms; {} strategies, the first time {:.1f} us each; again {:.1f} (median), {:.1f} "
      "(90 %), "
      "{:.1f} (most) | | | | | | | | | | | | |\n",
      (made - begin) * 1e3, priced, (once - made) * 1e6 / static_cast<double>(most.size()), again[again.size() / 2],
      again[again.size() * 9 / 10], again.back());
}

std::string fastest_by_formula(const Trials& trials) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < trials.all().size(); ++i) {
    const Trial& trial = trials.all()[i];
    if (trial.fits && trial.timed() && (!best || trial.time() < trials.all()[*best].time())) best = i;
  }
  if (!best) return "none fits";
  return fmt::format("{}, {:.3f} s", strategy_words(trials.strategy(*best)), trials.all()[*best].time().value());
}

void report(const Case& c) {
  ImportOptions options;
  if (c.sequence > 0) options.dims["seq"] = c.sequence;
  const Graph graph = inspect_onnx_bytes(*zoo_model_bytes(c.zoo), c.zoo, options).value().graph;
  const Cluster one = load_cluster(c.cluster).value();
  const int nodes = (c.devices + one.devices_per_node - 1) / one.devices_per_node;
  const Cluster cluster = resized(one, nodes, one.devices_per_node).value();
  const SearchSpace space = space_of(c);
  const double begin = now(), worked = processor_seconds();
  const std::vector<Strategy> all = c.layers > 0 ? calculon_space(c) : strategies(space);
  const SearchOptions plain;
  Trials trials(graph, cluster, all, plain);
  trials.by_formula(most_device_time);
  const double formula = now() - begin, work = processor_seconds() - worked;
  std::size_t too_large = 0, too_slow = 0, refused = 0, walked = 0;
  for (const Trial& trial : trials.all()) {
    too_large += trial.too_large ? 1 : 0;
    too_slow += trial.ruled_out() ? 1 : 0;
    refused += trial.why_not ? 1 : 0;
    walked += trial.timed() ? 1 : 0;
  }
  fmt::print("| {} | {} | {} | {} | {} | {} |", c.name(), all.size(), too_large, too_slow, refused, walked);
  fmt::print(" {:.2f} | {:.2f} | {:.0f} |", formula, work, static_cast<double>(all.size()) / formula);
  if (!c.simulated) {
    fmt::print(" | | {:.1f} | {} |\n", resident_gigabytes(), fastest_by_formula(trials));
    report_again(graph, cluster, all);
    return;
  }
  const double then = now();
  const SearchResult result = search(graph, space, cluster, plain).value();
  const double whole = now() - then;
  const std::string best = result.best.empty()
                               ? "none fits"
                               : fmt::format("{}, {:.3f} s", strategy_words(result.best.front().strategy),
                                             result.best.front().step_time.value());
  fmt::print(" {} | {:.1f} | {:.1f} | {} |\n", result.simulated, whole, resident_gigabytes(), best);
}

}  // namespace
}  // namespace sibyl

int main(int argc, char** argv) {
  using namespace sibyl;
  fmt::print(
      "| | strategies | too large at once | too slow at once | cannot be split so | walked | formula s | of processors "
      "| strategies/s | simulated | search s | GB | best |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
  const std::vector<int> divisors = {2, 3, 4, 6, 8, 12, 16, 24, 48};
  for (const Case& c : {Case{"resnet50", "dgx1-v100", 8, 512, 0}, Case{"gpt2-xl", "dgx-a100", 8, 64, 1024},
                        Case{"gpt3-175b", "dgx-a100", 64, 64, 2048, divisors},
                        Case{"gpt3-175b", "dgx-a100", 64, 64, 2048, divisors, true, true},
                        Case{"gpt3-175b", "dgx-a100", 4096, 1536, 2048, {2, 4, 8}, false},
                        Case{"gpt3-175b", "dgx-a100", 4096, 1536, 2048, {2, 4, 8}, false, true},
                        Case{"mt-nlg-530b", "dgx-a100", 5128, 1920, 2048, {2, 4, 8}, false},
                        Case{"gpt3-175b", "dgx-a100", 64, 64, 2048, {}, false, false, 12288, 96, 96},
                        Case{"mt-nlg-530b", "dgx-a100", 5128, 2520, 2048, {}, false, false, 20480, 128, 105}}) {
    const auto meant = [name = c.name()](std::string_view word) { return name.starts_with(word); };
    if (argc == 1 || std::any_of(argv + 1, argv + argc, meant)) report(c);
  }
}
