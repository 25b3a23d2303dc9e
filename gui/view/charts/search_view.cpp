#include "gui/view/charts/search_view.h"

#include <QItemSelectionModel>
#include <QJsonArray>
#include <QSplitter>
#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "gui/view/colours.h"
#include "gui/view/flow_layout.h"
#include "oracle/cost_of_training.h"

namespace sibyl::gui {
namespace {

constexpr double slowest_shown = 3;  // times the fastest

QString wordsOf(const Candidate& candidate) {
  QString words = QString::fromStdString(strategy_words(candidate.strategy));
  return words.mid(QStringLiteral("--parallel ").size());
}

QString latin(std::string_view text) { return QString::fromLatin1(text.data(), static_cast<qsizetype>(text.size())); }

// "128 ms ± 4 ms, 12.3 GiB, waits for …"
QString explanation(const Candidate& candidate, const Candidate& fastest) {
  QString text =
      wordsOf(candidate) + "\n" +
      QObject::tr("step time %1, memory %2")
          .arg(QString::fromStdString(time_words(candidate)), QString::fromStdString(to_string(candidate.memory)));
  const Excess excess = excess_over(candidate, fastest);
  if (candidate.step_time > fastest.step_time && excess.time.value() > 0)
    text += "\n" + QObject::tr("%1 longer than the fastest: %2 more of %3")
                       .arg(quantityText(Measure::change, longer_than(candidate, fastest)),
                            QString::fromStdString(to_string(excess.time)), QString::fromStdString(excess.part));
  return text;
}

}  // namespace

SearchView::SearchView(QWidget* parent) : ChartView(parent) {
  body()->addWidget(makeControls());
  body()->addWidget(makeProgress(job_, tr("Progress of the search"), this));
  says_ = new QLabel(this);
  says_->setWordWrap(true);
  body()->addWidget(says_);
  auto* splitter = new QSplitter(Qt::Vertical, this);
  results_ = splitter;
  splitter->setChildrenCollapsible(false);
  front_ = new Plot(splitter);
  front_->setAccessibleName(tr("Step time against memory or cost of the strategies that nothing else beats in all"));
  sorted_.setSourceModel(&best_);
  sorted_.setSortRole(TableModel::ValueRole);
  table_ = new WideTable(&sorted_, true, tr("The fastest strategies"), splitter);
  splitter->addWidget(table_);
  splitter->setSizes({2000, 2000});
  front_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  body()->addWidget(splitter, 1);
  body()->addStretch(0);
  cancel_->setEnabled(false);
  showWhatCanBeDone();

  connect(start_, &QPushButton::clicked, this, &SearchView::start);
  connect(cancel_, &QPushButton::clicked, this, &SearchView::cancel);
  connect(apply_, &QPushButton::clicked, this, &SearchView::apply);
  connect(&job_, &LatestSignals::busyChanged, this, [this](bool busy) {
    emit busyChanged();
    cancel_->setEnabled(busy);
    showWhatCanBeDone();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &SearchView::pickRow);
  connect(table_, &QTableView::clicked, this, &SearchView::useRow);
  connect(table_, &WideTable::returnPressed, this, &SearchView::useRow);
  connect(front_, &QCustomPlot::plottableClick, this, &SearchView::pickPoint);
}

QWidget* SearchView::makeControls() {
  auto* box = new QWidget(this);
  auto* rows = new QVBoxLayout(box);
  rows->setContentsMargins(0, 0, 0, 0);
  auto* upper = new FlowLayout;
  auto* middle = new FlowLayout;
  auto* lower = new FlowLayout;
  rows->addLayout(upper);
  rows->addLayout(middle);
  rows->addLayout(lower);
  upper->addWidget(new QLabel(tr("Split over"), box));
  const QStringList usual = SearchControls{}.axes;
  for (const QString& axis : searchableAxes()) {
    auto* check = new QCheckBox(axis, box);
    check->setChecked(usual.contains(axis));
    check->setAccessibleName(tr("Search may split over %1").arg(axis));
    check->setToolTip(check->accessibleName());
    connect(check, &QCheckBox::toggled, this, &View::viewStateChanged);
    axes_ << check;
    upper->addWidget(check);
  }
  middle->addWidget(new QLabel(tr("Vary, too"), box));
  for (const SearchVariation& one : search_variations()) {
    auto* check = new QCheckBox(latin(one.word), box);
    check->setAccessibleName(tr("Search varies %1").arg(check->text()));
    check->setToolTip(latin(one.what));
    connect(check, &QCheckBox::toggled, this, &View::viewStateChanged);
    varied_ << check;
    middle->addWidget(check);
  }
  middle->addStretch();
  const auto edit = [&](const QString& name, const QString& hint, const QString& placeholder) {
    auto* label = new QLabel(name, box);
    auto* field = new QLineEdit(box);
    field->setPlaceholderText(placeholder);
    field->setToolTip(hint);
    field->setAccessibleName(name);
    field->setMaximumWidth(140);
    label->setBuddy(field);
    connect(field, &QLineEdit::textChanged, this, &View::viewStateChanged);
    lower->addWidget(label);
    lower->addWidget(field);
    return field;
  };
  devices_ = edit(tr("Devices"), tr("8, or 8,16,32, or 1..64 for doublings"), tr("as now"));
  memory_ = edit(tr("Memory of a device"), tr("Strategies that need more are left out, as 60GiB"), tr("all it has"));
  keep_ = new QSpinBox(box);
  keep_->setRange(1, 1000);
  keep_->setValue(SearchControls{}.keep);
  keep_->setAccessibleName(tr("How many strategies are listed"));
  keep_->setToolTip(keep_->accessibleName());
  connect(keep_, &QSpinBox::valueChanged, this, &View::viewStateChanged);
  quantity_ = new QComboBox(box);
  quantity_->addItems({tr("Time and memory"), tr("Time and cost")});
  quantity_->setAccessibleName(tr("What the chart shows"));
  quantity_->setToolTip(tr(
      "What less memory costs in time; or what less time costs in device-hours and money.\nCost is that of the epoch "
      "that the setup names, else of a million samples."));
  connect(quantity_, &QComboBox::currentIndexChanged, this, [this] {
    emit viewStateChanged();
    drawFront();
  });
  lower->addWidget(new QLabel(tr("Listed"), box));
  lower->addWidget(keep_);
  upper->addStretch();
  upper->addWidget(quantity_);
  lower->addStretch();
  start_ = new QPushButton(tr("Search"), box);
  cancel_ = new QPushButton(tr("Cancel"), box);
  apply_ = new QPushButton(tr("Use this strategy"), box);
  cancel_->setToolTip(tr("Stop, and show what was found until now"));
  for (QPushButton* button : {start_, cancel_, apply_}) lower->addWidget(button);
  return box;
}

SearchControls SearchView::controls() const {
  const auto checked = [](const QList<QCheckBox*>& boxes) {
    QStringList words;
    for (const QCheckBox* one : boxes)
      if (one->isChecked()) words << one->text();
    return words;
  };
  return {checked(axes_), checked(varied_), devices_->text(), memory_->text(), keep_->value()};
}

void SearchView::setStale(bool stale) {
  ChartView::setStale(stale);
  showWhatCanBeDone();
}

bool SearchView::isOfTheScenario() const {
  return found_ && answered() && sameButForStrategy(*found_->study, *current().study, found_->any_devices);
}

void SearchView::tellFound() {
  const QString summary = searchSummary(found_->report->result);
  says_->setText(isOfTheScenario()
                     ? summary
                     : tr("Found for the scenario as it was: search again for the present one. ") + summary);
}

// The scenario may have become another one than what is shown is of: by a change that is not answered yet, or whose
// answer was stopped, or since the search. To use a strategy would take that change back.
void SearchView::showWhatCanBeDone() {
  const QString later = tr("The scenario has changed, and its answer is not there: wait for it, or reload (F5)");
  start_->setEnabled(!job_.busy() && !stale());
  start_->setToolTip(stale() ? later : tr("Price every strategy of these axes"));
  const bool other = found_ && found_->report && !isOfTheScenario();
  apply_->setEnabled(picked_ && !stale() && !other);
  apply_->setToolTip(stale() ? later
                     : other ? tr("These were found for the scenario as it was: search again for the present one")
                             : tr("Make the picked strategy the scenario's own"));
  table_->setToolTip(stale() || other ? apply_->toolTip() : tr("A click makes a strategy the scenario's own"));
}

void SearchView::refresh() {
  if (!found_ && !job_.busy())
    says_->setText(
        tr("Nothing was searched yet. A search prices every way to split the step over the axes that are ticked, and "
           "lists the fastest; \"Find the best\" in the setup takes what it recommends."));
  if (found_ && found_->report && !job_.busy()) tellFound();
  showWhatCanBeDone();
  takePrices();
  redraw();
}

// Cost is of the setup as it is now: other prices are no other search.
void SearchView::takePrices() {
  if (!found_ || !found_->report) return;
  const Scenario& scenario = current().scenario;
  found_->report->samples = scenario.epoch_samples > 0 ? scenario.epoch_samples : usual_samples;
  found_->report->device_hour_price = scenario.device_hour_price;
  Table table = searchTable(*found_->report);
  if (table.columns.size() != best_.table().columns.size() || table.rows != best_.table().rows)
    best_.setTable(std::move(table));
}

bool SearchView::showsCost() const { return quantity_->currentIndex() == 1; }

QString SearchView::costTitle() const {
  const bool epoch = current().scenario.epoch_samples > 0, priced = current().scenario.device_hour_price > 0;
  if (priced) return epoch ? tr("Cost of an epoch") : tr("Cost of a million samples");
  return epoch ? tr("Device-hours of an epoch") : tr("Device-hours of a million samples");
}

double SearchView::heightOf(const Candidate& candidate) const {
  if (!showsCost()) return candidate.memory.value();
  const TrainingCost cost = cost_of(*found_->report, candidate);
  return found_->report->device_hour_price > 0 ? cost.price : cost.device_hours;
}

void SearchView::prepare() {
  ChartView::prepare();
  if (answered() && !job_.busy() && (!found_ || found_->study != current().study)) start();
}

void SearchView::start() {
  if (!answered()) return;
  Result<SearchQuestion> question = searchQuestion(current().study, controls());
  if (!question) {
    says_->setText(sentence(question.error()));
    emit settled();
    return;
  }
  says_->setText(tr("Searching…"));
  stop_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<const Study> study = question->study;
  const bool any_devices = !controls().devices.trimmed().isEmpty();
  job_.ask(
      [question = std::move(*question), stop = stop_, model = current().report->model,
       cluster = current().report->cluster, any_devices](const Ticket& ticket) {
        const auto progress = [&](std::size_t done, std::size_t total) { ticket.progress(done, total); };
        const auto cancelled = [&, dropped = ticket.cancelled()] { return dropped() || stop->load(); };
        return Found{question.study, any_devices, answer(question, progress, cancelled).map([&](SearchResult result) {
                       return SearchReport{model, cluster, "sibyl predict", std::move(result), 0, 0};
                     })};
      },
      [this](Found found) { deliver(std::move(found)); },
      [this, study, any_devices](const Error& error) {
        deliver({study, any_devices, Failure(error)});
      });
}

// What was found until now is shown.
void SearchView::cancel() {
  if (stop_) stop_->store(true);
}

void SearchView::deliver(Found found) {
  found_ = std::move(found);
  picked_.reset();
  showWhatCanBeDone();
  if (found_->report) {
    takePrices();
    tellFound();
    const std::vector<Column>& columns = best_.table().columns;
    const auto last = std::ranges::find(columns, "loses_by", &Column::key);
    table_->keepInSight(static_cast<int>(last - columns.begin()) + 1);
    table_->fit();
  } else {
    best_.setTable({});
    says_->setText(sentence(found_->report.error()));
  }
  drawFront();
  emit settled();
}

void SearchView::pick(const Candidate& candidate) {
  picked_ = candidate;
  showWhatCanBeDone();
  drawFront();
}

void SearchView::pickRow(const QModelIndex& index) {
  if (index.isValid() && found_ && found_->report)
    pick(found_->report->result.best[static_cast<std::size_t>(sorted_.mapToSource(index).row())]);
}

// Of two clicks the second finds the strategy on its way, or there. What is current may not be what is picked: a point
// of the chart may have been picked since.
void SearchView::useRow(const QModelIndex& index) {
  pickRow(index);
  apply();
}

void SearchView::apply() {
  if (!apply_->isEnabled() || hasStrategy(*current().study, picked_->strategy)) return;
  emit scenarioProposed(scenarioWith(current().scenario, *current().study->cluster, picked_->strategy),
                        tr("Use %1").arg(wordsOf(*picked_)));
}

void SearchView::redraw() { drawFront(); }

void SearchView::addPoints(int devices, const std::vector<const Candidate*>& points, int series) {
  QVector<double> times, heights;
  for (const Candidate* c : points) times << c->step_time.value(), heights << heightOf(*c);
  QCPGraph* graph = front_->addGraph();
  graph->setData(times, heights, true);
  graph->setLineStyle(QCPGraph::lsLine);
  const QColor colour = seriesColour(series, palette());
  graph->setPen(QPen(mixed(palette().color(QPalette::Base), colour, 0.6), 1.5));
  graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, colour, colour, 8));
  graph->setName(devices == 1 ? tr("1 device") : tr("%1 devices").arg(quantityText(Measure::devices, devices)));
  graph->addToLegend();
  points_.insert(graph, points);
  front_->explain(graph, [this, points](int n) {
    const Candidate& candidate = *points[static_cast<std::size_t>(n)];
    const double cost = found_->report->device_hour_price > 0 ? cost_of(*found_->report, candidate).price
                                                              : cost_of(*found_->report, candidate).device_hours;
    return explanation(candidate, found_->report->result.best.front()) + "\n" + costTitle() + ": " +
           quantityText(Measure::amount, cost);
  });
}

void SearchView::drawFront() {
  results_->setVisible(found_ && found_->report && !found_->report->result.best.empty());
  points_.clear();
  front_->clear();
  front_->setMeasure(front_->xAxis, Measure::seconds);
  front_->setMeasure(front_->yAxis, showsCost() ? Measure::amount : Measure::bytes);
  front_->xAxis->setLabel(tr("Step time"));
  front_->yAxis->setLabel(!showsCost() ? tr("Memory") : answered() ? costTitle() : tr("Cost"));
  if (found_ && found_->report && !found_->report->result.front.empty()) {
    const SearchResult& result = found_->report->result;
    std::map<int, std::vector<const Candidate*>> by_devices;
    for (const Candidate& c : result.front) by_devices[c.strategy.devices()].push_back(&c);
    int series = 0;
    for (const auto& [devices, points] : by_devices) addPoints(devices, points, series++);
    front_->rescaleAxes();
    // What takes many times as long is there when the axis is dragged.
    const double fastest = result.front.front().step_time.value(),
                 slowest = std::min(front_->xAxis->range().upper, slowest_shown * fastest);
    front_->xAxis->setRange(fastest - 0.06 * slowest, 1.06 * slowest);
    front_->yAxis->setRange(0, front_->yAxis->range().upper * 1.2);
    const Candidate& best = result.recommended;
    front_->addText(best.step_time.value(), heightOf(best), tr("★ recommended"), Qt::AlignLeft | Qt::AlignBottom,
                    front_->textColour());
    if (picked_)
      front_->addText(picked_->step_time.value(), heightOf(*picked_), tr("picked: %1").arg(wordsOf(*picked_)),
                      Qt::AlignLeft | Qt::AlignTop, seriesColour(1, palette()));
  }
  front_->replot(QCustomPlot::rpQueuedReplot);
}

// Redrawing takes the point away that was clicked on: later.
void SearchView::pickPoint(QCPAbstractPlottable* plottable, int n) {
  const auto found = points_.find(plottable);
  if (found == points_.end() || n < 0 || static_cast<std::size_t>(n) >= found->size()) return;
  const Candidate candidate = *(*found)[static_cast<std::size_t>(n)];
  QMetaObject::invokeMethod(
      this, [this, candidate] { pick(candidate); }, Qt::QueuedConnection);
}

void SearchView::renderCharts(QPainter& painter, const QSize& size) { front_->render(painter, QRect(QPoint(), size)); }

std::optional<Table> SearchView::chartTable() const {
  if (!found_ || !found_->report) return {};
  return searchTable(*found_->report);
}

QJsonObject SearchView::viewState() const {
  const SearchControls c = controls();
  return {{"axes", QJsonArray::fromStringList(c.axes)},
          {"vary", QJsonArray::fromStringList(c.varied)},
          {"devices", c.devices},
          {"memory", c.memory},
          {"keep", c.keep},
          {"cost", showsCost()}};
}

void SearchView::restoreViewState(const QJsonObject& state) {
  if (state.contains("axes"))
    for (QCheckBox* axis : axes_) axis->setChecked(state["axes"].toArray().contains(axis->text()));
  for (QCheckBox* one : varied_) one->setChecked(state["vary"].toArray().contains(one->text()));
  devices_->setText(state["devices"].toString());
  memory_->setText(state["memory"].toString());
  keep_->setValue(state["keep"].toInt(SearchControls{}.keep));
  quantity_->setCurrentIndex(state["cost"].toBool() ? 1 : 0);
}

}  // namespace sibyl::gui
