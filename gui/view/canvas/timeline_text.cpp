#include "gui/view/canvas/timeline_text.h"

#include <QCoreApplication>
#include <map>

#include "base/quantity.h"

namespace sibyl::gui {
namespace {

class Words {
  Q_DECLARE_TR_FUNCTIONS(Timeline)
};

QString argumentTitle(const std::string& name) {
  static const std::map<std::string, const char*> titles = {
      {"kind", QT_TRANSLATE_NOOP("Timeline", "Kind")},
      {"flops", QT_TRANSLATE_NOOP("Timeline", "Arithmetic")},
      {"bytes", QT_TRANSLATE_NOOP("Timeline", "Bytes")},
      {"bound_by", QT_TRANSLATE_NOOP("Timeline", "Bound by")},
      {"provenance", QT_TRANSLATE_NOOP("Timeline", "Time is")},
      {"relative_error", QT_TRANSLATE_NOOP("Timeline", "Uncertainty")},
      {"algorithm", QT_TRANSLATE_NOOP("Timeline", "Algorithm")},
  };
  const auto found = titles.find(name);
  return found == titles.end() ? QString::fromStdString(name) : Words::tr(found->second);
}

}  // namespace

QString timeText(double seconds) { return QString::fromStdString(to_string(Seconds{seconds})); }

QString categoryTitle(const std::string& category) {
  static const std::map<std::string, const char*> titles = {
      {"forward", QT_TRANSLATE_NOOP("Timeline", "Forward")},
      {"backward", QT_TRANSLATE_NOOP("Timeline", "Backward")},
      {"optimizer", QT_TRANSLATE_NOOP("Timeline", "Optimizer")},
      {"communication", QT_TRANSLATE_NOOP("Timeline", "Communication")},
      {"wait", QT_TRANSLATE_NOOP("Timeline", "Waiting")},
      {"data", QT_TRANSLATE_NOOP("Timeline", "Reading samples")},
      {"offload", QT_TRANSLATE_NOOP("Timeline", "Offload")},
      {"turn", QT_TRANSLATE_NOOP("Timeline", "Pipeline turn")},
      {"", QT_TRANSLATE_NOOP("Timeline", "Other")},
  };
  const auto found = titles.find(category);
  return found == titles.end() ? QString::fromStdString(category) : Words::tr(found->second);
}

QString argumentText(const TraceArgument& argument) {
  if (const auto* words = std::get_if<std::string>(&argument.value)) return QString::fromStdString(*words);
  const auto* whole = std::get_if<std::int64_t>(&argument.value);
  const double number = whole ? static_cast<double>(*whole) : std::get<double>(argument.value);
  if (argument.name == "flops") return QString::fromStdString(to_string(Flops{number}));
  if (argument.name == "bytes") return QString::fromStdString(to_string(Bytes{number}));
  if (argument.name == "relative_error") return QString("± %1 %").arg(100 * number, 0, 'g', 2);
  return whole ? QString::number(*whole) : QString::number(number, 'g', 6);
}

QString spanSentence(const Timeline& timeline, SpanPlace place) {
  const TraceSpan& span = timeline.at(place);
  QStringList parts = {
      categoryTitle(span.category()),
      Words::tr("%1, from %2").arg(timeText((span.end - span.start).value()), timeText(span.start.value()))};
  for (const TraceArgument& argument : span.arguments())
    if (argument.name == "flops" || argument.name == "bytes" || argument.name == "algorithm" ||
        argument.name == "provenance")
      parts += argumentText(argument);
  if (span.critical) parts += Words::tr("on the critical path");
  return QString("<b>%1</b> · %2")
      .arg(QString::fromStdString(span.name()).toHtmlEscaped(), parts.join(QStringLiteral(" · ")).toHtmlEscaped());
}

QString spanDetails(const Timeline& timeline, SpanPlace place) {
  const TraceSpan& span = timeline.at(place);
  const Timeline::Row& row = timeline.rows()[place.row];
  QString rows;
  const auto add = [&rows](const QString& title, const QString& value) {
    if (!value.isEmpty())
      rows += QString("<tr><td>%1&nbsp;&nbsp;</td><td>%2</td></tr>").arg(title.toHtmlEscaped(), value.toHtmlEscaped());
  };
  add(Words::tr("Category"), categoryTitle(span.category()));
  add(Words::tr("Duration"), timeText((span.end - span.start).value()));
  add(Words::tr("Start"), timeText(span.start.value()));
  add(Words::tr("End"), timeText(span.end.value()));
  for (const TraceArgument& argument : span.arguments()) add(argumentTitle(argument.name), argumentText(argument));
  if (span.micro_batch) add(Words::tr("Micro-batch"), QString::number(*span.micro_batch));
  if (span.critical) add(Words::tr("Critical path"), Words::tr("yes"));
  add(Words::tr("Stream"), QString::fromStdString(row.title));
  add(Words::tr("Process"), QString::fromStdString(timeline.groups()[row.group].title));
  return QString("<b>%1</b><table>%2</table>").arg(QString::fromStdString(span.name()).toHtmlEscaped(), rows);
}

Table spanTable(const Timeline& timeline) {
  using enum Column::Align;
  Table table{{{"process", "process", left},
               {"stream", "stream", left},
               {"span", "span", left},
               {"category", "category", left},
               {"start", "start_s", right},
               {"duration", "duration_s", right},
               {"critical", "critical", left}},
              {}};
  for (const Timeline::Row& row : timeline.rows())
    for (const TraceSpan* span : row.spans) {
      const Seconds duration = span->end - span->start;
      table.rows.push_back({timeline.groups()[row.group].title, row.title, span->name(), span->category(),
                            Cell(to_string(span->start), plain_number(span->start.value())),
                            Cell(to_string(duration), plain_number(duration.value())), span->critical ? "yes" : "no"});
    }
  return table;
}

QString errorSentence(const Error& error) {
  QString text = QString::fromStdString(error.message);
  if (!error.where.empty()) text = QString::fromStdString(error.where) + ": " + text;
  if (!error.hint.empty()) text += " (" + QString::fromStdString(error.hint) + ")";
  return text;
}

}  // namespace sibyl::gui
