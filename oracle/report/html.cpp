#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/quantity.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #8884; }
td:first-child, th:first-child, .left { text-align: left; }
.big { font-size: 2rem; font-weight: 600; } .soft { opacity: .7; } .alarm { color: #c22; font-weight: 600; }
.bar { display: flex; height: 1.4rem; background: #8883; } .bar span { display: block; }
.w { background: #4477aa; } .g { background: #66ccee; } .o { background: #aa3377; } .a { background: #228833; }
.s { background: #ccbb44; } .c { background: #ee6677; } .f { background: #999999; }
.cache { background: repeating-linear-gradient(135deg, #8a6d3b 0 2px, transparent 2px 5px); }
.key { display: inline-block; width: .8rem; height: .8rem; }
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  return result;
}

std::string page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</html>\n",
      escaped(title), style, body);
}

std::string html_table(const Table& whole) {
  const Table table = visible(whole);
  const auto cell = [&](std::string_view tag, std::size_t column, const std::string& text) {
    const bool left = table.columns[column].align == Column::Align::left;
    return fmt::format("<{0}{1}>{2}</{0}>", tag, left ? " class=\"left\"" : "", escaped(text));
  };
  std::string text = "<table>\n<tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c) text += cell("th", c, table.columns[c].title);
  text += "</tr>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) text += cell("td", c, row[c].text);
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

std::string memory_html(const Prediction& p) {
  const double scale = std::max(p.memory_capacity.value(), p.memory.needed().value());
  std::string bar, legend;
  for (const MemorySlice& part : memory_slices(p.memory)) {
    const bool cache = part.key == cache_key;
    const std::string kind = cache ? "cache" : std::string(1, part.letter);
    bar += fmt::format("<span class=\"{}\" style=\"width:{:.3f}%\" title=\"{}: {}\"></span>", kind,
                       100 * part.value.value() / scale, part.title, to_string(part.value));
    legend += fmt::format("<tr><td><span class=\"key {}\"></span> {}{}</td><td>{}</td></tr>\n", kind, part.title,
                          cache ? fmt::format(" <span class=\"soft\">({})</span>", cache_meaning) : "",
                          to_string(part.value));
  }
  for (const auto& [title, bytes] : {std::pair{"host memory of each node, for what is offloaded", p.host_memory},
                                     std::pair{"storage of each node, for what is offloaded", p.storage}})
    if (bytes.value() > 0) legend += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", title, to_string(bytes));
  return fmt::format("<h2>Memory</h2>\n<p>{} of {}, {}</p>\n<div class=\"bar\">{}</div>\n<table>\n{}</table>\n",
                     to_string(p.memory.needed()), to_string(p.memory_capacity),
                     p.fits ? "fits" : "<span class=\"alarm\">does not fit</span>", bar, legend);
}

std::string time_html(const Prediction& p) {
  std::string rows;
  for (const TimePart& part : time_parts()) {
    const Seconds time = p.breakdown.*part.value;
    if (time.value() == 0) continue;
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", part.title, to_string(time),
                        part.on_critical_path && p.step_time.value() > 0 ? percent(time / p.step_time) : "");
  }
  if (const Seconds wait = slowest_rank_wait(p); wait.value() > 0)
    rows += fmt::format("<tr><td>slowest rank, waited for</td><td>{}</td><td>{}</td></tr>\n", to_string(wait),
                        percent(wait / p.step_time));
  return "<h2>Time</h2>\n<table>\n" + rows + "</table>\n";
}

// Throughput over devices, both on logarithmic axes; the thin line is perfect scaling from the first point.
std::string scale_chart(const ScaleReport& report) {
  std::vector<const ScalePoint*> points;
  for (const ScalePoint& point : report.points)
    if (point.prediction && point.prediction->throughput > 0) points.push_back(&point);
  if (points.size() < 2) return "";
  constexpr double width = 640, height = 320, margin = 40;
  const double first = points.front()->prediction->throughput, n0 = points.front()->devices;
  const double decades = std::log10(points.back()->devices / n0);
  const auto place = [&](double devices, double throughput) {
    const double x = margin + (width - 2 * margin) * std::log10(devices / n0) / decades;
    const double y = height - margin - (height - 2 * margin) * std::log10(throughput / first) / decades;
    return fmt::format("{:.1f},{:.1f}", x, std::clamp(y, 0.0, height));
  };
  std::string line, dots;
  for (const ScalePoint* point : points) {
    const std::string at = place(point->devices, point->prediction->throughput);
    line += at + " ";
    const std::size_t comma = at.find(',');
    dots += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\"><title>{}: {}</title></circle>\n", at.substr(0, comma),
                        at.substr(comma + 1), plural(point->devices, "device"),
                        samples_per_second(point->prediction->throughput));
  }
  const double last = points.back()->devices;
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\" aria-label=\"throughput over devices\" "
      "fill=\"currentColor\">\n"
      "<polyline points=\"{} {}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\".3\"/>\n"
      "<polyline points=\"{}\" fill=\"none\" stroke=\"#4477aa\" stroke-width=\"2\"/>\n{}"
      "<text x=\"{}\" y=\"{}\">{} to {} (log)</text>\n<text x=\"4\" y=\"16\">samples/s (log)</text>\n</svg>\n",
      width, height, width, place(n0, first), place(last, first * last / n0), line, dots, width / 2 - 60, height - 10,
      points.front()->devices, plural(points.back()->devices, "device"));
}

}  // namespace

std::string to_html(const PredictionReport& report) {
  const Prediction& p = report.prediction;
  std::string body = fmt::format(
      "<p class=\"soft\">{}, batch {}, {}, {}</p>\n<p><span class=\"big\">{}</span> a step "
      "<span class=\"soft\">(90 %: {} to {})</span><br><span class=\"big\">{}</span></p>\n",
      escaped(splitting(p)), grouped(p.global_batch), escaped(p.precision), escaped(p.optimizer),
      to_string(p.step_time), to_string(p.interval_low), to_string(p.interval_high), samples_per_second(p.throughput));
  for (const std::string& line : p.without_effect)
    body += "<p class=\"soft\">has no effect here: " + escaped(line) + "</p>\n";
  body += time_html(p) + memory_html(p);
  body += fmt::format(
      "<h2>Bottleneck</h2>\n<p>{}<br>\n{}</p>\n<h2>Limits</h2>\n{}<h2>Where the time comes from</h2>\n<p>{}</p>\n"
      "<h2>Assumed</h2>\n<ul>\n",
      escaped(bottleneck_sentence(p.bottleneck)), escaped(relief_clause(p.bottleneck)),
      html_table(limits_table(p.limits)), provenance_sentence(p.provenance));
  for (const std::string& line : assumptions(p)) body += "<li>" + escaped(line) + "</li>\n";
  return page(fmt::format("{} on {} of {}", report.model, plural(p.devices, "device"), report.cluster),
              body + "</ul>\n");
}

std::string to_html(const ScaleReport& report) {
  const std::string title =
      fmt::format("{} on {}, {} scaling", report.model, report.cluster, to_string(report.scaling));
  return page(title, scale_chart(report) + html_table(to_table(report)));
}

}  // namespace sibyl
