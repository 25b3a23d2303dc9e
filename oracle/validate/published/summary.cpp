// Summaries of verdicts, and how they are written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "base/statistics.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"
#include "oracle/validate/published/judge.h"

namespace sibyl::published {
namespace {

using Json = nlohmann::ordered_json;

// The value that 90 % of them do not exceed, between neighbours (as numpy's percentile).
double ninetieth(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double at = 0.9 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

SourceSummary summary_of(const std::string& source, const std::vector<const Verdict*>& verdicts) {
  SourceSummary summary{.source = source, .rows = verdicts.size()};
  std::vector<double> errors;
  for (const Verdict* verdict : verdicts) {
    if (!verdict->priced()) continue;
    errors.push_back(std::abs(verdict->error()));
    summary.bias += verdict->error();
    summary.mean_error += errors.back();
    if (verdict->measured >= verdict->low && verdict->measured <= verdict->high) summary.inside_interval += 1;
  }
  summary.priced = errors.size();
  if (errors.empty()) return summary;
  const auto n = static_cast<double>(errors.size());
  summary.bias /= n;
  summary.mean_error /= n;
  summary.inside_interval /= n;
  summary.median_error = median(errors);
  summary.p90_error = ninetieth(errors);
  summary.max_error = *std::max_element(errors.begin(), errors.end());
  return summary;
}

bool is_memory(const Verdict& v) {
  return v.row.metric == Metric::memory || v.row.metric == Metric::memory_activations;
}
bool is_rate(const Verdict& v) {
  return v.row.metric == Metric::throughput || v.row.metric == Metric::throughput_per_gpu;
}

Cell quantity(const Verdict& v, double value) {
  const std::string text = is_memory(v) ? to_string(Bytes{value})
                           : is_rate(v) ? with_prefix(value, "/s")
                                        : to_string(Seconds{value});
  return {text, plain_number(value)};
}

Cell share(double value) { return {percent(value), plain_number(value)}; }
Cell signed_share(double value) { return {signed_percent(value), plain_number(value)}; }

// Of one micro-batch, over all stages of a pipeline.
Json times_by_kind(const std::vector<OperationCost>& operations) {
  std::map<std::string, std::pair<Seconds, Seconds>> kinds;
  for (const OperationCost& o : operations) {
    auto& [forward, backward] = kinds[o.kind];
    forward += o.forward.time;
    backward += o.backward.time;
  }
  Json json = Json::object();
  for (const auto& [kind, times] : kinds)
    json[kind] = {{"forward", times.first.value()}, {"backward", times.second.value()}};
  return json;
}

Json json_of(const Verdict& v) {
  Json json = {{"line", v.row.line},
               {"source", v.row.source},
               {"case", case_name(v.row)},
               {"metric", v.row.metric_name},
               {"unit", v.row.unit}};
  if (!v.priced()) {
    json["not_priced"] = v.why_not;
    return json;
  }
  const Prediction& p = v.prediction;
  json["measured"] = v.measured;
  json["predicted"] = v.predicted;
  json["interval"] = {v.low, v.high};
  json["error"] = v.error();
  json["assumed"] = v.assumed;
  json["step_time_s"] = p.step_time.value();
  for (const TimePart& part : time_parts())
    json["breakdown_s"][std::string(part.key)] = (p.breakdown.*part.value).value();
  json["memory_bytes"]["total"] = p.memory.total.value();
  for (const MemoryPart& part : memory_parts())
    json["memory_bytes"][std::string(part.key)] = (p.memory.*part.value).value();
  json["fits"] = p.fits;
  json["provenance"] = {{"measured", p.provenance.measured},
                        {"interpolated", p.provenance.interpolated},
                        {"estimated", p.provenance.estimated}};
  json["limits"] = Json::array();
  for (const Limit& l : p.limits)
    json["limits"].push_back({{"name", l.name}, {"where", l.where}, {"value", l.value}, {"unit", l.unit}});
  json["operations_s"] = times_by_kind(p.operations);
  return json;
}

}  // namespace

std::vector<SourceSummary> summarize(const std::vector<Verdict>& verdicts) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Verdict*>> by_source;
  for (const Verdict& verdict : verdicts) {
    auto& of_source = by_source[verdict.row.source];
    if (of_source.empty()) order.push_back(verdict.row.source);
    of_source.push_back(&verdict);
  }
  std::vector<SourceSummary> summaries;
  for (const std::string& source : order) summaries.push_back(summary_of(source, by_source[source]));
  return summaries;
}

std::string case_name(const Row& row) {
  std::string text = fmt::format("{} on {} {}", row.model, row.gpus, row.gpu);
  const auto add = [&](const char* name, const std::optional<std::int64_t>& value, std::int64_t usual) {
    if (value && *value != usual) text += fmt::format(" {}={}", name, *value);
  };
  add("data", row.dp, 1), add("tensor", row.tp, 1), add("pipeline", row.pp, 1), add("zero", row.zero, 0);
  if (!row.precision.empty()) text += " " + row.precision;
  if (row.global_batch) text += fmt::format(" batch {}", *row.global_batch);
  if (row.micro_batch) text += fmt::format("/{}", *row.micro_batch);
  if (!row.recompute.empty() && row.recompute != "none") text += " recompute " + row.recompute;
  return text;
}

Table sources_table(const std::vector<SourceSummary>& summaries) {
  Table table;
  table.columns = {{"source", "source", Column::Align::left},
                   {"rows", "n"},
                   {"priced", "priced"},
                   {"mean", "mean_error"},
                   {"median", "median_error"},
                   {"p90", "p90_error"},
                   {"max", "max_error"},
                   {"bias", "bias"},
                   {"inside", "inside_interval"}};
  for (const SourceSummary& s : summaries) {
    std::vector<Cell> cells = {s.source, std::to_string(s.rows), std::to_string(s.priced)};
    for (const double error : {s.mean_error, s.median_error, s.p90_error, s.max_error})
      cells.push_back(s.priced > 0 ? share(error) : Cell("–", ""));
    cells.push_back(s.priced > 0 ? signed_share(s.bias) : Cell("–", ""));
    cells.push_back(s.priced > 0 ? share(s.inside_interval) : Cell("–", ""));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table rows_table(const std::vector<Verdict>& verdicts) {
  Table table;
  table.columns = {{"line", "line"},
                   {"source", "source", Column::Align::left},
                   {"case", "case", Column::Align::left},
                   {"metric", "metric", Column::Align::left},
                   {"measured", "measured"},
                   {"predicted", "predicted"},
                   {"low", "low"},
                   {"high", "high"},
                   {"error", "error"},
                   {"assumed, or why not priced", "remarks", Column::Align::left}};
  for (const Verdict& v : verdicts) {
    std::vector<Cell> cells = {std::to_string(v.row.line), v.row.source, case_name(v.row), v.row.metric_name};
    if (v.priced()) {
      for (const double value : {v.measured, v.predicted, v.low, v.high}) cells.push_back(quantity(v, value));
      cells.push_back(signed_share(v.error()));
      cells.emplace_back(fmt::format("{}", fmt::join(v.assumed, "; ")));
    } else {
      for (int i = 0; i < 5; ++i) cells.emplace_back("–", "");
      cells.emplace_back("not priced: " + v.why_not);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string reasons_text(const std::vector<Verdict>& verdicts) {
  std::map<std::string, int> reasons;
  for (const Verdict& v : verdicts)
    if (!v.priced()) ++reasons[v.why_not];
  std::string text;
  for (const auto& [reason, count] : reasons) text += fmt::format("not priced: {}: {}\n", plural(count, "row"), reason);
  return text;
}

std::string to_json(const std::vector<Verdict>& verdicts) {
  Json json = {{"schema", "sibyl.published/1"}, {"sources", Json::array()}, {"rows", Json::array()}};
  for (const SourceSummary& s : summarize(verdicts)) {
    Json source = {{"source", s.source}, {"n", s.rows}, {"priced", s.priced}};
    const std::initializer_list<std::pair<const char*, double>> figures = {{"mean_error", s.mean_error},
                                                                           {"median_error", s.median_error},
                                                                           {"p90_error", s.p90_error},
                                                                           {"max_error", s.max_error},
                                                                           {"bias", s.bias},
                                                                           {"inside_interval", s.inside_interval}};
    for (const auto& [key, value] : figures) source[key] = s.priced > 0 ? Json(value) : Json(nullptr);
    json["sources"].push_back(std::move(source));
  }
  for (const Verdict& v : verdicts) json["rows"].push_back(json_of(v));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sibyl::published
