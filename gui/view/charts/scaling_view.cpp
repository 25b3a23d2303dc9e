#include "gui/view/charts/scaling_view.h"

#include <QFileDialog>
#include <QJsonArray>
#include <algorithm>

#include "gui/view/flow_layout.h"

namespace sibyl::gui {
namespace {

const QString current_key = QStringLiteral("current"), baseline_key = QStringLiteral("baseline");

// Of another scenario of the session.
QString keyOf(const QString& scenario) { return "scenario:" + scenario; }

}  // namespace

ScalingView::ScalingView(QWidget* parent) : ChartView(parent) {
  plot_ = new Plot(this);
  plot_->setAccessibleName(tr("Scaling over devices"));
  plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  notes_ = new QLabel(this);
  notes_->setWordWrap(true);
  notes_->setTextFormat(Qt::PlainText);
  body()->addWidget(makeControls());
  body()->addWidget(makeProgress(job_, tr("Progress of the curves"), this));
  body()->addWidget(plot_, 1);
  body()->addWidget(notes_);
  connect(&job_, &LatestSignals::busyChanged, this, &View::busyChanged);
  connect(&reading_, &LatestSignals::busyChanged, this, &View::busyChanged);
  followPointer();
}

// The curve, or the name of it in the legend, that the pointer rests on is emphasised, or else the one clicked on.
void ScalingView::followPointer() {
  connect(plot_, &QCustomPlot::mouseMove, this, [this](const QMouseEvent* event) {
    if (event->buttons() == Qt::NoButton) emphasise(curveAt(event->position().toPoint()));
  });
  connect(plot_, &Plot::left, this, [this] { emphasise({}); });
  connect(plot_, &Plot::clicked, this, [this](const QPoint& pixel) {
    const QString clicked = curveAt(pixel);
    picked_ = clicked == picked_ ? QString() : clicked;
    gui::emphasise(*plot_, curves_drawn_, hovered_.isEmpty() ? picked_ : hovered_);
  });
}

QString ScalingView::curveAt(const QPoint& pixel) const {
  const QCPAbstractPlottable* there = plot_->plottableAt(pixel);
  for (int n = 0; n < plot_->legend->itemCount(); ++n)
    if (auto* item = qobject_cast<QCPPlottableLegendItem*>(plot_->legend->item(n)))
      if (item->rect().contains(pixel)) there = item->plottable();
  const auto found = std::ranges::find_if(curves_drawn_, [there](const DrawnCurve& curve) {
    return there != nullptr && (there == curve.line || there == curve.low || there == curve.high);
  });
  return found == curves_drawn_.end() ? QString() : found->key;
}

void ScalingView::emphasise(const QString& hovered) {
  if (hovered == hovered_) return;
  hovered_ = hovered;
  gui::emphasise(*plot_, curves_drawn_, hovered_.isEmpty() ? picked_ : hovered_);
}

QWidget* ScalingView::makeControls() {
  auto* box = new QWidget(this);
  auto* line = new FlowLayout(box);
  const auto choice = [&](const QString& name, const QStringList& entries) {
    auto* combo = new QComboBox(box);
    combo->addItems(entries);
    combo->setAccessibleName(name);
    combo->setToolTip(name);
    line->addWidget(combo);
    return combo;
  };
  scaling_ = choice(tr("Weak: the batch of a device stays. Strong: the batch of the step stays."),
                    {tr("Weak scaling"), tr("Strong scaling")});
  quantity_ = choice(tr("What is shown over devices"), {tr("Throughput"), tr("Step time"), tr("Efficiency")});
  QStringList counts;
  for (int n = 8; n <= 65536; n *= 2) counts << tr("up to %1 devices").arg(quantityText(Measure::devices, n));
  most_ = choice(tr("How far the curves go"), counts);
  most_->setCurrentIndex(5);  // 256
  curves_ =
      new StrategyMenu(tr("Curves"),
                       tr("Which curves are shown: the scenario, the baseline, other scenarios of the session, and "
                          "simple strategies"),
                       box);
  curves_->setObjectName(QStringLiteral("curves"));
  curves_->choose({current_key, baseline_key});
  line->addWidget(curves_);
  const auto check = [&](const QString& name, const QString& hint, bool on) {
    auto* button = new QCheckBox(name, box);
    button->setChecked(on);
    button->setToolTip(hint);
    line->addWidget(button);
    connect(button, &QCheckBox::toggled, this, &ScalingView::lookedAtOtherwise);
    return button;
  };
  log_devices_ = check(tr("log devices"), tr("Devices along a logarithmic axis"), true);
  log_values_ = check(tr("log values"), tr("Values along a logarithmic axis"), true);
  intervals_ = check(tr("intervals"),
                     tr("The band around each curve in which nine of ten such steps lie. Rest the "
                        "pointer on a curve, or click on it, to lift its band out of the others"),
                     true);
  measured_button_ = new QPushButton(tr("Measured…"), box);
  measured_button_->setToolTip(
      tr("Points of a file of `sibyl validate --save`; those of emulated devices are called so"));
  line->addWidget(measured_button_);
  connect(curves_, &StrategyMenu::chosenChanged, this, [this] {
    emit viewStateChanged();
    refreshAgain();
  });
  connect(measured_button_, &QPushButton::clicked, this, &ScalingView::chooseMeasured);
  connect(quantity_, &QComboBox::currentIndexChanged, this, &ScalingView::lookedAtOtherwise);
  for (QComboBox* combo : {scaling_, most_})
    connect(combo, &QComboBox::currentIndexChanged, this, [this] {
      emit viewStateChanged();
      refreshAgain();
    });
  return box;
}

void ScalingView::lookedAtOtherwise() {
  emit viewStateChanged();
  if (answered()) redraw();
}

Scaling ScalingView::scaling() const { return scaling_->currentIndex() == 0 ? Scaling::weak : Scaling::strong; }
ScaleQuantity ScalingView::quantity() const { return static_cast<ScaleQuantity>(quantity_->currentIndex()); }

// All that can be shown, in the order of the menu.
std::vector<ScalingSeries> ScalingView::offered() const {
  std::vector<ScalingSeries> all;
  const auto add = [&](const QString& key, const QString& name, bool own) -> ScalingSeries& {
    ScalingSeries series;
    series.key = key;
    series.name = name;
    series.colour = static_cast<int>(all.size());
    series.own = own;
    return all.emplace_back(std::move(series));
  };
  const auto of_study = [](ScalingSeries& series, const std::shared_ptr<const Study>& study, const Strategy& strategy) {
    series.study = study;
    series.strategy = strategy;
  };
  of_study(add(current_key, tr("Current"), true), current().study, current().study->strategy);
  // Has its place whether something is pinned or not, so that no colour changes then.
  ScalingSeries& pinned = add(baseline_key, tr("Baseline"), true);
  if (baseline() && baseline()->study) of_study(pinned, baseline()->study, baseline()->study->strategy);
  for (SimpleStrategy& simple : simpleStrategies(*current().study, scaling()))
    of_study(add(simple.key, simple.title, false), current().study, simple.strategy);
  for (const Scenario& other : others_) {
    const QString name = QString::fromStdString(other.name);
    add(keyOf(name), name, false).scenario = other;
  }
  if (!all[1].study) all.erase(all.begin() + 1);
  return all;
}

void ScalingView::followRename(const QString& before, const QString& after) {
  curves_->rename(keyOf(before), keyOf(after));
  if (picked_ == keyOf(before)) picked_ = keyOf(after);
}

void ScalingView::forget() {
  reader_ = std::make_shared<StudyReader>();
  measured_file_ = std::make_shared<MeasuredFile>();
}

void ScalingView::refresh() {
  readMeasured();
  askAll();
}

// A file may be long, or lie where reading is slow.
void ScalingView::readMeasured() {
  const auto deliver = [this](Result<Points> points) {
    measured_ = std::move(points);
    dimUntilThere();
    redraw();
    tellSettled();
  };
  if (measured_path_.isEmpty()) {
    reading_.cancel();
    measured_ = Points{};
    return;
  }
  reading_.ask(
      [file = measured_file_, path = measured_path_, scenario = current().scenario](const Ticket&) {
        file->choose(path);
        return file->points(scenario);
      },
      deliver, [deliver](const Error& error) { deliver(Failure(error)); });
  dimUntilThere();
}

// What is drawn is of the question before until the first curve and the measured points have come.
void ScalingView::dimUntilThere() { setWorking(reading_.busy() || (!to_come_.empty() && to_come_.size() == all_)); }

void ScalingView::tellSettled() {
  if (!busy()) emit settled();
}

// One curve after the other, each shown when it is there. What was shown stays until the first has come.
void ScalingView::askAll() {
  std::vector<ScalingSeries> all = offered();
  // The scenario and its baseline, simple strategies, other scenarios.
  const auto group = [](const ScalingSeries& series) { return series.own ? 0 : series.study ? 1 : 2; };
  std::vector<StrategyMenu::Entry> entries;
  for (std::size_t n = 0; n < all.size(); ++n)
    entries.push_back({all[n].key, all[n].name, n > 0 && group(all[n]) != group(all[n - 1])});
  curves_->offer(entries);
  std::erase_if(all, [this](const ScalingSeries& series) { return !curves_->has(series.key); });
  to_come_.assign(std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
  all_ = to_come_.size();
  given_up_.clear();
  if (to_come_.empty()) {
    job_.cancel();
    series_.clear();
    dimUntilThere();
    redraw();
    return;
  }
  dimUntilThere();
  askNext();
}

// The file stays chosen, and is read when it is asked again.
void ScalingView::stop() {
  if (!busy()) return;
  if (reading_.busy()) measured_ = fail(stoppedText().toStdString());
  reading_.cancel();
  if (job_.busy()) return giveUp(stoppedText());
  dimUntilThere();
  redraw();
  tellSettled();
}

// Curves that are there are shown all the same, but for those of the question before.
void ScalingView::giveUp(const QString& why) {
  job_.cancel();
  if (to_come_.size() == all_) series_.clear();
  to_come_.clear();
  given_up_ = why;
  dimUntilThere();
  redraw();
  tellSettled();
}

void ScalingView::askNext() {
  const std::size_t before = all_ - to_come_.size();
  job_.ask(
      [series = to_come_.front(), reader = reader_, most = 8 << most_->currentIndex(), kind = scaling(), before,
       all = all_](const Ticket& ticket) {
        const auto told = [&](std::size_t done, std::size_t counts) {
          ticket.progress(before * counts + done, all * counts);
        };
        return worked_out(series, *reader, most, kind, told, ticket.cancelled());
      },
      [this](ScalingSeries series) {
        if (to_come_.size() == all_) series_.clear();
        series_.push_back(std::move(series));
        to_come_.pop_front();
        dimUntilThere();
        redraw();
        if (to_come_.empty())
          tellSettled();
        else
          askNext();
      },
      [this](const Error& error) { giveUp(sentence(error)); });
}

void ScalingView::redraw() {
  const ScalingLook look{scaling(), quantity(), log_devices_->isChecked(), log_values_->isChecked(),
                         intervals_->isChecked()};
  plot_->xAxis->setLabel(tr("Devices"));
  plot_->yAxis->setLabel(quantity_->currentText());
  curves_drawn_ = ScalingChart(*plot_, look).draw(series_, measured_.value_or(Points{}));
  const auto drawn = [this](const QString& key) {
    return std::ranges::any_of(curves_drawn_, [&key](const DrawnCurve& curve) { return curve.key == key; });
  };
  hovered_.clear();
  if (!drawn(picked_)) picked_.clear();
  gui::emphasise(*plot_, curves_drawn_, picked_);
  notes_->setText(notes());
  notes_->setVisible(!notes_->text().isEmpty());
}

QString ScalingView::notes() const {
  QStringList lines = ScalingChart::notes(series_);
  if (!measured_) lines << sentence(measured_.error());
  if (const QString others = otherTrainings(); !others.isEmpty())
    lines << tr("Some of the runs train otherwise than the scenario: %1").arg(others);
  if (all_ == 0) lines << tr("No curve is chosen: tick some under Curves.");
  if (!given_up_.isEmpty()) lines << given_up_;
  lines.removeDuplicates();  // both were stopped
  return lines.join('\n');
}

QString ScalingView::otherTrainings() const {
  QStringList all;
  for (const MeasuredPoint& point : measured_.value_or(Points{}))
    if (!point.otherwise.isEmpty() && !all.contains(point.otherwise)) all << point.otherwise;
  return all.join("; ");
}

void ScalingView::chooseMeasured() {
  const QString file =
      QFileDialog::getOpenFileName(this, tr("Measured runs"), measured_path_,
                                   tr("Results of sibyl validate (*.results.json *.json);;All files (*)"));
  if (!file.isEmpty()) loadMeasured(file);
}

void ScalingView::loadMeasured(const QString& file) {
  measured_path_ = file;
  emit viewStateChanged();
  if (answered()) readMeasured();
}

void ScalingView::renderCharts(QPainter& painter, const QSize& size) { plot_->render(painter, QRect(QPoint(), size)); }

std::optional<Table> ScalingView::chartTable() const {
  if (series_.empty()) return {};
  return scalingTable(series_, scaling());
}

QJsonObject ScalingView::viewState() const {
  return {{"strong", scaling_->currentIndex() == 1},  {"quantity", quantity_->currentIndex()},
          {"most", 8 << most_->currentIndex()},       {"curves", QJsonArray::fromStringList(curves_->chosen())},
          {"log_devices", log_devices_->isChecked()}, {"log_values", log_values_->isChecked()},
          {"intervals", intervals_->isChecked()},     {"measured", measured_path_}};
}

void ScalingView::restoreViewState(const QJsonObject& state) {
  // Sessions from before there was a choice name what is beside the scenario and the baseline.
  const QStringList usual = QStringList{current_key, baseline_key} + state["compared"].toVariant().toStringList();
  curves_->choose(state.contains("curves") ? state["curves"].toVariant().toStringList() : usual);
  measured_path_ = state["measured"].toString();
  scaling_->setCurrentIndex(state["strong"].toBool() ? 1 : 0);
  quantity_->setCurrentIndex(std::clamp(state["quantity"].toInt(), 0, quantity_->count() - 1));
  int index = 0;
  while (index + 1 < most_->count() && (8 << index) < state["most"].toInt(256)) ++index;
  most_->setCurrentIndex(index);
  log_devices_->setChecked(state["log_devices"].toBool(true));
  log_values_->setChecked(state["log_values"].toBool(true));
  intervals_->setChecked(state["intervals"].toBool(true));
}

}  // namespace sibyl::gui
