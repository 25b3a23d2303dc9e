#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "oracle/report/format.h"
#include "oracle/report/paint.h"
#include "oracle/report/report.h"

namespace sibyl {
namespace {

// What differs by rounding alone is the same.
std::string change_text(double before, double after) {
  if (std::abs(after - before) <= 1e-9 * std::abs(before)) return "same";
  if (before == 0) return "new";
  return ratio_text(after / before);
}

bool intervals_overlap(const Prediction& a, const Prediction& b) {
  return a.interval_low <= b.interval_high && b.interval_low <= a.interval_high;
}

}  // namespace

std::string comparison_verdict(const PredictionReport& first, const PredictionReport& second) {
  const Prediction &before = first.prediction, &after = second.prediction;
  if (before.step_time == after.step_time) return "Both steps take the same time.";
  const bool faster = after.step_time < before.step_time;
  const double ratio = faster ? before.step_time / after.step_time : after.step_time / before.step_time;
  if (ratio < 1.0005) return "Both steps take the same time, to 0.05 %.";
  constexpr double little = 1.095;  // "1.018 times" is hard to read
  const std::string much = ratio < little ? fmt::format("{:.1f} %", 100 * (ratio - 1))
                                          : fmt::format("{:.{}f} times", ratio, ratio < 99.95 ? 2 : 0);
  std::string text = fmt::format("The second step is {} {}", much, faster ? "faster" : "slower");
  return text + (intervals_overlap(before, after)
                     ? "; the intervals overlap: errors that the two do not share could outweigh it."
                     : ".");
}

Table comparison_table(const PredictionReport& before, const PredictionReport& after) {
  using enum Column::Align;
  Table table{.columns = {{"", "quantity", left}, {"first", "first"}, {"second", "second"}, {"change", "change"}},
              .rows = {}};
  const Prediction &a = before.prediction, &b = after.prediction;
  const auto row = [&](std::string_view title, double x, double y, std::string x_text, std::string y_text) {
    if (x == 0 && y == 0) return;
    table.rows.push_back({std::string(title), Cell(std::move(x_text), plain_number(x)),
                          Cell(std::move(y_text), plain_number(y)),
                          Cell(change_text(x, y), x == 0 ? "" : plain_number(y / x - 1))});
  };
  const auto quantity = [&](std::string_view title, auto x, auto y) {
    row(title, x.value(), y.value(), to_string(x), to_string(y));
  };
  const auto words = [&](std::string_view title, const std::string& x, const std::string& y) {
    if (x != y) table.rows.push_back({std::string(title), x, y, ""});
  };
  words("model", before.model, after.model);
  words("cluster", before.cluster, after.cluster);
  words("parallel", splitting(a), splitting(b));
  words("precision", a.precision, b.precision);
  words("optimizer", a.optimizer, b.optimizer);
  if (a.devices != b.devices) row("devices", a.devices, b.devices, grouped(a.devices), grouped(b.devices));
  if (a.global_batch != b.global_batch)
    row("batch", static_cast<double>(a.global_batch), static_cast<double>(b.global_batch), grouped(a.global_batch),
        grouped(b.global_batch));
  quantity("step time", a.step_time, b.step_time);
  row("throughput", a.throughput, b.throughput, samples_per_second(a.throughput), samples_per_second(b.throughput));
  for (const TimePart& part : time_parts()) quantity(part.title, a.breakdown.*part.value, b.breakdown.*part.value);
  quantity("slowest rank, waited for", slowest_rank_wait(a), slowest_rank_wait(b));
  if (a.memory_capacity != b.memory_capacity) quantity("memory of a device", a.memory_capacity, b.memory_capacity);
  quantity("memory", a.memory.needed(), b.memory.needed());
  for (const MemoryPart& part : memory_parts())
    quantity(fmt::format("memory: {}", part.title), a.memory.*part.value, b.memory.*part.value);
  quantity("memory: allocator's cache", a.memory.cached(), b.memory.cached());
  words("bottleneck", a.bottleneck.name, b.bottleneck.name);
  words("fits", a.fits ? "yes" : "no", b.fits ? "yes" : "no");
  return table;
}

std::string comparison_text(const PredictionReport& before, const PredictionReport& after, TextStyle style) {
  return indented(aligned_text(comparison_table(before, after))) + "\n" +
         Paint(style).bold(comparison_verdict(before, after)) + "\n";
}

std::string comparison_json(const PredictionReport& before, const PredictionReport& after) {
  using Json = nlohmann::ordered_json;
  const Prediction &a = before.prediction, &b = after.prediction;
  Json json;
  json["schema"] = "sibyl-comparison";
  json["version"] = 1;
  json["first"] = Json::parse(to_json(before));
  json["second"] = Json::parse(to_json(after));
  json["step_time_ratio"] = a.step_time.value() > 0 ? Json(b.step_time / a.step_time) : Json();
  json["throughput_ratio"] = a.throughput > 0 ? Json(b.throughput / a.throughput) : Json();
  json["memory_ratio"] = a.memory.needed().value() > 0 ? Json(ratios(b, a).memory) : Json();
  json["intervals_overlap"] = intervals_overlap(a, b);
  return json.dump(2) + "\n";
}

}  // namespace sibyl
