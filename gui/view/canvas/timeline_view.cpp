#include "gui/view/canvas/timeline_view.h"

#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QRegularExpression>
#include <QShortcut>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/view/canvas/timeline_text.h"
#include "gui/view/canvas/timeline_totals.h"
#include "gui/view/flow_layout.h"
#include "gui/view/progress_line.h"
#include "oracle/report/read_trace.h"
#include "oracle/trace/trace.h"

namespace sibyl::gui {
namespace {

constexpr std::size_t most_kernels = 400'000;  // half a gigabyte of spans with all that is known of them

QToolButton* button(QWidget* parent, const QString& text, const QString& tip) {
  auto* made = new QToolButton(parent);
  made->setText(text);
  made->setToolTip(tip);
  made->setAccessibleName(tip);
  made->setAutoRaise(true);
  return made;
}

}  // namespace

TimelineView::TimelineView(QWidget* parent) : View(parent), canvas_(new TimelineCanvas(this)) {
  setAccessibleName(tr("Timeline of a step"));
  message_ = new QLabel(this);
  message_->setWordWrap(true);
  message_->setAlignment(Qt::AlignCenter);
  message_->setMargin(24);
  span_ = new QLabel(this);
  span_->setTextFormat(Qt::RichText);
  span_->setMargin(6);
  span_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  legend_ = new QLabel(this);
  legend_->setTextFormat(Qt::RichText);
  legend_->setMargin(6);
  legend_->setAccessibleName(tr("Colours of the categories"));
  warning_ = new QLabel(this);
  warning_->setWordWrap(true);
  warning_->setMargin(6);
  warning_->hide();
  totals_ = new TimelineTotals(this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(makeTools());
  layout->addWidget(makeProgress(work_, tr("Progress of the timeline"), this));
  layout->addWidget(warning_);
  layout->addWidget(message_, 1);
  layout->addWidget(canvas_, 1);
  span_->setMinimumWidth(fontMetrics().horizontalAdvance(hintText()) + 2 * span_->margin());
  auto* words = new FlowLayout;
  words->addWidget(span_);
  words->addWidget(legend_);
  layout->addLayout(words);
  layout->addWidget(totals_);
  connect(&work_, &LatestSignals::busyChanged, this, &TimelineView::dim);
  connect(&work_, &LatestSignals::busyChanged, this, &View::busyChanged);
  connect(canvas_, &TimelineCanvas::hoveredChanged, this, &TimelineView::showSpan);
  connect(canvas_, &TimelineCanvas::areaChanged, this,
          [this] { totals_->display(canvas_->timeline(), canvas_->look().area); });
  connect(totals_, &TimelineTotals::closed, canvas_, &TimelineCanvas::clearArea);
  connect(canvas_, &TimelineCanvas::windowChanged, this, &View::lookedElsewhere);
  connect(canvas_, &TimelineCanvas::selectedChanged, this, [this] {
    showSpan();
    if (const auto& selected = canvas_->look().selected)
      if (const std::string name = operation_of(canvas_->timeline()->at(*selected)); !name.empty())
        emit operationPointedAt(QString::fromStdString(name));
  });
  setFocusProxy(canvas_);
  setTabOrder(canvas_, search_);  // letters are the timeline's until the search is asked for
  canvas_->hide();
  message_->setText(tr("Open a model to see its step."));
}

QString TimelineView::hintText() { return tr("W S zoom · A D move · Shift+drag selects an area · ? lists more"); }

QWidget* TimelineView::makeTools() {
  auto* bar = new QWidget(this);
  auto* row = new FlowLayout(bar);
  row->setContentsMargins(6, 4, 6, 4);
  search_ = new QLineEdit(bar);
  search_->setPlaceholderText(tr("Search spans"));
  search_->setAccessibleName(tr("Search spans by name"));
  search_->setToolTip(tr("Lights the spans whose name holds this text (Ctrl+F)"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(190);
  search_->setMaximumWidth(280);
  expression_ = button(bar, QStringLiteral(".*"), tr("Search by regular expression"));
  expression_->setCheckable(true);
  previous_ = button(bar, QStringLiteral("‹"), tr("Previous match (Shift+F3)"));
  next_ = button(bar, QStringLiteral("›"), tr("Next match (F3)"));
  count_ = new QLabel(bar);
  critical_ = button(bar, tr("Critical path"), tr("Light what the step's length depends on"));
  critical_->setCheckable(true);
  select_ = button(bar, tr("Select an area"),
                   tr("Dragging then selects an area, whose totals by kind and stream stand below (or Shift+drag)"));
  select_->setObjectName(QStringLiteral("select an area"));
  select_->setCheckable(true);
  real_ =
      button(bar, tr("Compare with a real step…"), tr("Show a trace that sibyl train --trace wrote, on the same axis"));
  auto* all = button(bar, tr("Show all"), tr("Show the whole step (F)"));
  for (QWidget* widget :
       {static_cast<QWidget*>(search_), static_cast<QWidget*>(expression_), static_cast<QWidget*>(previous_),
        static_cast<QWidget*>(next_), static_cast<QWidget*>(count_)})
    row->addWidget(widget);
  row->addStretch();
  for (QToolButton* widget : {critical_, select_, real_, all}) row->addWidget(widget);
  auto* soon = new QTimer(this);
  soon->setSingleShot(true);
  soon->setInterval(120);
  connect(soon, &QTimer::timeout, this, &TimelineView::searchAgain);
  connect(search_, &QLineEdit::textChanged, soon, qOverload<>(&QTimer::start));
  connect(search_, &QLineEdit::textChanged, this, &View::lookedElsewhere);
  connect(search_, &QLineEdit::returnPressed, this, [this] { step(1); });
  connect(expression_, &QToolButton::toggled, this, &TimelineView::searchAgain);
  connect(previous_, &QToolButton::clicked, this, [this] { step(-1); });
  connect(next_, &QToolButton::clicked, this, [this] { step(1); });
  connect(critical_, &QToolButton::toggled, this, [this](bool on) {
    canvas_->setCriticalLit(on);
    emit viewStateChanged();
  });
  connect(select_, &QToolButton::toggled, canvas_, &TimelineCanvas::setSelecting);
  connect(real_, &QToolButton::clicked, this, &TimelineView::chooseMeasured);
  connect(all, &QToolButton::clicked, canvas_, &TimelineCanvas::fit);
  const auto shortcut = [this](const QKeySequence& keys, auto&& act) {
    auto* made = new QShortcut(keys, this);
    made->setContext(Qt::WidgetWithChildrenShortcut);
    connect(made, &QShortcut::activated, this, act);
  };
  shortcut(QKeySequence::Find, [this] { search_->setFocus(), search_->selectAll(); });
  shortcut(Qt::Key_F3, [this] { step(1); });
  shortcut(Qt::SHIFT | Qt::Key_F3, [this] { step(-1); });
  showCount();
  return bar;
}

void TimelineView::showAnswer(const AnswerPointer& current, const AnswerPointer&) {
  answer_ = current;
  work_.cancel();  // of the answer before, which would pass for this one's when it is there
  traces_.predicted = nullptr;
  pending_ = true;
  if (isVisible()) work();
}

void TimelineView::forget() {
  work_.cancel();  // which knows the file as it was
  traces_.measured = nullptr;
  pending_ = true;
}

void TimelineView::setStale(bool stale) {
  stale_ = stale;
  dim();
}

// Until what is asked for has come, and until it is worked out here.
void TimelineView::dim() { canvas_->setStale(stale_ || work_.busy()); }

void TimelineView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  prepare();
}

void TimelineView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && canvas_) showLegend();
}

void TimelineView::prepare() {
  if (pending_) work();
}

TimelineView::Traces TimelineView::trace(const AnswerPointer& answer, const QString& path, Traces known,
                                         const Cancelled& cancelled) {
  if (path.isEmpty()) known.measured = nullptr;
  if (!path.isEmpty() && !known.measured) {
    if (auto read = read_trace(path.toStdString()))
      known.measured = std::make_shared<const std::vector<TraceProcess>>(std::move(*read));
    else
      known.measured_failure = errorSentence(read.error());
  }
  if (!known.predicted && answer && answer->study) {
    const Study& study = *answer->study;
    if (auto traced = trace_step(*study.graph, study.strategy, *study.cluster, most_kernels, cancelled))
      known.predicted = std::make_shared<const std::vector<TraceProcess>>(std::move(traced->processes));
    else
      known.failure = errorSentence(traced.error());
  }
  if (known.predicted || known.measured)
    known.timeline = std::make_shared<const Timeline>(known.predicted, known.measured);
  return known;
}

void TimelineView::work() {
  pending_ = false;
  Traces known{traces_.predicted, traces_.measured, nullptr, {}, {}};
  if (answer_ && !answer_->report) known.failure = errorSentence(answer_->report.error());
  const AnswerPointer answer = answer_ && answer_->report ? answer_ : nullptr;
  work_.ask([answer, path = measured_path_,
             known](const Ticket& ticket) { return trace(answer, path, known, ticket.cancelled()); },
            [this](Traces traces) { deliver(std::move(traces)); },
            [this](const Error& error) {
              deliver({nullptr, traces_.measured, nullptr, errorSentence(error), {}});
            });
}

void TimelineView::stop() {
  if (!work_.busy()) return;
  work_.cancel();
  deliver({nullptr, traces_.measured, nullptr, stoppedText(), {}});
}

void TimelineView::deliver(Traces traces) {
  traces_ = std::move(traces);
  const bool shows = traces_.timeline != nullptr;
  const QString nothing = answer_ ? traces_.failure : tr("Open a model to see its step.");
  message_->setText(nothing);
  message_->setVisible(!shows);
  canvas_->setTimeline(traces_.timeline);
  canvas_->setVisible(shows);
  span_->setVisible(shows);
  legend_->setVisible(shows);
  showLegend();
  QStringList warnings;
  if (shows && !traces_.failure.isEmpty()) warnings += traces_.failure;
  if (!traces_.measured_failure.isEmpty()) warnings += traces_.measured_failure;
  warning_->setText(warnings.join('\n'));
  warning_->setVisible(!warnings.isEmpty());
  if (shows && restored_) canvas_->setWindow(*restored_);
  if (shows) restored_.reset();
  searchAgain();
  emit settled();
}

QString TimelineView::message() const { return traces_.timeline ? QString() : message_->text(); }

void TimelineView::showMeasured(const QString& path) {
  measured_path_ = path;
  traces_.measured = nullptr;
  real_->setText(path.isEmpty() ? tr("Compare with a real step…") : tr("Hide the real step"));
  pending_ = true;
  if (isVisible()) work();
  emit viewStateChanged();
}

void TimelineView::chooseMeasured() {
  if (!measured_path_.isEmpty()) return showMeasured({});
  const QString path = QFileDialog::getOpenFileName(this, tr("A real step, from sibyl train --trace"), {},
                                                    tr("Chrome traces (*.json);;All files (*)"));
  if (!path.isEmpty()) showMeasured(path);
}

void TimelineView::search(const QString& text, bool regularExpression) {
  const QSignalBlocker quiet(expression_);
  expression_->setChecked(regularExpression);
  search_->setText(text);
  searchAgain();
}

void TimelineView::searchAgain() {
  const QString text = search_->text();
  search_->setToolTip(tr("Lights the spans whose name holds this text (Ctrl+F)"));
  if (!canvas_->timeline() || text.isEmpty()) {
    canvas_->setMatches({});
    return showCount();
  }
  const QString pattern = expression_->isChecked() ? text : QRegularExpression::escape(text);
  const QRegularExpression wanted(pattern, QRegularExpression::CaseInsensitiveOption);
  if (!wanted.isValid()) {
    canvas_->setMatches({});
    search_->setToolTip(wanted.errorString());
    return showCount();
  }
  light([&wanted](const std::string& name) { return wanted.match(QString::fromStdString(name)).hasMatch(); });
}

void TimelineView::light(const std::function<bool(const std::string&)>& wanted) {
  SpanMatches matches(*canvas_->timeline(), wanted);
  match_ = matches.first_from(*canvas_->timeline(), canvas_->window().begin);
  canvas_->setMatches(std::move(matches));
  showCount();
}

void TimelineView::step(int matches) {
  const SpanMatches* found = canvas_->matches();
  if (!found || found->places().empty()) return;
  const std::size_t count = found->places().size();
  const bool begins = !canvas_->look().selected || *canvas_->look().selected != found->places()[match_];
  if (begins && matches > 0) return showMatch(match_);
  showMatch((match_ + count + static_cast<std::size_t>(matches + static_cast<int>(count))) % count);
}

void TimelineView::showMatch(std::size_t match) {
  match_ = match;
  canvas_->select(canvas_->matches()->places()[match]);
  showCount();
}

void TimelineView::showCount() {
  const SpanMatches* found = canvas_->matches();
  const bool any = found && !found->places().empty();
  previous_->setEnabled(any);
  next_->setEnabled(any);
  if (!found)
    count_->clear();
  else
    count_->setText(any ? tr("%1 of %L2").arg(match_ + 1).arg(found->places().size()) : tr("no match"));
}

// The categories that there are; turns look like their passes.
void TimelineView::showLegend() {
  if (!canvas_->timeline()) return;
  const Timeline& shown = *canvas_->timeline();
  std::vector<bool> there(shown.categories().size(), false);
  for (const Timeline::Row& row : shown.rows())
    for (const std::uint8_t category : row.categories) there[category] = true;
  QStringList entries;
  const auto add = [&](const QColor& colour, const QString& title) {
    entries += QString("<span style='color:%1'>■</span>&nbsp;%2")
                   .arg(colour.name(), title.toHtmlEscaped().replace(' ', "&nbsp;"));
  };
  for (std::size_t c = 0; c < there.size(); ++c) {
    const std::string& category = shown.categories()[c];
    if (!there[c]) continue;
    if (category != "turn") {
      add(spanColour(category, {}, palette()), categoryTitle(category));
      continue;
    }
    // Of two colours, as what they run; told where nothing else says so.
    if (std::ranges::any_of(entries, [](const QString& entry) { return entry.contains(categoryTitle("forward")); }))
      continue;
    add(spanColour(category, "forward", palette()), tr("Forward turn"));
    add(spanColour(category, "backward", palette()), tr("Backward turn"));
  }
  constexpr int most = 6;  // a file may have any number
  legend_->setText(entries.mid(0, most).join("&nbsp;&nbsp; "));
}

void TimelineView::showSpan() {
  const auto& shown = canvas_->look().hovered ? canvas_->look().hovered : canvas_->look().selected;
  if (canvas_->timeline() && shown)
    span_->setText(spanSentence(*canvas_->timeline(), *shown));
  else
    span_->setText(hintText());
}

void TimelineView::pointAtOperation(const QString& operation) {
  if (!canvas_->timeline()) return;
  const std::string wanted = operation.toStdString();
  const std::string before = wanted + " ";
  SpanMatches matches(*canvas_->timeline(), [&](const std::string& name) {
    return name.starts_with(before) || name.starts_with("recompute " + before);
  });
  if (matches.places().empty()) return;
  const QSignalBlocker quiet(this);
  canvas_->select(matches.places()[matches.first_from(*canvas_->timeline(), canvas_->window().begin)]);
}

void TimelineView::renderFigure(QPainter& painter, const QSize& size) {
  if (traces_.timeline)
    canvas_->draw(painter, size);
  else
    painter.drawText(QRect(QPoint(0, 0), size), Qt::AlignCenter | Qt::TextWordWrap, message_->text());
}

std::optional<Table> TimelineView::table() const {
  if (!traces_.timeline) return {};
  return spanTable(*traces_.timeline);
}

QJsonObject TimelineView::viewState() const {
  QJsonObject state{{"search", search_->text()},
                    {"expression", expression_->isChecked()},
                    {"critical", critical_->isChecked()},
                    {"measured", measured_path_}};
  const auto keep = [&state](const TimeWindow& window) {
    state["begin"] = window.begin;
    state["end"] = window.end;
  };
  if (restored_)
    keep(*restored_);
  else if (canvas_->timeline() && !canvas_->showsAll())
    keep(canvas_->window());
  return state;
}

void TimelineView::restoreViewState(const QJsonObject& state) {
  critical_->setChecked(state["critical"].toBool());
  search(state["search"].toString(), state["expression"].toBool());
  restored_.reset();
  const double begin = state["begin"].toDouble(), end = state["end"].toDouble();
  if (end > begin) {
    restored_ = TimeWindow{begin, end};
    canvas_->setWindow(*restored_);
    if (canvas_->timeline()) restored_.reset();
  }
  if (const QString path = state["measured"].toString(); path != measured_path_) showMeasured(path);
}

}  // namespace sibyl::gui
