#include "gui/view/charts/search_question.h"

#include <QObject>
#include <algorithm>
#include <tuple>

#include "base/quantity.h"
#include "gui/view/words.h"
#include "oracle/axes.h"
#include "oracle/cli/options.h"
#include "oracle/report/format.h"

namespace sibyl::gui {

const QStringList& searchableAxes() {
  static const QStringList axes = [] {
    QStringList words;
    for (const std::string_view word : axis_words())
      words << QString::fromUtf8(word.data(), static_cast<int>(word.size()));
    return words;
  }();
  return axes;
}

Result<SearchQuestion> searchQuestion(const std::shared_ptr<const Study>& study, const SearchControls& controls) {
  SearchQuestion question{study, {}, *study->cluster, {}, static_cast<std::size_t>(std::max(1, controls.keep))};
  SearchSpace& space = question.space;
  space.fixed = study->strategy;
  space.fixed.zero_ranks = 0;
  space.devices = {study->strategy.devices()};
  if (!controls.devices.trimmed().isEmpty()) {
    SIBYL_TRY(space.devices, cli::parse_device_counts(controls.devices.trimmed().toStdString()));
  }
  SIBYL_CHECK(parse_axes(controls.axes.join(',').toStdString(), space));
  if (!controls.varied.isEmpty()) SIBYL_CHECK(parse_varied(controls.varied.join(',').toStdString(), space));
  if (!controls.memory.trimmed().isEmpty()) {
    SIBYL_TRY(question.memory, parse_bytes(controls.memory.trimmed().toStdString()));
  }
  const int per_node = question.room.devices_per_node, most = space.devices.back();
  if (most > question.room.devices()) {
    SIBYL_TRY(question.room, resized(question.room, (most + per_node - 1) / per_node, per_node));
  }
  return question;
}

Result<SearchResult> answer(const SearchQuestion& question,
                            const std::function<void(std::size_t, std::size_t)>& progress,
                            const std::function<bool()>& cancelled) {
  SearchOptions options;
  options.keep = question.keep;
  options.memory = question.memory;
  options.progress = progress;
  options.cancelled = cancelled;
  return search(*question.study->graph, question.space, question.room, options);
}

Scenario scenarioWith(Scenario scenario, const Cluster& cluster, const Strategy& strategy) {
  scenario = with_strategy(std::move(scenario), strategy);
  const int each = cluster.devices_per_node;
  if (strategy.devices() > cluster.devices())
    scenario.set("--nodes", std::to_string((strategy.devices() + each - 1) / each));
  return scenario;
}

bool sameButForStrategy(const Study& one, const Study& other, bool any_devices) {
  const auto question = [any_devices](const Scenario& scenario) {
    Scenario asked = with_strategy(scenario, {});
    asked.clear("--batch");                   // written in more than one way: the step's is compared
    if (any_devices) asked.clear("--nodes");  // as many as the strategies need
    asked.name.clear();
    asked.device_hour_price = 0;
    asked.epoch_samples = 0;
    return asked;
  };
  return one.strategy.global_batch == other.strategy.global_batch &&
         (any_devices || one.strategy.devices() == other.strategy.devices()) &&
         question(one.scenario) == question(other.scenario);
}

bool hasStrategy(const Study& study, const Strategy& strategy) {
  const auto split = [](const Strategy& s) {
    return std::tuple(s.devices(), s.global_batch, strategy_words(s), s.stage_starts, s.split_until);
  };
  return split(study.strategy) == split(strategy);
}

Table searchTable(const SearchReport& report) {
  // What a narrow window is to show first.
  constexpr std::string_view order[] = {
      "strategy", "step_time_s", "interval_half_s", "memory_bytes", "throughput_samples_per_s",
      "loses_by", "devices",     "device_hours",    "cost",         "bottleneck"};
  const Table found = to_table(report);
  const std::vector<Candidate>& best = report.result.best;
  const std::string recommended = best.empty() ? std::string() : strategy_words(report.result.recommended.strategy);
  Table table{.columns = {{"", "mark", Column::Align::left}},
              .rows = std::vector<std::vector<Cell>>(found.rows.size())};
  for (std::size_t r = 0; r < found.rows.size(); ++r) {
    const bool own = strategy_words(best[r].strategy) == recommended;
    table.rows[r].emplace_back(own             ? "★"
                               : best[r].equal ? "≈"
                                               : "",
                               own             ? "recommended"
                               : best[r].equal ? "equal"
                                               : "");
  }
  for (const std::string_view key : order) {
    const auto column = std::ranges::find(found.columns, key, &Column::key);
    if (column == found.columns.end()) continue;
    table.columns.push_back(*column);
    table.columns.back().title = titled(column->title).toStdString();
    const auto at = static_cast<std::size_t>(column - found.columns.begin());
    for (std::size_t r = 0; r < found.rows.size(); ++r) table.rows[r].push_back(found.rows[r][at]);
  }
  return table;
}

QString searchSummary(const SearchResult& r) {
  const auto count = [](std::size_t n) { return QString::fromStdString(grouped(static_cast<std::int64_t>(n))); };
  QString text = QObject::tr("%1 strategies").arg(count(r.size));
  if (r.tried < r.size)
    text += QObject::tr(", %1 tried").arg(count(r.tried));
  else if (r.cancelled)
    text += QObject::tr(", cancelled before all that may be the fastest were simulated");
  text += QObject::tr(": %1 can be run, %2 are too large").arg(count(r.fitting), count(r.too_large));
  if (r.too_slow > 0) text += QObject::tr(", %1 too slow to matter").arg(count(r.too_slow));
  if (r.equal > 1)
    text += QObject::tr(
                "; at least %1 are as fast as the fastest, as far as is known (≈): of those that take at most 1 % "
                "longer the "
                "simplest is recommended (★)")
                .arg(count(r.equal));
  if (r.best.empty() && !r.left_out.empty()) {
    const LeftOut& reason = r.left_out.front();
    text += ". " + QString::fromStdString(reason.why);
    if (!reason.hint.empty()) text += " (" + QString::fromStdString(reason.hint) + ")";
  }
  return text + '.';
}

}  // namespace sibyl::gui
