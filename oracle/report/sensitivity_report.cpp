#include "oracle/report/sensitivity_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "oracle/report/format.h"
#include "oracle/report/paint.h"

namespace sibyl {
namespace {

using Json = nlohmann::ordered_json;

// What differs by rounding alone is the same.
std::string change_text(double change) { return std::abs(change) <= 1e-9 ? "same" : signed_percent(change); }

void add_cells(const Variation& variation, std::vector<Cell>& row) {
  if (!variation.evaluation) {
    row.insert(row.end(), 3, Cell(""));
    return;
  }
  const Evaluation& e = *variation.evaluation;
  row.emplace_back(to_string(e.step_time), plain_number(e.step_time.value()));
  row.emplace_back(interval_words(e), plain_number(half_interval(e).value()));
  row.emplace_back(change_text(variation.change), plain_number(variation.change));
}

// Of the first that has something to say.
std::string note(const Sensitivity& input) {
  for (const Variation* v : {&input.twice, &input.half}) {
    if (!v->evaluation) return v->evaluation.error().message;
    if (!v->evaluation->fits) return fmt::format("{} does not fit in memory", v->setting);
  }
  return {};
}

Json variation_json(const Variation& v) {
  if (!v.evaluation) return {{"setting", v.setting}, {"error", v.evaluation.error().message}};
  const Evaluation& e = *v.evaluation;
  return {{"setting", v.setting},
          {"step_time_s", e.step_time.value()},
          {"interval_s", {e.interval_low.value(), e.interval_high.value()}},
          {"throughput_samples_per_s", e.throughput},
          {"change", v.change},
          {"memory_total_bytes", e.memory.total.value()},
          {"memory_needed_bytes", e.memory.needed().value()},
          {"fits", e.fits}};
}

}  // namespace

Table to_table(const SensitivityReport& report) {
  using enum Column::Align;
  // Programs read the key where people read what it is called.
  Table table{.columns = {{"input", "input", left},
                          {"as --set names it", "says", left},
                          {"now", "now"},
                          {"twice as good", "twice_step_time_s"},
                          {"", "twice_interval_half_s"},
                          {"change", "twice_change"},
                          {"half as good", "half_step_time_s"},
                          {"", "half_interval_half_s"},
                          {"change", "half_change"},
                          {"", "note", left},
                          {"", "title", left}},
              .rows = {}};
  for (const Sensitivity& input : report.result.inputs) {
    std::vector<Cell> row = {Cell(input.title, input.name), Cell(input.name, input.says), input.now};
    add_cells(input.twice, row);
    add_cells(input.half, row);
    row.emplace_back(note(input));
    row.emplace_back("", input.title);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string to_text(const SensitivityReport& report, TextStyle style) {
  const Evaluation& now = report.result.now;
  std::string text = Paint(style).bold(fmt::format("{} on {}", report.model, report.cluster));
  text += fmt::format("\nstep time {}, {}\n\n", time_words(now), samples_per_second(now.throughput));
  text += indented(aligned_text(to_table(report))) + "\n";
  return text +
         "  Each alone, twice and half as good (half and twice the latency); batch, micro-batches and bucket twice and "
         "half as "
         "large.\n  step time and its 90 % interval; change: of the time that a sample takes\n";
}

std::string to_json(const SensitivityReport& report) {
  const Evaluation& now = report.result.now;
  Json json = {{"schema", "sibyl.sensitivity/1"},
               {"model", report.model},
               {"cluster", report.cluster},
               {"step_time_s", now.step_time.value()},
               {"interval_s", {now.interval_low.value(), now.interval_high.value()}},
               {"throughput_samples_per_s", now.throughput}};
  json["inputs"] = Json::array();
  for (const Sensitivity& input : report.result.inputs)
    json["inputs"].push_back({{"name", input.name},
                              {"title", input.title},
                              {"says", input.says},
                              {"now", input.now},
                              {"kind", input.resource ? "resource" : "setting"},
                              {"effect", input.effect()},
                              {"twice", variation_json(input.twice)},
                              {"half", variation_json(input.half)}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sibyl
