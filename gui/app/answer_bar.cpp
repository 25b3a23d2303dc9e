#include "gui/app/answer_bar.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QVBoxLayout>
#include <cmath>

#include "base/quantity.h"
#include "gui/app/text.h"
#include "gui/view/colours.h"
#include "gui/view/flow_layout.h"
#include "gui/view/words.h"
#include "oracle/cost_of_training.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

constexpr int patience_ms = 80;
constexpr double dim = 0.45;
const QString nothing = QStringLiteral("–");

// Days and hours where seconds say little.
QString duration(Seconds time) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  const double t = time.value();
  if (t < 10 * minute) return text(to_string(time));
  if (t < 2 * hour) return AnswerBar::tr("%1 min").arg(t / minute, 0, 'f', t < 100 * minute ? 1 : 0);
  if (t < 3 * day) return AnswerBar::tr("%1 h").arg(t / hour, 0, 'f', 1);
  return AnswerBar::tr("%1 days").arg(t / day, 0, 'f', t < 100 * day ? 1 : 0);
}

// What nodes hold beside their devices, for `--offload`.
QString elsewhere(const Prediction& p) {
  QString all;
  if (p.host_memory.value() > 0) all += AnswerBar::tr(", %1 of each host").arg(text(to_string(p.host_memory)));
  if (p.storage.value() > 0) all += AnswerBar::tr(", %1 of each node's storage").arg(text(to_string(p.storage)));
  return all;
}

// "Compute: linear is 53 % of the step; twice as fast, the step would be 26 % shorter; relieved by …."
QString sentenceOf(const Bottleneck& bottleneck) {
  QString sentence = titled(bottleneck_sentence(bottleneck));
  if (const QString relief = text(relief_clause(bottleneck)); !relief.isEmpty()) sentence += "; " + relief;
  return sentence + ".";
}

// What was asked for in vain, a line each behind what holds the step back.
QString vainLines(const Prediction& p) {
  QString all;
  for (const std::string& line : p.without_effect)
    all += "\n" + AnswerBar::tr("Has no effect here: %1").arg(text(line));
  return all;
}

// The limits of the plan, a line each: what, how much of it is used, what would relieve it.
QString limitLines(const Prediction& p) {
  constexpr std::size_t name = 0, used = 2, relief = 4;  // columns
  QString all;
  for (const std::vector<Cell>& row : limits_table(p.limits).rows)
    all += "\n" + AnswerBar::tr("%1, %2: %3").arg(titled(row[name].text), text(row[used].text), text(row[relief].text));
  return all;
}

}  // namespace

Figure::Figure(const QString& caption, const QString& meaning, QWidget* parent)
    : QWidget(parent),
      meaning_(meaning),
      caption_(new QLabel(this)),
      value_(new QLabel(nothing, this)),
      note_(new QLabel(this)),
      change_(new QLabel(this)),
      note_change_(new QLabel(this)) {
  caption_->setForegroundRole(QPalette::PlaceholderText);
  note_->setForegroundRole(QPalette::PlaceholderText);
  QFont font = value_->font();
  constexpr double larger = 1.5;
  font.setPointSizeF(font.pointSizeF() * larger);
  font.setBold(true);
  value_->setFont(font);
  value_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  setCaption(caption);
  auto* top = new QHBoxLayout;
  top->setContentsMargins(0, 0, 0, 0);
  constexpr int apart = 8;
  top->setSpacing(apart);
  top->addWidget(value_);
  top->addWidget(change_, 0, Qt::AlignBottom);
  top->addStretch(1);
  auto* below = new QHBoxLayout;
  below->setContentsMargins(0, 0, 0, 0);
  below->setSpacing(apart);
  below->addWidget(note_);
  below->addWidget(note_change_);
  below->addStretch(1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(1);
  layout->addWidget(caption_);
  layout->addLayout(top);
  layout->addLayout(below);
  setToolTip(meaning_);
}

void Figure::setCaption(const QString& caption) {
  caption_->setText(caption);
  value_->setAccessibleName(caption);
}

void Figure::addBelow(QWidget* widget) { static_cast<QVBoxLayout*>(layout())->addWidget(widget); }

void Figure::display(const QString& value, const QString& note) {
  value_->setText(value);
  note_->setText(note);
  setToolTip(
      QStringLiteral("%1: %2%3\n%4").arg(caption_->text(), value, note.isEmpty() ? note : ", " + note, meaning_));
  setAccessibleDescription(value + " " + note);
}

void Figure::mark(QLabel& change, double ratio, bool lessIsBetter) const {
  const bool same = !std::isfinite(ratio) || std::abs(ratio - 1) < 5e-4;
  change.setText(same ? QString() : text(ratio_text(ratio)));
  change.setToolTip(tr("Against the pinned baseline"));
  QPalette colours = palette();
  constexpr int worse = 1, better = 2;
  colours.setColor(QPalette::WindowText, seriesColour((ratio < 1) == lessIsBetter ? better : worse, palette()));
  change.setPalette(colours);
}

AnswerBar::AnswerBar(QWidget* parent)
    : QWidget(parent),
      step_(new Figure(tr("Step time"), tr("One optimizer step of the whole job, and its 90 % interval"), this)),
      throughput_(
          new Figure(tr("Throughput"), tr("Samples of all devices in a second: their number × what each makes"), this)),
      epoch_(new Figure(
          tr("Epoch"),
          tr("Time and price of the samples that the setup names as an epoch, else of a million; start-up and "
             "checkpoints are not in it"),
          this)),
      memory_(new Figure(tr("Memory"),
                         tr("What the fullest device must have: the peak of what is alive in it, and what its "
                            "allocator keeps; against what it has"),
                         this)),
      memory_bar_(new MemoryBar(this)),
      sentence_(new QLabel(this)),
      provenance_(new QLabel(this)),
      more_micro_batches_(new QPushButton(this)),
      smaller_batch_(new QPushButton(this)),
      content_(new QWidget(this)),
      stopped_(new QLabel(this)),
      dimmed_(new QGraphicsOpacityEffect(this)) {
  setObjectName(QStringLiteral("answer"));
  memory_->addBelow(memory_bar_);
  auto* figures = new FlowLayout;
  constexpr int gap = 20;
  figures->setGaps(gap, gap / 4);
  for (Figure* figure : {step_, throughput_, epoch_, memory_}) {
    figure->setSizePolicy(figure == memory_ ? QSizePolicy::Expanding : QSizePolicy::Maximum, QSizePolicy::Maximum);
    figures->addWidget(figure);
    figures->setAlignment(figure, Qt::AlignTop);
  }
  sentence_->setWordWrap(true);
  sentence_->setTextFormat(Qt::PlainText);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  sentence_->setAccessibleName(tr("What holds the step back"));
  sentence_->setMinimumHeight(fontMetrics().height());
  provenance_->setAlignment(Qt::AlignRight | Qt::AlignTop);
  provenance_->setForegroundRole(QPalette::PlaceholderText);
  provenance_->setAccessibleName(tr("Where the time comes from"));
  auto* below = new QHBoxLayout;
  below->setSpacing(gap);
  below->addWidget(sentence_, 1);
  auto* offers = new FlowLayout;
  for (QPushButton* button : {more_micro_batches_, smaller_batch_}) {
    button->hide();
    offers->addWidget(button);
  }
  more_micro_batches_->setAccessibleName(tr("More micro-batches, which fit"));
  smaller_batch_->setAccessibleName(tr("A smaller batch, which fits"));
  for (QPushButton* button : {more_micro_batches_, smaller_batch_}) button->setToolTip(button->accessibleName());
  more_micro_batches_->setObjectName(QStringLiteral("more micro-batches"));
  smaller_batch_->setObjectName(QStringLiteral("smaller batch"));
  below->addWidget(provenance_);
  auto* layout = new QVBoxLayout(content_);
  layout->setContentsMargins(12, 8, 12, 6);
  layout->setSpacing(6);
  layout->addLayout(figures);
  layout->addLayout(below);
  layout->addLayout(offers);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(content_);
  all->addWidget(stopped_);
  constexpr int margin = 12;
  stopped_->setContentsMargins(margin, 0, margin, margin / 2);
  stopped_->setWordWrap(true);
  stopped_->setAccessibleName(tr("What was stopped"));
  QFont bold = font();
  bold.setBold(true);
  stopped_->setFont(bold);
  stopped_->hide();
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  dimmed_->setOpacity(dim);
  dimmed_->setEnabled(false);
  content_->setGraphicsEffect(dimmed_);
  soon_.setSingleShot(true);
  soon_.setInterval(patience_ms);
  connect(&soon_, &QTimer::timeout, this, [this] { dimmed_->setEnabled(true); });
}

void AnswerBar::setStale(bool stale) {
  if (stale) {
    stopped_->hide();
    if (!soon_.isActive()) soon_.start();
    return;
  }
  soon_.stop();
  dimmed_->setEnabled(false);
}

void AnswerBar::showStopped(bool answered) {
  dimmed_->setEnabled(answered);
  stopped_->setText(answered
                        ? tr("Stopped: this is the answer to the question before. The next change asks again, and "
                             "so does reloading (F5).")
                        : tr("Stopped: there is no answer. The next change asks again, and so does reloading (F5)."));
  stopped_->show();
}

void AnswerBar::showAnswer(const AnswerPointer& current, const AnswerPointer& baseline) {
  if (!current) return;
  baseline_ = baseline;
  setForeseen(false);
  more_micro_batches_->hide();
  smaller_batch_->hide();
  if (!current->report) return showError(*current);
  const Prediction& prediction = current->report->prediction;
  showPrediction(prediction);
  showCost(current->scenario, prediction, prediction.global_batch, prediction.devices);
  showRatios(pinned() == nullptr ? Ratios{} : ratios(prediction, *pinned()));
}

void AnswerBar::showPrediction(const Prediction& p) {
  step_->display(text(to_string(p.step_time)), text(interval_words(p)));
  throughput_->display(
      text(samples_per_second(p.throughput)),
      p.devices > 1 ? tr("%1 × %2").arg(text(grouped(p.devices)), text(samples_per_second(throughput_per_device(p))))
                    : tr("of one device"));
  showMemory(p.memory.needed(), p.memory_capacity, p.fits, elsewhere(p));
  memory_bar_->display(p.memory, p.memory_capacity);
  sentence_->setPalette(palette());
  sentence_->setText(sentenceOf(p.bottleneck) + vainLines(p));
  sentence_->setToolTip(
      tr("What most of the step waits for, and what twice its speed would give.\nWhat limits the plan, "
         "how much of it is used, and what would relieve it:%1")
          .arg(limitLines(p)));
  provenance_->setText(tr("%1 estimated").arg(text(percent(p.provenance.estimated))));
  provenance_->setToolTip(
      tr("%1.\nHow much of the time comes from kernels and messages that were timed on this machine, from measured "
         "neighbours of the\n"
         "same kind, or from a roofline or datasheet: a guess. `sibyl calibrate` replaces guesses by measurements.")
          .arg(text(provenance_sentence(p.provenance))));
}

void AnswerBar::showMemory(Bytes needed, Bytes capacity, bool fits, const QString& beside) {
  const double share = capacity.value() > 0 ? needed / capacity : 0;
  memory_->display(
      text(to_string(needed)),
      (fits ? tr("%1 of %2") : tr("does not fit: %1 of %2")).arg(text(percent(share)), text(to_string(capacity))) +
          beside);
  QPalette colours = palette();
  if (!fits) colours.setColor(QPalette::WindowText, seriesColour(1, palette()));
  memory_->setPalette(colours);
}

// What a formula does not say is of the answer before, and looks so.
void AnswerBar::setForeseen(bool foreseen) {
  for (QWidget* old :
       {static_cast<QWidget*>(sentence_), static_cast<QWidget*>(provenance_), static_cast<QWidget*>(memory_bar_)})
    old->setEnabled(!foreseen);
}

void AnswerBar::foresee(const Foreseen& foreseen) {
  const closed::FirstAnswer& first = foreseen.answer;
  soon_.stop();
  dimmed_->setEnabled(false);
  setForeseen(true);
  more_micro_batches_->hide();
  smaller_batch_->hide();
  const QString note = tr("by formula");
  step_->display(text(to_string(first.step_time)), note);
  throughput_->display(text(samples_per_second(first.throughput)), note);
  showMemory(first.memory, first.memory_capacity, first.fits(), ", " + note + tr(", without the allocator's cache"));
  Evaluation step;
  step.step_time = first.step_time;
  showCost(foreseen.scenario, step, foreseen.strategy.global_batch, foreseen.strategy.devices());
  if (pinned() != nullptr) showRatios(ratios(first, *pinned()));
}

void AnswerBar::offer(const NearestFit& fit, const Strategy& strategy) {
  if (fit.micro_batches) {
    const QString number = QString::number(*fit.micro_batches);
    offerOne(more_micro_batches_, tr("Fits in %1 micro-batches").arg(number), QStringLiteral("--micro-batches"),
             number);
  }
  if (fit.global_batch) {
    const QString batch = text(batch_text(strategy, *fit.global_batch));
    offerOne(smaller_batch_, tr("Fits with a batch of %1").arg(batch), QStringLiteral("--batch"), batch);
  }
  if (!fit.micro_batches && !fit.global_batch) {
    QString sentence = text(to_text(fit));
    if (!sentence.isEmpty()) sentence[0] = sentence[0].toUpper();
    sentence_->setText(sentence + ".");
  }
}

void AnswerBar::offerOne(QPushButton* button, const QString& words, const QString& option, const QString& value) {
  button->setText(words);
  button->setToolTip(tr("%1 %2, and everything else as it is").arg(option, value));
  button->setAccessibleName(words);
  button->disconnect(this);
  connect(button, &QPushButton::clicked, this, [this, option, value] { emit remedyChosen(option, value); });
  button->show();
}

void AnswerBar::showCost(const Scenario& scenario, const Evaluation& step, std::int64_t batch, int devices) {
  const bool epoch = scenario.epoch_samples > 0;
  const std::int64_t samples = epoch ? scenario.epoch_samples : usual_samples;
  const TrainingCost cost = cost_of_training(step, batch, devices, samples, scenario.device_hour_price);
  const QString hours = tr("%1 device-hours").arg(text(with_prefix(cost.device_hours, "")).trimmed());
  epoch_->setCaption((epoch ? tr("Epoch of %1") : tr("%1 samples")).arg(text(grouped(samples))));
  epoch_->display(duration(cost.time),
                  scenario.device_hour_price > 0
                      ? tr("costs %L1 in %2").arg(cost.price, 0, 'f', cost.price < 100 ? 2 : 0).arg(hours)
                      : hours);
  CostRatios against;
  if (pinned() != nullptr)
    against = ratios(cost, cost_of_training(*pinned(), samples, baseline_->scenario.device_hour_price));
  epoch_->showChange(against.time, true);
  epoch_->showNoteChange(against.cost, true);
}

const Prediction* AnswerBar::pinned() const {
  return baseline_ && baseline_->report ? &baseline_->report->prediction : nullptr;
}

void AnswerBar::showRatios(const Ratios& against) {
  step_->showChange(against.step_time, true);
  throughput_->showChange(against.throughput, false);
  memory_->showChange(against.memory, true);
}

void AnswerBar::showError(const Answer& answer) {
  for (Figure* figure : {step_, throughput_, epoch_, memory_}) {
    figure->display(nothing, {});
    figure->showChange(1, true);
    figure->showNoteChange(1, true);
    figure->setPalette(palette());
  }
  memory_bar_->clear();
  provenance_->clear();
  const bool begun = !answer.scenario.model.empty() && !answer.scenario.cluster.empty();
  QPalette colours = palette();
  if (begun) colours.setColor(QPalette::WindowText, seriesColour(1, palette()));
  sentence_->setPalette(colours);
  sentence_->setText(answer.scenario.model.empty()
                         ? tr("Choose a model: open or drop an ONNX file, or take one of the zoo.")
                     : answer.scenario.cluster.empty()
                         ? tr("Choose a cluster: one that is shipped, a cluster.yaml, or a calibration.json.")
                         : errorText(answer.report.error()));
  sentence_->setToolTip({});
}

}  // namespace sibyl::gui
