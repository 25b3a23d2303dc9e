#include "trainer/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "base/statistics.h"

namespace sibyl::trainer {
namespace {

std::vector<double> of_phase(const Measurement& measurement, Seconds StepTimes::*phase) {
  std::vector<double> values;
  for (const StepTimes& step : measurement.steps) values.push_back((step.*phase).value());
  return values;
}

std::vector<double> of_steady_steps(const Measurement& measurement, Seconds StepTimes::*phase) {
  std::vector<double> values;
  for (std::size_t i = 0; i < measurement.grew.size(); ++i)
    if (!measurement.grew[i]) values.push_back((measurement.steps[i].*phase).value());
  return values.empty() ? of_phase(measurement, phase) : values;
}

std::string device_name(const EmulatedTimes& times) { return times.name + (times.vary ? ", spread" : ""); }

double throughput(const Measurement& measurement, const Plan& plan) {
  const double step = measurement.median(&StepTimes::total).value();
  return step > 0 ? static_cast<double>(plan.strategy.global_batch) / step : 0.0;
}

std::vector<std::int64_t> totals(const std::vector<BytesSent>& ranks) {
  std::vector<std::int64_t> result;
  for (const BytesSent& sent : ranks) result.push_back(sent.total());
  return result;
}

// Of each kind, what every rank sends of it.
nlohmann::ordered_json by_kind(const std::vector<BytesSent>& ranks) {
  nlohmann::ordered_json json;
  for (const BytesSentPart& part : bytes_sent_parts)
    for (const BytesSent& sent : ranks) json[std::string(part.key)].push_back(sent.*part.value);
  return json;
}

nlohmann::ordered_json by_way(const std::vector<OffloadedBytes>& ranks) {
  nlohmann::ordered_json json;
  for (const OffloadedBytes& moved : ranks) {
    json["in"].push_back(moved.in);
    json["out"].push_back(moved.out);
  }
  return json;
}

}  // namespace

Seconds Measurement::median(Seconds StepTimes::*phase) const {
  return Seconds{sibyl::median(of_steady_steps(*this, phase))};
}

double Measurement::spread() const {
  const std::vector<double> times = of_steady_steps(*this, &StepTimes::total);
  return relative_spread(times, sibyl::median(times));
}

std::string device_text(const TrainSettings& settings) {
  if (settings.emulated) return "emulated: " + device_name(*settings.emulated);
  return settings.device.empty() ? "this machine" : settings.device;
}

std::string to_json(const Measurement& m, const Plan& plan, const TrainSettings& settings, const std::string& model,
                    int threads) {
  const Strategy& strategy = plan.strategy;
  const auto seconds = [&](Seconds StepTimes::*phase) { return m.median(phase).value(); };
  nlohmann::ordered_json json;
  json["model"] = model;
  json["devices"] = plan.mesh.size();
  json["parallel"] = parallel_text(strategy);
  json["global_batch"] = strategy.global_batch;
  json["micro_batch"] = plan.micro_batch;
  json["accumulation"] = strategy.accumulation;
  json["precision"] = to_string(strategy.precision);
  json["optimizer"] = to_string(strategy.optimizer);
  json["overlapped"] = strategy.exchange == sibyl::GradientExchange::overlapped;
  json["device"] = device_text(settings);
  json["threads"] = threads;
  json["seed"] = settings.seed;
  json["data"] = settings.data ? settings.data->string() : "synthetic";
  json["warmup"] = settings.warmup;
  json["steps"] = settings.steps;
  json["step_time_s"] = seconds(&StepTimes::total);
  json["step_time_spread"] = m.spread();
  json["step_times_s"] = of_phase(m, &StepTimes::total);
  json["steps_of_new_memory"] = std::ranges::count(m.grew, true);
  json["throughput_samples_per_s"] = throughput(m, plan);
  json["breakdown_s"] = {{"forward", seconds(&StepTimes::forward)},
                         {"backward", seconds(&StepTimes::backward)},
                         {"optimizer", seconds(&StepTimes::optimizer)},
                         {"communication_exposed", seconds(&StepTimes::exchange)}};
  json["peak_memory_bytes"] = m.memory.peak.value();
  json["memory_bytes"] = {{"weights", m.memory.weights.value()},
                          {"buffers", m.memory.buffers.value()},
                          {"optimizer", m.memory.optimizer.value()},
                          {"inputs", m.memory.inputs.value()},
                          {"communication", m.memory.communication.value()}};
  if (!settings.device.empty()) {
    json["memory_bytes"]["framework"] = m.memory.framework.value();
    json["memory_bytes"]["reserved"] = m.memory.reserved.value();
  }
  json["bytes_sent_per_step"] = m.bytes_sent.front().total();
  json["bytes_sent_per_step_by_rank"] = totals(m.bytes_sent);
  json["bytes_planned_per_step_by_rank"] = totals(m.bytes_planned);
  json["bytes_sent_per_step_by_kind"] = by_kind(m.bytes_sent);
  json["bytes_planned_per_step_by_kind"] = by_kind(m.bytes_planned);
  if (strategy.offloads()) {
    json["offload"] = offload_text(strategy);
    json["bytes_offloaded_per_step"] = by_way(m.offloaded);
    json["bytes_offload_planned_per_step"] = by_way(m.offloaded_planned);
  }
  if (settings.emulated) {
    for (const Seconds kernels : m.kernels) json["kernels_s_by_rank"].push_back(kernels.value());
  } else {
    json["losses"] = m.losses;
  }
  if (m.processors_busy) json["processors_busy"] = *m.processors_busy;
  json["replicas_agree"] = m.replicas_agree;
  if (m.accuracy) json["accuracy"] = *m.accuracy;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string to_text(const Measurement& m, const Plan& plan, const TrainSettings& settings) {
  const auto phase = [&](Seconds StepTimes::*p) { return to_string(m.median(p)); };
  std::string text = fmt::format("step        {}  (±{:.1f} %, median of {})\n", phase(&StepTimes::total),
                                 m.spread() * 100, of_steady_steps(m, &StepTimes::total).size());
  if (const auto grew = std::ranges::count(m.grew, true); grew > 0)
    text += fmt::format("new memory  in {} of {} steps, which count only where no other does\n", grew, m.steps.size());
  if (settings.emulated)
    text += fmt::format("device      emulated with the times of {}: nothing was computed\n",
                        device_name(*settings.emulated));
  if (settings.emulated && m.processors_busy)
    text += fmt::format("processors  {:.0f} % busy while steps were measured\n", *m.processors_busy * 100);
  if (!settings.device.empty()) text += fmt::format("device      {}\n", settings.device);
  text += fmt::format("throughput  {:.4g} samples/s\n", throughput(m, plan));
  if (settings.device.empty())
    text += fmt::format("of which    forward {}, backward {}, exchange not hidden {}, optimizer {}\n",
                        phase(&StepTimes::forward), phase(&StepTimes::backward), phase(&StepTimes::exchange),
                        phase(&StepTimes::optimizer));
  text += fmt::format("memory      {} at the peak: weights {}, optimizer {}, buckets {}\n", to_string(m.memory.peak),
                      to_string(m.memory.weights), to_string(m.memory.optimizer), to_string(m.memory.communication));
  if (plan.mesh.size() > 1)
    text += fmt::format("sent        {} bytes a step by each rank at most\n", std::ranges::max(totals(m.bytes_sent)));
  if (plan.strategy.offloads())
    text += fmt::format("offloaded   {} bytes in and {} out a step by rank 0\n", m.offloaded.front().in,
                        m.offloaded.front().out);
  if (!m.losses.empty() && !settings.emulated)
    text += fmt::format("loss        {:.4f} -> {:.4f}\n", m.losses.front(), m.losses.back());
  if (!m.replicas_agree) text += "warning     the ranks' parameters differ\n";
  if (m.accuracy) text += fmt::format("accuracy    {:.2f} %\n", *m.accuracy * 100);
  return text;
}

}  // namespace sibyl::trainer
