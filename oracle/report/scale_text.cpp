#include <fmt/format.h>

#include "base/quantity.h"
#include "oracle/report/format.h"
#include "oracle/report/paint.h"
#include "oracle/report/report.h"
#include "oracle/scale_quantity.h"

namespace sibyl {
namespace {

std::vector<Cell> priced_row(const ScalePoint& point) {
  const Prediction& p = *point.prediction;
  const Ranged throughput = value_of(point, ScaleQuantity::throughput);
  const auto seconds = [](Seconds t) { return Cell(to_string(t), plain_number(t.value())); };
  return {fmt::format("{}", point.devices),
          Cell(grouped(p.global_batch), fmt::format("{}", p.global_batch)),
          seconds(p.step_time),
          Cell(interval_words(p), plain_number(half_interval(p).value())),
          Cell(grouped(static_cast<std::int64_t>(p.throughput + 0.5)), plain_number(p.throughput)),
          Cell(percent(point.efficiency), plain_number(point.efficiency)),
          seconds(p.breakdown.communication_exposed),
          Cell(to_string(p.memory.needed()), plain_number(p.memory.needed().value())),
          Cell(p.fits ? "yes" : "NO", p.fits ? "true" : "false"),
          Cell(percent(p.provenance.estimated), plain_number(p.provenance.estimated)),
          p.bottleneck.name,
          "",
          Cell("", plain_number(p.memory.total.value())),
          Cell("", plain_number(p.interval_low.value())),
          Cell("", plain_number(p.interval_high.value())),
          Cell("", plain_number(throughput.low)),
          Cell("", plain_number(throughput.high))};
}

constexpr std::size_t bottleneck_column = 10;  // after it the error

// Only the count and the reason: the other columns stay empty.
std::vector<Cell> failed_row(const ScalePoint& point, std::size_t columns) {
  std::vector<Cell> row(columns, Cell(""));
  row.front() = fmt::format("{}", point.devices);
  row[bottleneck_column] = Cell(point.prediction.error().message, "");
  row[bottleneck_column + 1] = Cell("", point.prediction.error().message);
  return row;
}

}  // namespace

Table to_table(const ScaleReport& report) {
  using enum Column::Align;
  Table table{.columns = {{"devices", "devices"},
                          {"batch", "global_batch"},
                          {"step time", "step_time_s"},
                          {"", "interval_half_s"},
                          {"samples/s", "throughput_samples_per_s"},
                          {"efficiency", "efficiency"},
                          {"exposed comm.", "communication_exposed_s"},
                          {"memory", "memory_needed_bytes"},
                          {"fits", "fits"},
                          {"estimated", "provenance_estimated"},
                          {"bottleneck", "bottleneck", left},
                          {"", "error", left},
                          {"", "memory_total_bytes"},
                          {"", "interval_low_s"},
                          {"", "interval_high_s"},
                          {"", "throughput_low_samples_per_s"},
                          {"", "throughput_high_samples_per_s"}},
              .rows = {}};
  for (const ScalePoint& point : report.points)
    table.rows.push_back(point.prediction ? priced_row(point) : failed_row(point, table.columns.size()));
  return table;
}

std::string to_text(const ScaleReport& report, TextStyle style) {
  const Paint paint(style);
  std::string text =
      paint.bold(fmt::format("{} on {}, {} scaling", report.model, report.cluster, to_string(report.scaling)));
  for (const ScalePoint& point : report.points)
    if (point.prediction) {
      text += fmt::format("\n{}, {}", point.prediction->precision, point.prediction->optimizer);
      break;
    }
  text += "\n\n" + indented(aligned_text(to_table(report))) + "\n";
  text += fmt::format("  step time and its 90 % interval; efficiency: samples/s per device against {}\n",
                      report.points.empty() ? "the first row" : plural(report.points.front().devices, "device"));
  text += "  estimated: the share of time that no measurement stands behind\n";
  return text;
}

}  // namespace sibyl
