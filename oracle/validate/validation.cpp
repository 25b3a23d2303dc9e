#include "oracle/validate/validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/quantity.h"
#include "base/statistics.h"
#include "oracle/validate/goals.h"
#include "oracle/validate/ranking.h"

namespace sibyl {
namespace {

Cell percent(double fraction, bool sign) {
  return {sign ? fmt::format("{:+.1f} %", fraction * 100) : fmt::format("{:.1f} %", fraction * 100),
          plain_number(fraction)};
}
Cell time_cell(Seconds t) { return {to_string(t), plain_number(t.value())}; }
// The parts that a prediction and a run both name.
nlohmann::ordered_json parts_of(const auto& step) {
  return {{"forward", step.forward.value()},
          {"backward", step.backward.value()},
          {"communication_exposed", step.communication_exposed.value()},
          {"optimizer", step.optimizer.value()}};
}

void read_parts(const nlohmann::json& parts, TrainingRun& run) {
  run.forward = Seconds{parts.at("forward").get<double>()};
  run.backward = Seconds{parts.at("backward").get<double>()};
  run.communication_exposed = Seconds{parts.at("communication_exposed").get<double>()};
  run.optimizer = Seconds{parts.at("optimizer").get<double>()};
}

Cell memory_cell(Bytes b) { return {to_string(b), plain_number(b.value())}; }
Cell none() { return {"", ""}; }

constexpr double most_of_a_speed = 1.5;

}  // namespace

TrainingRun mean_of(const std::vector<TrainingRun>& runs) {
  if (runs.size() == 1) return runs.front();  // which may be a mean itself
  const auto of_all = [&](auto&& value) {
    std::vector<double> values;
    for (const TrainingRun& run : runs) values.push_back(value(run));
    return values;
  };
  const auto mean = [&](auto&& value) { return mean_of_usual(of_all(value)); };
  TrainingRun result = runs.front();  // memory and bytes are the same in each
  result.of_rounds.clear();
  for (const TrainingRun& run : runs) {
    const std::vector<Seconds> alone{run.step_time}, &rounds = run.of_rounds.empty() ? alone : run.of_rounds;
    result.of_rounds.insert(result.of_rounds.end(), rounds.begin(), rounds.end());
  }
  std::vector<double> times;
  for (const Seconds time : result.of_rounds) times.push_back(time.value());
  result.step_time = Seconds{mean_of_usual(times, most_of_a_speed)};
  result.forward = Seconds{mean([](const TrainingRun& r) { return r.forward.value(); })};
  result.backward = Seconds{mean([](const TrainingRun& r) { return r.backward.value(); })};
  result.communication_exposed = Seconds{mean([](const TrainingRun& r) { return r.communication_exposed.value(); })};
  result.optimizer = Seconds{mean([](const TrainingRun& r) { return r.optimizer.value(); })};
  result.spread = median(of_all([](const TrainingRun& r) { return r.spread; }));
  result.drift = relative_spread(times, result.step_time.value());
  std::vector<double> busy;
  for (const TrainingRun& run : runs)
    if (run.processors_busy) busy.push_back(*run.processors_busy);
  if (!busy.empty()) result.processors_busy = median(busy);
  result.rounds = static_cast<int>(times.size());
  result.steps = 0;
  for (const TrainingRun& run : runs) result.steps += run.steps;
  return result;
}

double Validated::time_error() const { return prediction.step_time / measurement.step_time - 1; }
double Validated::memory_error() const {
  return tells_memory() ? prediction.memory.total / measurement.peak_memory - 1 : 0.0;
}
bool Validated::bytes_agree() const {
  const std::vector<std::int64_t>& sent = measurement.bytes_sent;
  return sent.empty() || (measurement.bytes_as_planned && std::ranges::find(sent, prediction.bytes_sent) != sent.end());
}
bool Validated::inside_interval() const {
  return measurement.step_time >= prediction.interval_low && measurement.step_time <= prediction.interval_high;
}

ValidationSummary summarize(const std::vector<Validated>& cases) {
  ValidationSummary summary;
  summary.cases = cases.size();
  if (cases.empty()) return summary;
  std::vector<double> errors;
  for (const Validated& v : cases) {
    const double time = std::abs(v.time_error()), memory = std::abs(v.memory_error());
    errors.push_back(time);
    summary.bias += v.time_error();
    summary.memory_cases += v.tells_memory() ? 1 : 0;
    summary.bytes_cases += v.tells_bytes() ? 1 : 0;
    summary.mean_memory_error += memory;
    summary.max_memory_error = std::max(summary.max_memory_error, memory);
    summary.inside_interval += v.inside_interval() ? 1 : 0;
    summary.bytes_agree = summary.bytes_agree && v.bytes_agree();
  }
  const double n = static_cast<double>(cases.size());
  for (const double e : errors) summary.mean_time_error += e / n;
  summary.median_time_error = median(errors);
  summary.max_time_error = *std::max_element(errors.begin(), errors.end());
  summary.bias /= n;
  if (summary.memory_cases > 0) summary.mean_memory_error /= static_cast<double>(summary.memory_cases);
  summary.inside_interval /= n;
  return summary;
}

std::vector<StepSample> as_step_samples(const std::vector<Validated>& cases, double factor) {
  auto compute = [](const auto& step) { return step.forward + step.backward + step.optimizer; };
  std::vector<StepSample> samples;
  for (const Validated& v : cases)
    samples.push_back({v.name, compute(v.prediction.breakdown) / factor, compute(v.measurement), v.measurement.spread,
                       v.measurement.rounds});
  return samples;
}

std::vector<StepSample> with_earlier_rounds(std::vector<StepSample> samples, const std::vector<StepSample>& earlier) {
  for (StepSample& sample : samples) {
    const auto before = std::ranges::find(earlier, sample.name, &StepSample::name);
    if (before == earlier.end()) continue;
    const int rounds = sample.rounds + before->rounds;
    const double share = static_cast<double>(before->rounds) / rounds;
    sample.measured = sample.measured * (1 - share) + before->measured * share;
    sample.spread = std::lerp(sample.spread, before->spread, share);
    sample.rounds = rounds;
  }
  return samples;
}

namespace {

bool any_emulated(const std::vector<Validated>& cases) {
  return std::ranges::any_of(cases, [](const Validated& v) { return !v.measurement.emulated.empty(); });
}

std::vector<double> times_of_rounds(const TrainingRun& run) {
  std::vector<double> times;
  for (const Seconds time : run.of_rounds) times.push_back(time.value());
  return times;
}

std::int64_t most_sent(const TrainingRun& run) {
  return run.bytes_sent.empty() ? 0 : *std::ranges::max_element(run.bytes_sent);
}

}  // namespace

Table to_table(const std::vector<Validated>& cases, const std::vector<Error>& failed) {
  using Align = Column::Align;
  const std::string measured = any_emulated(cases) ? "emulated" : "measured";
  Table table{{{"case", "case", Align::left},
               {"predicted", "predicted_s", Align::right},
               {"±", "half_interval_s", Align::right},
               {measured, measured + "_s", Align::right},
               {"spread", "spread", Align::right},
               {"error", "error", Align::right},
               {"inside", "inside_interval", Align::left},
               {"memory predicted", "memory_predicted_bytes", Align::right},
               {measured, fmt::format("memory_{}_bytes", measured), Align::right},
               {"error", "memory_error", Align::right},
               {"bytes sent", "bytes_sent", Align::right},
               {"as predicted", "bytes_agree", Align::left}},
              {}};
  for (const Validated& v : cases)
    table.rows.push_back(
        {v.name, time_cell(v.prediction.step_time),
         time_cell((v.prediction.interval_high - v.prediction.interval_low) / 2), time_cell(v.measurement.step_time),
         percent(std::hypot(v.measurement.spread, v.measurement.drift), false), percent(v.time_error(), true),
         v.inside_interval() ? "yes" : "no", memory_cell(v.prediction.memory.total),
         v.tells_memory() ? memory_cell(v.measurement.peak_memory) : none(),
         v.tells_memory() ? percent(v.memory_error(), true) : none(),
         v.tells_bytes() ? Cell(std::to_string(most_sent(v.measurement))) : none(),
         v.tells_bytes() ? Cell(v.bytes_agree() ? "yes" : "no") : none()});
  for (const Error& error : failed) {
    if (std::ranges::find(cases, error.where, &Validated::name) != cases.end()) continue;
    table.rows.emplace_back(table.columns.size(), none()).front() = error.where;
  }
  return table;
}

Table to_table(const std::vector<Error>& failed) {
  Table table{{{"not run", "case", Column::Align::left}, {"why", "why", Column::Align::left}}, {}};
  for (const Error& error : failed) table.rows.push_back({error.where, error.message});
  return table;
}

std::string summary_sentence(const ValidationSummary& s) {
  std::string text = fmt::format(
      "{} case{}: step time off by {:.1f} % in the mean, {:.1f} % in the median, {:.1f} % at most (bias {:+.1f} %); "
      "{:.0f} % of them inside their interval",
      s.cases, s.cases == 1 ? "" : "s", s.mean_time_error * 100, s.median_time_error * 100, s.max_time_error * 100,
      s.bias * 100, s.inside_interval * 100);
  if (s.memory_cases > 0)
    text += fmt::format("; memory off by {:.1f} % in the mean, {:.1f} % at most", s.mean_memory_error * 100,
                        s.max_memory_error * 100);
  if (s.bytes_cases > 0)
    text += fmt::format("; bytes sent {}", s.bytes_agree ? "exactly as predicted" : "NOT as predicted");
  return text + ".";
}

std::string emulation_sentence(const std::vector<Validated>& cases) {
  std::set<std::string> devices;
  std::vector<double> busy;
  for (const Validated& v : cases) {
    if (v.measurement.emulated.empty()) continue;
    devices.insert(v.measurement.emulated);
    if (v.measurement.processors_busy) busy.push_back(*v.measurement.processors_busy);
  }
  if (devices.empty()) return {};
  std::string text = fmt::format(
      "EMULATED: nothing was computed. Each kernel took the time that {} says; messages were sent for real. So the "
      "errors are those of network, overlap, schedule and memory, not of kernels.",
      fmt::join(devices, ", "));
  if (!busy.empty())
    text += fmt::format(
        " Processors were busy for {:.0f} % of the time in the median case, {:.0f} % at most: where ranks wait for "
        "processors, too, steps come out longer than predicted.",
        median(busy) * 100, std::ranges::max(busy) * 100);
  return text;
}

namespace {

nlohmann::ordered_json to_json(const Ranking& ranking) {
  return {{"work", ranking.work},
          {"measured_order", ranking.measured},
          {"predicted_order", ranking.predicted},
          {"pairs", ranking.pairs},
          {"pairs_right", ranking.right},
          {"told_apart", ranking.told},
          {"told_apart_right", ranking.told_right},
          {"wrong", ranking.wrong}};
}

}  // namespace

std::string to_json(const std::vector<Validated>& cases, const std::vector<Error>& failed) {
  using nlohmann::ordered_json;
  ordered_json not_run = ordered_json::array();
  for (const Error& error : failed) not_run.push_back({{"case", error.where}, {"why", error.message}});
  ordered_json list = ordered_json::array();
  for (const Validated& v : cases)
    list.push_back({{"case", v.name},
                    {"device", v.measurement.emulated.empty() ? "this machine" : "emulated: " + v.measurement.emulated},
                    {"work", v.work},
                    {"strategy", v.way},
                    {"kind", v.kind},
                    {"stages", v.measurement.stages},
                    {"predicted_s", v.prediction.step_time.value()},
                    {"interval_s", {v.prediction.interval_low.value(), v.prediction.interval_high.value()}},
                    {"measured_s", v.measurement.step_time.value()},
                    {"spread", v.measurement.spread},
                    {"drift", v.measurement.drift},
                    {"rounds", v.measurement.rounds},
                    {"rounds_s", times_of_rounds(v.measurement)},
                    {"steps", v.measurement.steps},
                    {"processors_busy",
                     v.measurement.processors_busy ? ordered_json(*v.measurement.processors_busy) : ordered_json()},
                    {"error", v.time_error()},
                    {"inside_interval", v.inside_interval()},
                    {"breakdown_predicted_s", parts_of(v.prediction.breakdown)},
                    {"breakdown_measured_s", parts_of(v.measurement)},
                    {"memory_predicted_bytes", v.prediction.memory.total.value()},
                    {"memory_measured_bytes", v.measurement.peak_memory.value()},
                    {"memory_error", v.memory_error()},
                    {"bytes_sent", v.tells_bytes() ? ordered_json(most_sent(v.measurement)) : ordered_json()},
                    {"bytes_sent_by_rank", v.measurement.bytes_sent},
                    {"bytes_as_planned", v.measurement.bytes_as_planned},
                    {"bytes_predicted", v.prediction.bytes_sent},
                    {"provenance",
                     {{"measured", v.prediction.provenance.measured},
                      {"interpolated", v.prediction.provenance.interpolated},
                      {"estimated", v.prediction.provenance.estimated}}}});
  const ValidationSummary s = summarize(cases);
  ordered_json orders = ordered_json::array();
  for (const Ranking& ranking : rankings(cases)) orders.push_back(to_json(ranking));
  ordered_json kinds = ordered_json::array();
  for (const StrategySummary& each : by_strategy(cases))
    kinds.push_back({{"kind", each.kind},
                     {"cases", each.cases},
                     {"mean_time_error", each.mean_error},
                     {"bias", each.bias},
                     {"max_time_error", each.max_error}});
  const ordered_json document = {{"schema", "sibyl-validation"},
                                 {"version", 1},
                                 {"emulated", any_emulated(cases)},
                                 {"summary",
                                  {{"cases", s.cases},
                                   {"mean_time_error", s.mean_time_error},
                                   {"median_time_error", s.median_time_error},
                                   {"max_time_error", s.max_time_error},
                                   {"bias", s.bias},
                                   {"inside_interval", s.inside_interval},
                                   {"mean_memory_error", s.mean_memory_error},
                                   {"max_memory_error", s.max_memory_error},
                                   {"bytes_agree", s.bytes_agree}}},
                                 {"strategies", std::move(kinds)},
                                 {"orders", std::move(orders)},
                                 {"failed", std::move(not_run)},
                                 {"cases", std::move(list)}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace {

// Whose it is; empty where this machine computed.
std::string emulated_device(const nlohmann::json& run) {
  constexpr std::string_view emulated = "emulated: ";
  const std::string device = run.value("device", "this machine");
  return device.starts_with(emulated) ? device.substr(emulated.size()) : std::string();
}

std::optional<double> busy_processors(const nlohmann::json& run) {
  const auto found = run.find("processors_busy");
  return found == run.end() || found->is_null() ? std::nullopt : std::optional(found->get<double>());
}

}  // namespace

Result<TrainingRun> parse_training_run(const std::string& json, const std::string& what) {
  const auto document = nlohmann::json::parse(json, nullptr, false);
  if (document.is_discarded()) return fail("the training run printed no JSON", what);
  TrainingRun m;
  try {
    m.step_time = Seconds{document.at("step_time_s").get<double>()};
    m.spread = document.at("step_time_spread").get<double>();
    m.steps = document.at("steps").get<int>();
    m.peak_memory = Bytes{document.value("peak_memory_bytes", 0.0)};
    m.bytes_sent = document.value("bytes_sent_per_step_by_rank", std::vector<std::int64_t>{});
    m.bytes_as_planned =
        m.bytes_sent.empty() || (m.bytes_sent == document.at("bytes_planned_per_step_by_rank") &&
                                 document.value("bytes_sent_per_step_by_kind", nlohmann::json()) ==
                                     document.value("bytes_planned_per_step_by_kind", nlohmann::json()));
    m.emulated = emulated_device(document);
    m.processors_busy = busy_processors(document);
    read_parts(document.at("breakdown_s"), m);
  } catch (const nlohmann::json::exception& e) {
    return fail(fmt::format("cannot read the training run's JSON: {}", e.what()), what);
  }
  if (!(m.step_time.value() > 0) || m.peak_memory.value() < 0) return fail("the training run measured nothing", what);
  return m;
}

Result<std::map<std::string, TrainingRun>> parse_measurements(const std::string& json, const std::string& file) {
  const auto document = nlohmann::json::parse(json, nullptr, false);
  if (document.is_discarded()) return fail("is no JSON, or not all of it", file);
  std::map<std::string, TrainingRun> runs;
  try {
    if (document.at("schema") != "sibyl-validation") return fail("is no table of `sibyl validate --save`", file);
    for (const auto& one : document.at("cases")) {
      TrainingRun m;
      m.step_time = Seconds{one.at("measured_s").get<double>()};
      m.spread = one.at("spread").get<double>();
      m.drift = one.value("drift", 0.0);
      m.rounds = std::max(1, one.value("rounds", 1));
      for (const double seconds : one.value("rounds_s", std::vector<double>{})) m.of_rounds.emplace_back(seconds);
      const bool nothing = std::ranges::any_of(m.of_rounds, [](Seconds time) { return !(time.value() > 0); });
      m.steps = one.at("steps").get<int>();
      m.peak_memory = Bytes{one.at("memory_measured_bytes").get<double>()};
      m.bytes_sent = one.value("bytes_sent_by_rank", std::vector<std::int64_t>{});
      if (m.bytes_sent.empty() && one.at("bytes_sent").is_number()) m.bytes_sent = {one.at("bytes_sent")};
      m.bytes_as_planned = one.value("bytes_as_planned", true);
      m.emulated = emulated_device(one);
      m.processors_busy = busy_processors(one);
      m.stages = one.value("stages", std::vector<std::string>{});
      read_parts(one.at("breakdown_measured_s"), m);
      if (nothing || !(m.step_time.value() > 0) || m.peak_memory.value() < 0)
        return fail("a case measured nothing", file, one.at("case").get<std::string>());
      runs[one.at("case").get<std::string>()] = m;
    }
  } catch (const nlohmann::json::exception& e) {
    return fail(fmt::format("is no table of `sibyl validate --save`: {}", e.what()), file);
  }
  return runs;
}

}  // namespace sibyl
