#include "oracle/validate/published/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "models/onnx/import.h"
#include "models/zoo/builder.h"
#include "oracle/predict.h"
#include "oracle/validate/published/clusters.h"
#include "oracle/validate/published/devices.h"
#include "oracle/validate/published/frameworks.h"
#include "oracle/validate/published/images.h"
#include "oracle/validate/published/models.h"
#include "oracle/validate/published/strategies.h"

namespace sibyl::published {
namespace {

Result<Graph> graph_of(const ModelRecipe& model, const FrameworkRecipe& framework, std::int64_t micro_batch,
                       const Ints& image = {}) {
  zoo::Builder builder(model.name);
  builder.resize_images(image);
  model.build(builder);
  ImportOptions options;
  options.batch = micro_batch;
  options.dims = model.dims;
  options.loss = model.loss;
  options.apart = framework.apart;
  if (model.fused_attention) options.apart.attention = false;
  SIBYL_TRY(Import import, inspect_onnx_bytes(builder.bytes(), model.name, options));
  if (!import.unsupported.empty()) return fail(import.unsupported.front().reason, import.unsupported.front().node);
  return std::move(import.graph);
}

// The network on images of the size that the row states; `assumed` where it is another than the network's.
Result<Graph> sized_graph_of(const Row& row, const ModelRecipe& model, const FrameworkRecipe& framework,
                             std::int64_t micro_batch, std::string& assumed) {
  SIBYL_TRY(Graph graph, graph_of(model, framework, micro_batch));
  const Ints stated = stated_extents(row.image);
  const Shape image = image_shape(graph);
  if (!model.images || stated.empty() || image.empty()) return graph;
  SIBYL_TRY(const Ints extents, image_extents(stated, image));
  if (std::equal(extents.begin(), extents.end(), image.begin() + 2, image.end())) return graph;
  assumed = fmt::format("the network as it is for images of {}, on images of {}",
                        fmt::join(image.begin() + 2, image.end(), " x "), fmt::join(extents, " x "));
  return graph_of(model, framework, micro_batch, extents);
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Result<Prediction> priced(const Graph& graph, const StrategyRecipe& recipe, const Cluster& cluster) {
  SIBYL_TRY(Prediction whole, predict(graph, recipe.strategy, cluster));
  if (!recipe.half_recomputed) return whole;
  Strategy without = recipe.strategy;
  without.recompute = Recompute::none;
  SIBYL_TRY(const Prediction none, predict(graph, without, cluster));
  for (Seconds Prediction::*time : {&Prediction::step_time, &Prediction::interval_low, &Prediction::interval_high})
    whole.*time = (whole.*time + none.*time) / 2;
  whole.memory.activations = (whole.memory.activations + none.memory.activations) / 2;
  whole.memory.total = (whole.memory.total + none.memory.total) / 2;
  whole.throughput = static_cast<double>(whole.global_batch) / whole.step_time.value();
  return whole;
}

// What the unit says a value is a multiple of, in SI.
Result<double> unit_factor(const Row& row) {
  const std::string unit = lower_case(row.unit);
  switch (*row.metric) {
    case Metric::iteration_time:
    case Metric::fwd_bwd_time:
      if (unit == "s" || unit == "sec" || unit == "seconds" || unit.empty()) return 1.0;
      if (unit == "ms") return 1e-3;
      if (unit == "us") return 1e-6;
      break;
    case Metric::memory:
    case Metric::memory_activations:
      if (unit == "gib" || unit.empty()) return 1073741824.0;
      if (unit == "mib") return 1048576.0;
      if (unit == "gb") return 1e9;
      if (unit == "mb") return 1e6;
      if (unit == "b" || unit == "bytes") return 1.0;
      break;
    case Metric::throughput:
    case Metric::throughput_per_gpu:
      if (unit.find("/s") != std::string::npos || unit.find("per s") != std::string::npos || unit.empty()) return 1.0;
      break;
  }
  return fail(fmt::format("the unit '{}' is not known for {}", row.unit, row.metric_name));
}

void set_times(Verdict& verdict, const Prediction& p, double part) {
  verdict.predicted = p.step_time.value() * part;
  verdict.low = p.interval_low.value() * part;
  verdict.high = p.interval_high.value() * part;
}

void set_rates(Verdict& verdict, const Prediction& p, double items) {
  verdict.predicted = items / p.step_time.value();
  verdict.low = items / p.interval_high.value();
  verdict.high = items / std::max(p.interval_low.value(), 1e-12);
}

Result<void> set_answer(Verdict& verdict, const Prediction& p, const ModelRecipe& model) {
  SIBYL_TRY(const double factor, unit_factor(verdict.row));
  verdict.measured = verdict.row.value * factor;
  const double items = static_cast<double>(p.global_batch) * model.items;
  switch (*verdict.row.metric) {
    case Metric::throughput: set_rates(verdict, p, items); break;
    case Metric::throughput_per_gpu: set_rates(verdict, p, items / p.devices); break;
    case Metric::iteration_time: set_times(verdict, p, 1.0); break;
    case Metric::fwd_bwd_time: set_times(verdict, p, 1.0 - p.breakdown.optimizer / p.step_time); break;
    case Metric::memory: verdict.predicted = verdict.low = verdict.high = p.memory.total.value(); break;
    case Metric::memory_activations:
      verdict.predicted = verdict.low = verdict.high = p.memory.activations.value();
      break;
  }
  return {};
}

// Where the row does not say what a micro-batch is, the largest that fits is taken; of images all of a replica's,
// whose frameworks do not accumulate. What was assumed of images.
Result<std::string> price_with_its_micro_batch(Verdict& verdict, const ModelRecipe& model,
                                               const FrameworkRecipe& framework, StrategyRecipe& strategy,
                                               const Cluster& cluster) {
  std::string assumed;
  const auto price = [&](const StrategyRecipe& with) -> Result<Prediction> {
    const std::int64_t samples = micro_batch_of(with.strategy) * with.strategy.expert;  // of a replica's ranks together
    SIBYL_TRY(const Graph graph, sized_graph_of(verdict.row, model, framework, samples, assumed));
    return priced(graph, with, cluster);
  };
  SIBYL_TRY(verdict.prediction, price(strategy));
  if (verdict.prediction.fits || !strategy.micro_batch_open || model.images) return assumed;
  for (StrategyRecipe smaller = strategy; make_micro_batch_smaller(smaller.strategy);)
    if (Result<Prediction> found = price(smaller); found && found->fits) {
      verdict.prediction = std::move(*found);
      strategy = std::move(smaller);
      break;
    }
  return assumed;
}

std::string micro_batch_sentence(const Strategy& strategy) {
  if (strategy.accumulation == 1) return "one micro-batch a step (the source does not say)";
  return fmt::format("micro-batches of {} (the source does not say)", micro_batch_of(strategy));
}

Result<void> price(Verdict& verdict, DeviceCatalogue& devices) {
  const Row& row = verdict.row;
  if (!row.metric) return fail(fmt::format("the metric '{}' is not one that is predicted", row.metric_name));
  if (row.gpus == 0) return fail("the source does not state how many devices took part");
  SIBYL_TRY(const ModelRecipe model, model_of(row));
  const FrameworkRecipe framework = framework_of(row);
  SIBYL_TRY(const DeviceMatch device, match_device(row.gpu, shipped_calibrations()));
  const MachineRecipe machine = machine_of(row);
  SIBYL_TRY(Cluster cluster, devices.cluster(device.calibration, machine.topology));
  if (framework.dispatch) {
    Device issued = cluster.kernels.device();
    issued.dispatch = *framework.dispatch;
    cluster.kernels = cluster.kernels.on(std::move(issued));
  }
  SIBYL_TRY(StrategyRecipe strategy, strategy_of(row, framework, model, cluster.kernels.device()));
  for (const std::vector<std::string>* assumed :
       {&model.assumed, &framework.assumed, &device.assumed, &machine.assumed, &std::as_const(strategy).assumed})
    append(verdict.assumed, *assumed);
  SIBYL_TRY(const std::string image, price_with_its_micro_batch(verdict, model, framework, strategy, cluster));
  if (!image.empty()) verdict.assumed.push_back(image);
  if (strategy.micro_batch_open) verdict.assumed.push_back(micro_batch_sentence(strategy.strategy));
  if (!verdict.prediction.fits) verdict.assumed.push_back("that it fits: by the prediction it does not");
  return set_answer(verdict, verdict.prediction, model);
}

}  // namespace

std::vector<Verdict> judge(const std::vector<Row>& rows) {
  std::vector<Verdict> verdicts(rows.size());
  DeviceCatalogue devices;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      verdicts[i].row = rows[i];
      if (const Result<void> done = price(verdicts[i], devices); !done) verdicts[i].why_not = done.error().message;
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < std::max(1U, std::thread::hardware_concurrency()); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return verdicts;
}

}  // namespace sibyl::published
