#include "oracle/validate/published/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "calibration/calibration.h"
#include "calibration/error_summary.h"
#include "oracle/report/format.h"
#include "oracle/validate/published/cells.h"
#include "oracle/validate/published/clusters.h"
#include "oracle/validate/published/devices.h"

namespace sibyl::published {
namespace {

using Json = nlohmann::ordered_json;
using enum Column::Align;

constexpr std::size_t shortest = 3;  // messages that a wire's latency is read off

Result<Collective> collective_named(const std::string& name, const std::string& where) {
  for (const Collective known :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
        Collective::reduce, Collective::all_to_all, Collective::send_receive})
    if (to_string(known) == name) return known;
  return fail(fmt::format("collective: '{}' is none", name), where, "all_reduce, all_gather, reduce_scatter…");
}

Result<std::optional<CollectiveRow>> read_collective_row(const Cells& cells, int line) {
  SIBYL_TRY(const auto bytes, cells.number("message_bytes"));
  SIBYL_TRY(const auto time, cells.number("time_us"));
  if (!bytes || !time) return std::nullopt;
  if (!(*bytes > 0 && *time > 0)) return fail("message_bytes and time_us must be above 0", cells.where());
  CollectiveRow row;
  row.line = line;
  row.bytes = Bytes{*bytes};
  row.time = Seconds{*time * 1e-6};
  SIBYL_TRY(row.source, cells.required("source"));
  SIBYL_TRY(row.gpu, cells.required("gpu"));
  SIBYL_TRY(const std::string collective, cells.required("collective"));
  SIBYL_TRY(row.collective, collective_named(collective, cells.where()));
  SIBYL_TRY(const auto gpus, cells.integer("n_gpus", 2, most_devices));
  SIBYL_TRY(const auto nodes, cells.integer("n_nodes", 1, most_devices));
  if (!gpus || !nodes) return fail("n_gpus and n_nodes must be said", cells.where());
  if (*gpus % *nodes != 0) return fail(fmt::format("{} GPUs on {} nodes", *gpus, *nodes), cells.where());
  row.gpus = static_cast<int>(*gpus);
  row.gpus_per_node = static_cast<int>(*gpus / *nodes);
  row.intranode = cells.text("intranode");
  row.internode = cells.text("internode");
  row.algorithm = cells.text("algo");
  row.library = cells.text("library");
  row.trust = cells.text("trust");
  return row;
}

std::string series_name(const CollectiveRow& row) {
  std::string text = fmt::format("{} of {} {}", to_string(row.collective), row.gpus, row.gpu);
  if (row.gpus > row.gpus_per_node) text += fmt::format(", {} nodes, {}", row.gpus / row.gpus_per_node, row.internode);
  return text;
}

// Rows that lie on one line.
std::string series_key(const CollectiveRow& row) {
  return fmt::format("{}|{}|{}|{}", row.source, series_name(row), row.algorithm, row.library);
}

// What a named algorithm is here; automatic where the library chose, as far as the source says.
std::optional<Algorithm> algorithm_of(const std::string& name) {
  const std::string text = lower_case(name);
  if (text.starts_with("nccl default") || is_not_stated(text)) return Algorithm::automatic;
  if (text.starts_with("ring")) return Algorithm::ring;
  if (text.starts_with("tree")) return Algorithm::tree;
  if (text.starts_with("nvls")) return Algorithm::in_network;
  return std::nullopt;
}

std::string why_not(const CollectiveRow& row) {
  if (row.trust != "A" && !row.trust.empty()) return "the source does not vouch for the row";
  if (row.gpus > row.gpus_per_node && is_not_stated(row.internode))
    return "the source does not say what joins the nodes";
  if (!algorithm_of(row.algorithm)) return fmt::format("the algorithm '{}' is not modelled", row.algorithm);
  if (const auto device = match_device(row.gpu, shipped_calibrations()); !device) return device.error().message;
  return {};
}

using Verdicts = std::vector<CollectiveVerdict*>;

// One series that can be priced.
class Series {
 public:
  Series(Verdicts rows, std::vector<CollectiveSample> inside) : rows_(std::move(rows)), inside_(std::move(inside)) {
    std::ranges::stable_sort(rows_, {}, [](const CollectiveVerdict* v) { return v->row.bytes; });
    const CollectiveRow& row = rows_.front()->row;
    Row machine;
    machine.gpu = row.gpu;
    machine.gpus = row.gpus;
    machine.gpus_per_node = row.gpus_per_node;
    machine.intranode = row.intranode;
    machine.internode = row.internode;
    topology_ = machine_of(machine).topology;
    placement_ = {row.gpus_per_node, row.gpus / row.gpus_per_node, 1};
    collective_ = row.collective;
    algorithm_ = *algorithm_of(row.algorithm);
  }

  void judge() {
    if (algorithm_ == Algorithm::in_network && !topology_.device_link.reduces) {
      for (CollectiveVerdict* verdict : rows_)
        verdict->why_not = fmt::format("the algorithm '{}' needs switches that add", verdict->row.algorithm);
      return;
    }
    const std::size_t unjudged = read_latency();
    const std::optional<Network> network = on(topology_, inside_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      CollectiveVerdict& verdict = *rows_[i];
      verdict.latency_of_adapter = topology_.nic_latency;
      if (!network || i < unjudged)
        verdict.why_not = network ? "the wire's latency is read off it" : "the machine is impossible";
      else
        verdict.predicted = ask(*network, verdict.row.bytes);
    }
    judge_halves();
  }

 private:
  static std::optional<Network> on(const TopologySpec& spec, const std::vector<CollectiveSample>& samples) {
    auto topology = Topology::make(spec);
    if (!topology) return std::nullopt;
    return Network(std::move(*topology), {}, samples);
  }
  [[nodiscard]] Estimate ask(const Network& network, Bytes bytes) const {
    return network.collective(collective_, bytes, placement_, algorithm_).time;
  }

  // Of the adapters, so that the median of the shortest messages is met; how many messages that took. Time never falls
  // with latency.
  std::size_t read_latency() {
    if (placement_.nodes == 1 || rows_.size() <= 2 * shortest) return 0;
    std::array<Seconds, shortest> times;
    for (std::size_t i = 0; i < shortest; ++i) times[i] = rows_[i]->row.time;
    std::ranges::sort(times);
    Seconds low{0}, high{1e-3};
    for (int i = 0; i < 40; ++i) {
      topology_.nic_latency = (low + high) / 2;
      const std::optional<Network> network = on(topology_, inside_);
      if (!network) return 0;
      (ask(*network, rows_[shortest / 2]->row.bytes).time < times[shortest / 2] ? low : high) = topology_.nic_latency;
    }
    return shortest;
  }

  // Each from the other sizes of the series, where it is long enough to be halved.
  void judge_halves() {
    if (rows_.size() <= 2 * shortest) return;
    for (const std::size_t half : {0U, 1U}) {
      std::vector<CollectiveSample> seen = inside_;
      std::erase_if(seen, [&](const CollectiveSample& s) { return s.placement == placement_; });
      for (std::size_t i = 1 - half; i < rows_.size(); i += 2)
        seen.push_back({collective_, algorithm_, placement_, rows_[i]->row.bytes, rows_[i]->row.time, 0.0, {}});
      if (const std::optional<Network> network = on(topology_, seen))
        for (std::size_t i = half; i < rows_.size(); i += 2) rows_[i]->from_others = ask(*network, rows_[i]->row.bytes);
    }
  }

  Verdicts rows_;
  std::vector<CollectiveSample> inside_;
  TopologySpec topology_;
  GroupPlacement placement_;
  Collective collective_ = Collective::all_reduce;
  Algorithm algorithm_ = Algorithm::automatic;
};

struct Line {
  std::string source, series;
  std::size_t rows = 0;
  std::vector<Outcome> priced, from_others;
};

std::vector<Line> lines_of(const std::vector<CollectiveVerdict>& verdicts) {
  std::vector<Line> lines;
  std::map<std::string, std::size_t> known;
  for (const CollectiveVerdict& v : verdicts) {
    const auto [at, is_new] = known.try_emplace(series_key(v.row), lines.size());
    if (is_new) {
      std::string name = series_name(v.row);
      if (algorithm_of(v.row.algorithm) != Algorithm::automatic) name += ", " + v.row.algorithm;
      lines.push_back({v.row.source, std::move(name), 0, {}, {}});
    }
    Line& line = lines[at->second];
    ++line.rows;
    const auto outcome = [&](const Estimate& e) { return Outcome{e.time / v.row.time, e.relative_error}; };
    if (v.priced()) line.priced.push_back(outcome(v.predicted));
    if (v.from_others) line.from_others.push_back(outcome(*v.from_others));
  }
  return lines;
}

}  // namespace

Result<std::vector<CollectiveRow>> read_collective_rows(std::string_view csv, const std::string& file) {
  SIBYL_TRY(const Csv table, parse_csv(csv, file));
  SIBYL_CHECK(
      require_columns(table, {"source", "gpu", "n_gpus", "n_nodes", "collective", "message_bytes", "time_us"}, file));
  std::vector<CollectiveRow> rows;
  for (const CsvRecord& record : table.records) {
    SIBYL_TRY(std::optional<CollectiveRow> row, read_collective_row(Cells(table.header, record, file), record.line));
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

std::vector<CollectiveVerdict> judge_collectives(const std::vector<CollectiveRow>& rows) {
  std::vector<CollectiveVerdict> verdicts;
  verdicts.reserve(rows.size());
  std::map<std::string, Verdicts> series;
  for (const CollectiveRow& row : rows) {
    CollectiveVerdict& verdict = verdicts.emplace_back(CollectiveVerdict{row, why_not(row), {}, {}, {}});
    if (verdict.priced()) series[series_key(row)].push_back(&verdict);
  }
  std::map<std::string, std::vector<CollectiveSample>> inside;  // by calibration: each is read once
  for (auto& [key, members] : series) {
    const auto device = match_device(members.front()->row.gpu, shipped_calibrations());
    const auto [samples, is_new] = inside.try_emplace(device->calibration);
    if (is_new)
      if (auto calibration = shipped_calibration(device->calibration))
        samples->second = std::move(calibration->collectives);
    Series(members, samples->second).judge();
  }
  return verdicts;
}

Table collectives_table(const std::vector<CollectiveVerdict>& verdicts) {
  Table table;
  table.columns = {{"source", "source", left},
                   {"collective", "series", left},
                   {"rows", "rows"},
                   {"priced", "priced"},
                   {"mean", "mean_error"},
                   {"median", "median_error"},
                   {"p90", "p90_error"},
                   {"bias", "bias"},
                   {"from other sizes: mean", "from_others_mean_error"},
                   {"p90", "from_others_p90_error"}};
  const auto share = [](double value) { return Cell(percent(value), plain_number(value)); };
  for (const Line& line : lines_of(verdicts)) {
    const ErrorSummary links = summary_of(line.priced), halves = summary_of(line.from_others);
    std::vector<Cell> cells{line.source, line.series, std::to_string(line.rows), std::to_string(links.count)};
    for (const double error : {links.mean, links.median, links.p90})
      cells.push_back(links.count > 0 ? share(error) : Cell("–", ""));
    cells.push_back(links.count > 0 ? Cell(signed_percent(links.bias), plain_number(links.bias)) : Cell("–", ""));
    for (const double error : {halves.mean, halves.p90})
      cells.push_back(halves.count > 0 ? share(error) : Cell("–", ""));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table collective_rows_table(const std::vector<CollectiveVerdict>& verdicts) {
  Table table;
  table.columns = {{"line", "line"},
                   {"source", "source", left},
                   {"collective", "series", left},
                   {"bytes", "bytes"},
                   {"measured", "measured_s"},
                   {"predicted", "predicted_s"},
                   {"error", "error"},
                   {"from other sizes", "from_others_error"},
                   {"why not priced", "why_not", left}};
  for (const CollectiveVerdict& v : verdicts) {
    const auto time = [](Seconds t) { return Cell(to_string(t), plain_number(t.value())); };
    const auto error = [&](const Estimate& e) {
      const double off = e.time / v.row.time - 1;
      return Cell(signed_percent(off), plain_number(off));
    };
    const Cell nothing("–", "");
    table.rows.push_back({std::to_string(v.row.line), v.row.source, series_name(v.row),
                          Cell(to_string(v.row.bytes), plain_number(v.row.bytes.value())), time(v.row.time),
                          v.priced() ? time(v.predicted.time) : nothing, v.priced() ? error(v.predicted) : nothing,
                          v.from_others ? error(*v.from_others) : nothing, v.why_not});
  }
  return table;
}

std::string collectives_json(const std::vector<CollectiveVerdict>& verdicts) {
  Json json = {
      {"schema", "sibyl-published-collectives"}, {"version", 1}, {"series", Json::array()}, {"rows", Json::array()}};
  const auto summary = [](const ErrorSummary& e) {
    return e.count == 0 ? Json() : Json{{"n", e.count},
                                        {"mean_error", e.mean},
                                        {"median_error", e.median},
                                        {"p90_error", e.p90},
                                        {"bias", e.bias},
                                        {"within_one_sd", e.within_one},
                                        {"within_two_sd", e.within_two}};
  };
  for (const Line& line : lines_of(verdicts))
    json["series"].push_back({{"source", line.source},
                              {"series", line.series},
                              {"rows", line.rows},
                              {"priced", summary(summary_of(line.priced))},
                              {"from_other_sizes", summary(summary_of(line.from_others))}});
  for (const CollectiveVerdict& v : verdicts) {
    Json row = {{"line", v.row.line},
                {"source", v.row.source},
                {"series", series_name(v.row)},
                {"bytes", v.row.bytes.value()},
                {"measured_s", v.row.time.value()}};
    if (v.priced())
      row["predicted_s"] = v.predicted.time.value();
    else
      row["not_priced"] = v.why_not;
    if (v.from_others) row["from_other_sizes_s"] = v.from_others->time.value();
    json["rows"].push_back(std::move(row));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sibyl::published
