#include "oracle/report/search_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "oracle/report/format.h"
#include "oracle/report/paint.h"
#include "oracle/report/table_json.h"

namespace sibyl {
namespace {

using Json = nlohmann::ordered_json;

std::string words_of(const Candidate& c) {
  std::string words = strategy_words(c.strategy);
  return words.substr(std::string_view("--parallel ").size());
}

// "+12 %, bubble +80 ms"
std::string loss_against(const Candidate& c, const Candidate& fastest) {
  const double longer = longer_than(c, fastest);
  if (longer <= 0) return "";
  const Excess excess = excess_over(c, fastest);
  if (excess.time.value() <= 0) return signed_percent(longer);
  return fmt::format("{}, {} +{}", signed_percent(longer), excess.part, to_string(excess.time));
}

Table table_of(const std::vector<Candidate>& candidates, const Candidate& fastest) {
  using enum Column::Align;
  Table table{.columns = {{"strategy", "strategy", left},
                          {"devices", "devices"},
                          {"step time", "step_time_s"},
                          {"", "interval_half_s"},
                          {"samples/s", "throughput_samples_per_s"},
                          {"memory", "memory_bytes"},
                          {"equal", "equal"},
                          {"bottleneck", "bottleneck", left},
                          {"loses by", "loses_by", left}},
              .rows = {}};
  const auto seconds = [](Seconds t) { return Cell(to_string(t), plain_number(t.value())); };
  for (const Candidate& c : candidates)
    table.rows.push_back({words_of(c), fmt::format("{}", c.strategy.devices()), seconds(c.step_time),
                          Cell(interval_words(c), plain_number(half_interval(c).value())),
                          Cell(grouped(static_cast<std::int64_t>(c.throughput + 0.5)), plain_number(c.throughput)),
                          Cell(to_string(c.memory), plain_number(c.memory.value())),
                          Cell(c.equal ? "yes" : "", c.equal ? "true" : "false"), c.bottleneck.name,
                          loss_against(c, fastest)});
  return table;
}

// "0.0123", "12.3", "12,345".
std::string amount(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : grouped(static_cast<std::int64_t>(value + 0.5));
}

// Device-hours and, where the price of one is known, what they cost.
void add_cost(Table& table, const SearchReport& report, const std::vector<Candidate>& candidates) {
  if (report.samples <= 0) return;
  const bool priced = report.device_hour_price > 0;
  table.columns.push_back({"device-hours", "device_hours"});
  if (priced) table.columns.push_back({"cost", "cost"});
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const TrainingCost cost = cost_of(report, candidates[row]);
    table.rows[row].emplace_back(amount(cost.device_hours), plain_number(cost.device_hours));
    if (priced) table.rows[row].emplace_back(amount(cost.price), plain_number(cost.price));
  }
}

std::string counts_text(const SearchResult& r) {
  std::string text = fmt::format("{} strategies", grouped(static_cast<std::int64_t>(r.size)));
  if (r.tried < r.size)
    text += fmt::format(", {} tried before it was cancelled", grouped(static_cast<std::int64_t>(r.tried)));
  else if (r.cancelled)
    text += ", cancelled before all that may be the fastest were simulated";
  text += fmt::format(": {} can be run, {} are too large", grouped(static_cast<std::int64_t>(r.fitting)),
                      grouped(static_cast<std::int64_t>(r.too_large)));
  if (r.too_slow > 0)
    text += fmt::format(", {} take over {:g} times the fastest's device time",
                        grouped(static_cast<std::int64_t>(r.too_slow)), most_device_time);
  if (r.simulated == 0 || r.by_formula == 0) return text;
  return text +
         fmt::format("; {} simulated, the others priced by formula", grouped(static_cast<std::int64_t>(r.simulated)));
}

std::string left_out_text(const SearchResult& r, const Paint& paint) {
  if (r.left_out.empty()) return {};
  constexpr std::size_t most = 5;
  std::string text = "\n" + paint.heading("Cannot be split so") + "\n";
  for (std::size_t i = 0; i < r.left_out.size() && i < most; ++i)
    text += fmt::format("  {:>6}  {}{}\n", grouped(static_cast<std::int64_t>(r.left_out[i].count)), r.left_out[i].why,
                        r.left_out[i].alike > 0 ? ", or so with other numbers" : "");
  return text;
}

Json candidate_json(const SearchReport& report, const Candidate& c) {
  Json parts;
  for (const TimePart& part : time_parts()) parts[std::string(part.key)] = (c.breakdown.*part.value).value();
  Json json = {{"parallel", parallel_text(c.strategy)},
               {"devices", c.strategy.devices()},
               {"command", report.command + " " + strategy_words(c.strategy)},
               {"step_time_s", c.step_time.value()},
               {"interval_s", {c.interval_low.value(), c.interval_high.value()}},
               {"throughput_samples_per_s", c.throughput},
               {"memory_bytes", c.memory.value()},
               {"equal", c.equal},
               {"breakdown_s", std::move(parts)},
               {"bottleneck",
                {{"name", c.bottleneck.name},
                 {"share", c.bottleneck.share},
                 {"relief", c.bottleneck.relief},
                 {"relieved_by", c.bottleneck.relieved_by}}}};
  if (report.samples <= 0) return json;
  const TrainingCost cost = cost_of(report, c);
  json["training"] = {{"samples", report.samples}, {"time_s", cost.time.value()}, {"device_hours", cost.device_hours}};
  if (report.device_hour_price > 0) json["training"]["cost"] = cost.price;
  return json;
}

Json list_json(const SearchReport& report, const std::vector<Candidate>& candidates) {
  Json list = Json::array();
  for (const Candidate& c : candidates) list.push_back(candidate_json(report, c));
  return list;
}

}  // namespace

Table to_table(const SearchReport& report) {
  const std::vector<Candidate>& best = report.result.best;
  Table table = table_of(best, best.empty() ? Candidate{} : best.front());
  add_cost(table, report, best);
  return table;
}

Seconds half_interval(const Candidate& c) { return (c.interval_high - c.interval_low) / 2; }

std::string interval_words(const Candidate& c) { return interval_words(c.step_time, c.interval_low, c.interval_high); }

std::string time_words(const Candidate& c) { return time_words(c.step_time, c.interval_low, c.interval_high); }

double longer_than(const Candidate& candidate, const Candidate& other) {
  return candidate.step_time / other.step_time - 1;
}

TrainingCost cost_of(const SearchReport& report, const Candidate& candidate) {
  Evaluation step;
  step.step_time = candidate.step_time;
  step.interval_low = candidate.interval_low;
  step.interval_high = candidate.interval_high;
  return cost_of_training(step, candidate.strategy.global_batch, candidate.strategy.devices(), report.samples,
                          report.device_hour_price);
}

std::string to_text(const SearchReport& report, TextStyle style) {
  const Paint paint(style);
  const SearchResult& r = report.result;
  std::string text = paint.bold(fmt::format("{} on {}", report.model, report.cluster)) + "\n" + counts_text(r) + "\n";
  if (r.best.empty()) return text + left_out_text(r, paint);
  const Candidate& fastest = r.best.front();
  text +=
      fmt::format("\n{}  {}, {}\n", paint.heading("Recommended"), time_words(r.recommended), words_of(r.recommended));
  if (r.equal > 1)
    text += fmt::format(
        "  the simplest that takes at most {:.0f} % longer than the fastest; at least {} are as fast, as far as is "
        "known: they "
        "differ by less than what their difference is unsure by\n",
        worth_of_simplicity * 100, grouped(static_cast<std::int64_t>(r.equal)));
  text += fmt::format("  {} {}\n", report.command, strategy_words(r.recommended.strategy));
  const auto listed = [&](const std::vector<Candidate>& candidates) {
    Table table = table_of(candidates, fastest);
    add_cost(table, report, candidates);
    return indented(aligned_text(table));
  };
  if (const Table limits = limits_table(report.limits); !limits.rows.empty())
    text += "\n" + paint.heading("Limits of the recommended") + "\n" + indented(aligned_text(limits));
  text += "\n" + paint.heading("Fastest") + "\n" + listed(r.best);
  text += "\n" + paint.heading("For less memory, or fewer devices") + "\n" + listed(r.front);
  return text + left_out_text(r, paint);
}

std::string to_json(const SearchReport& report) {
  const SearchResult& r = report.result;
  Json json = {
      {"schema", "sibyl.search/1"}, {"model", report.model},    {"cluster", report.cluster}, {"size", r.size},
      {"tried", r.tried},           {"simulated", r.simulated}, {"fitting", r.fitting},      {"too_large", r.too_large},
      {"too_slow", r.too_slow},     {"equal", r.equal},         {"cancelled", r.cancelled}};
  json["recommended"] = r.best.empty() ? Json() : candidate_json(report, r.recommended);
  if (!report.limits.empty()) json["recommended"]["limits"] = Json::parse(limits_json(report.limits));
  json["best"] = list_json(report, r.best);
  json["front"] = list_json(report, r.front);
  json["left_out"] = Json::array();
  for (const LeftOut& reason : r.left_out)
    json["left_out"].push_back(
        {{"why", reason.why}, {"hint", reason.hint}, {"count", reason.count}, {"alike", reason.alike}});
  // Names come from the user's files and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sibyl
