#include "gui/app/setup/training_section.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <optional>

#include "gui/app/setup/gesture.h"
#include "gui/app/text.h"
#include "gui/view/colours.h"
#include "oracle/cli/options.h"
#include "oracle/report/format.h"

namespace sibyl::gui {
namespace {

constexpr int most_samples = 1'000'000'000, per_device = 0;

// 1, 2, 3, 4, 6, 8, 12 … 65,536: two steps for each doubling.
std::vector<double> batches() {
  std::vector<double> all = {1, 2};
  for (double power = 2; power < 65536; power *= 2) {
    all.push_back(1.5 * power);
    all.push_back(2 * power);
  }
  return all;
}

std::optional<cli::BatchSize> batchOf(const Scenario& scenario) {
  const auto batch = cli::parse_batch(scenario.option("--batch").value_or("32/device"));
  return batch ? std::optional(*batch) : std::nullopt;
}

// "1281167", "1,281,167", "300e9"; nothing: 0, which is not asked for.
std::optional<std::int64_t> samplesOf(const QString& typed) {
  constexpr double most = 1e18;
  const QString digits = QString(typed).remove(',').remove(' ');
  if (digits.isEmpty()) return 0;
  bool number = false;
  const double samples = digits.toDouble(&number);
  if (!number || !(samples >= 0) || samples >= most || samples != std::floor(samples)) return std::nullopt;
  return static_cast<std::int64_t>(samples);
}

}  // namespace

TrainingSection::TrainingSection(Document& document, QWidget* parent)
    : ScenarioSection(tr("Training"), document, parent),
      batch_slider_(new SteppedSlider(batches(), this)),
      batch_(new QSpinBox(this)),
      batch_unit_(new QComboBox(this)),
      epoch_(new QLineEdit(this)),
      epoch_wrong_(new QLabel(this)),
      price_(new QDoubleSpinBox(this)) {
  auto* form = new QFormLayout;
  form->setContentsMargins(0, 0, 0, 0);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow(tr("Batch"), makeBatch());
  for (const auto& [name, label] : std::vector<std::pair<const char*, QString>>{
           {"--precision", tr("Precision")}, {"--optimizer", tr("Optimizer")}, {"--framework", tr("Framework")}}) {
    fields_.push_back(new OptionField(predictOption(name), label, document, this));
    form->addRow(label, fields_.back());
  }
  form->addRow(tr("Epoch"), makeEpoch());
  price_->setRange(0, 1e6);
  price_->setDecimals(2);
  price_->setSpecialValueText(tr("not known"));
  price_->setKeyboardTracking(false);
  price_->setToolTip(tr("Of one device for one hour, in whatever currency"));
  price_->setAccessibleName(tr("Price of a device-hour"));
  price_->setObjectName(QStringLiteral("price"));
  guardWheel(price_);
  form->addRow(tr("Device-hour"), price_);
  body().addLayout(form);
  body().addWidget(makeMore());
  connect(price_, &QDoubleSpinBox::valueChanged, this, [this](double price) {
    this->document().change(
        tr("Change price"), [&](Scenario& scenario) { scenario.device_hour_price = price; }, QStringLiteral("price"));
  });
  endGestures(*price_, document);
}

QWidget* TrainingSection::makeBatch() {
  const QString tip_text = tip(predictOption("--batch"));
  batch_->setRange(1, most_samples);
  batch_->setKeyboardTracking(false);
  batch_->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  constexpr int narrow = 5;
  batch_->setMinimumWidth(narrow * fontMetrics().height());
  batch_unit_->addItems({tr("/ device"), tr("in all")});
  batch_slider_->setObjectName(QStringLiteral("batch slider"));
  batch_->setObjectName(QStringLiteral("--batch"));
  batch_unit_->setObjectName(QStringLiteral("batch unit"));
  batch_slider_->setAccessibleName(tr("Batch, roughly"));
  batch_->setAccessibleName(tr("Batch"));
  batch_unit_->setAccessibleName(tr("Batch of each device, or of the step"));
  auto* all = new QWidget(this);
  auto* grid = new QGridLayout(all);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setVerticalSpacing(2);
  grid->addWidget(batch_slider_, 0, 0, 1, 2);
  grid->addWidget(batch_, 1, 0);
  grid->addWidget(batch_unit_, 1, 1);
  grid->setColumnStretch(0, 1);
  for (QWidget* control :
       {static_cast<QWidget*>(batch_slider_), static_cast<QWidget*>(batch_), static_cast<QWidget*>(batch_unit_)}) {
    control->setToolTip(tip_text);
    guardWheel(control);
  }
  connect(batch_slider_, &SteppedSlider::chosen, this,
          [this](double samples) { takeBatch(samples, QStringLiteral("batch")); });
  endGestures(*batch_slider_, document());
  connect(batch_, &QSpinBox::valueChanged, this,
          [this](int samples) { takeBatch(samples, QStringLiteral("batch box")); });
  endGestures(*batch_, document());
  connect(batch_unit_, &QComboBox::activated, this, &TrainingSection::takeUnit);
  return all;
}

QLayout* TrainingSection::makeEpoch() {
  epoch_->setObjectName(QStringLiteral("epoch"));
  epoch_->setPlaceholderText(tr("samples, as 1281167 or 300e9"));
  epoch_->setToolTip(
      tr("So many samples is an epoch, or whatever is to be trained on.\nThe answer then tells how long it takes and "
         "what it costs."));
  epoch_->setAccessibleName(tr("Samples of an epoch"));
  epoch_wrong_->setObjectName(QStringLiteral("epoch is wrong"));
  epoch_wrong_->setWordWrap(true);
  epoch_wrong_->setTextFormat(Qt::PlainText);
  epoch_wrong_->hide();
  connect(epoch_, &QLineEdit::editingFinished, this, &TrainingSection::takeEpoch);
  auto* all = new QVBoxLayout;
  all->setSpacing(2);
  all->addWidget(epoch_);
  all->addWidget(epoch_wrong_);
  return all;
}

QWidget* TrainingSection::makeMore() {
  auto* all = new QWidget(this);
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* rows = new QWidget(all);
  auto* form = new QFormLayout(rows);
  form->setContentsMargins(0, 0, 0, 0);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  for (const auto& [name, label] :
       std::vector<std::pair<const char*, QString>>{{"--bucket", tr("Bucket")},
                                                    {"--clip", tr("Clip norm")},
                                                    {"--batch-norm", tr("Batch-norm over")},
                                                    {"--data-from", tr("Data from")},
                                                    {"--loss", tr("Loss")},
                                                    {"--capacity-factor", tr("Expert capacity")},
                                                    {"--dropless", tr("Experts without slots")},
                                                    {"--whole-experts", tr("Whole experts")},
                                                    {"--context-exchange", tr("Context exchanges")},
                                                    {"--attention", tr("Attention's kernels")},
                                                    {"--half-weights", tr("Weights of two bytes")},
                                                    {"--fp32-gradients", tr("Gradients of four bytes")},
                                                    {"--no-overlap", tr("Exchange after backward")},
                                                    {"--overlap-tensor", tr("Exchanges beside products")},
                                                    {"--fused-update", tr("Fused update")},
                                                    {"--written-update", tr("Update by operators")},
                                                    {"--fused-norms", tr("Fused norms")},
                                                    {"--fused-pointwise", tr("Fused elementwise")},
                                                    {"--converted-images", tr("Converted images")},
                                                    {"--converted-norms", tr("Converted norms")}}) {
    const cli::Option& option = predictOption(name);
    fields_.push_back(new OptionField(option, label, document(), rows));
    if (option.value.empty())
      form->addRow(fields_.back());
    else
      form->addRow(label, fields_.back());
  }
  auto* more = new Disclosure(tr("More of training"), rows, all);
  more->setOpen(false);
  layout->addWidget(more);
  layout->addWidget(rows);
  return all;
}

void TrainingSection::takeBatch(double samples, const QString& gesture) {
  const QString unit = batch_unit_->currentIndex() == per_device ? QStringLiteral("/device") : QString();
  document().change(
      tr("Change batch"),
      [&](Scenario& scenario) {
        scenario.set("--batch", (QString::number(static_cast<qint64>(samples)) + unit).toStdString());
      },
      gesture);
}

void TrainingSection::takeEpoch() {
  const auto samples = samplesOf(epoch_->text());
  epoch_wrong_->setVisible(!samples);
  if (!samples) {
    QPalette colours = palette();
    colours.setColor(QPalette::WindowText, seriesColour(1, palette()));
    epoch_wrong_->setPalette(colours);
    epoch_wrong_->setText(tr("This is no whole number of samples: write it as 1281167 or 300e9."));
    return;
  }
  document().change(tr("Change epoch"), [&](Scenario& scenario) { scenario.epoch_samples = *samples; });
  showEpoch(document().current());
}

// What cannot be read stays until it is corrected, or something else is to be shown.
void TrainingSection::showEpoch(const Scenario& scenario) {
  const std::pair shown(scenario.name, scenario.epoch_samples);
  if (!epoch_wrong_->isHidden() && shown == epoch_shown_) return;
  epoch_wrong_->hide();
  epoch_shown_ = shown;
  epoch_->setText(scenario.epoch_samples > 0 ? text(grouped(scenario.epoch_samples)) : QString());
}

// The same batch in the other unit, as far as it divides.
void TrainingSection::takeUnit(int unit) {
  const auto batch = batchOf(document().current());
  if (!batch || batch->per_device == (unit == per_device)) return;
  const std::int64_t samples =
      unit == per_device ? std::max<std::int64_t>(1, batch->samples / devices_) : batch->samples * devices_;
  document().change(tr("Change batch"), [&](Scenario& scenario) {
    scenario.set("--batch", std::to_string(samples) + (unit == per_device ? "/device" : ""));
  });
}

void TrainingSection::showScenario(const Scenario& scenario) {
  for (OptionField* field : fields_) field->showScenario(scenario);
  if (const auto batch = batchOf(scenario)) {
    const QSignalBlocker quiet(batch_), still(batch_unit_);
    batch_->setValue(static_cast<int>(std::min<std::int64_t>(batch->samples, most_samples)));
    batch_unit_->setCurrentIndex(batch->per_device ? per_device : 1);
    batch_slider_->showValue(static_cast<double>(batch->samples));
  }
  showEpoch(scenario);
  const QSignalBlocker quiet(price_);
  price_->setValue(scenario.device_hour_price);
}

void TrainingSection::showAnswer(const Answer& answer) {
  if (answer.study) devices_ = answer.study->strategy.devices();
  const bool wrong = answer.wrong == Part::training && !answer.report && !concernsStrategy(answer.report.error());
  setError(wrong ? errorText(answer.report.error()) : QString());
}

}  // namespace sibyl::gui
