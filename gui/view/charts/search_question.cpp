#include "gui/view/charts/search_question.h"

#include <QObject>
#include <algorithm>
#include <cctype>

#include "base/quantity.h"
#include "oracle/cli/options.h"
#include "oracle/report/format.h"

namespace sibyl::gui {

const QStringList& searchableAxes() {
  static const QStringList axes = {"data",   "tensor", "sequence", "pipeline", "context",
                                   "expert", "filter", "channel",  "spatial"};
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
  if (!controls.memory.trimmed().isEmpty()) {
    SIBYL_TRY(question.memory, parse_bytes(controls.memory.trimmed().toStdString()));
  }
  const int per_node = question.room.devices_per_node, most = space.devices.back();
  if (most > question.room.devices()) {
    SIBYL_TRY(question.room, resized(question.room, (most + per_node - 1) / per_node, per_node));
  }
  return question;
}

Result<SearchResult> answer(const SearchQuestion& question, const std::function<void(std::size_t, std::size_t)>& progress,
                            const std::function<bool()>& cancelled) {
  SearchOptions options;
  options.keep = question.keep;
  options.memory = question.memory;
  options.progress = progress;
  options.cancelled = cancelled;
  return search(*question.study->graph, question.space, question.room, options);
}

Table searchTable(const SearchReport& report) {
  Table table = to_table(report);
  table.columns.insert(table.columns.begin(), {"", "mark", Column::Align::left});
  const std::string recommended =
      report.result.best.empty() ? std::string() : strategy_words(report.result.recommended.strategy);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const Candidate& candidate = report.result.best[r];
    const bool own = strategy_words(candidate.strategy) == recommended;
    table.rows[r].insert(table.rows[r].begin(), Cell(own ? "★ recommended" : candidate.equal ? "as fast" : "",
                                                     own ? "recommended" : candidate.equal ? "equal" : ""));
  }
  const auto equal = std::ranges::find(table.columns, "equal", &Column::key);
  if (equal == table.columns.end()) return table;
  const auto at = equal - table.columns.begin();
  for (auto& row : table.rows) row.erase(row.begin() + at);
  table.columns.erase(equal);
  for (Column& column : table.columns)
    if (!column.title.empty()) column.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(column.title[0])));
  return table;
}

QString searchSummary(const SearchResult& r) {
  const auto count = [](std::size_t n) { return QString::fromStdString(grouped(static_cast<std::int64_t>(n))); };
  QString text = QObject::tr("%1 strategies").arg(count(r.size));
  if (r.tried < r.size) text += QObject::tr(", %1 tried").arg(count(r.tried));
  text += QObject::tr(": %1 can be run, %2 are too large").arg(count(r.fitting), count(r.too_large));
  if (r.equal > 1)
    text += QObject::tr("; %1 are as fast as the fastest, as far as is known: the simplest of them is recommended").arg(count(r.equal));
  if (r.best.empty() && !r.left_out.empty()) text += ". " + QString::fromStdString(r.left_out.front().why);
  return text + '.';
}

}  // namespace sibyl::gui
