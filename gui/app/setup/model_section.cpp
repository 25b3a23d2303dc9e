#include "gui/app/setup/model_section.h"

#include <QCompleter>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <algorithm>

#include "base/quantity.h"
#include "gui/app/setup/gesture.h"
#include "gui/app/text.h"
#include "gui/model/recent_files.h"
#include "models/zoo/zoo.h"
#include "oracle/report/format.h"

namespace sibyl::gui {
namespace {

constexpr int longest = 1 << 24;  // of a dimension that can be typed

// The size that "--dim" gives it.
std::optional<int> given_size(const Scenario& scenario, const std::string& name) {
  const auto found = scenario.options.find("--dim");
  if (found == scenario.options.end()) return std::nullopt;
  for (const std::string& dim : found->second)
    if (dim.starts_with(name + "=")) return text(dim).section('=', 1).toInt();
  return std::nullopt;
}

QString modelTitle(const std::string& model) {
  return text(model).startsWith(QLatin1String("zoo:")) ? text(model) : QFileInfo(text(model)).fileName();
}

}  // namespace

ModelSection::ModelSection(Document& document, QWidget* parent)
    : ScenarioSection(tr("Model"), document, parent),
      models_(new QComboBox(this)),
      about_(new QLabel(this)),
      dimensions_form_(new QFormLayout) {
  models_->setEditable(true);
  models_->setInsertPolicy(QComboBox::NoInsert);
  models_->lineEdit()->setPlaceholderText(tr("A file or zoo:NAME"));
  models_->setObjectName(QStringLiteral("model"));
  models_->setAccessibleName(tr("Model"));
  models_->setToolTip(
      tr("The model that is trained: an ONNX file, or one of the zoo.\nType a part of a name to find it; drop a file "
         "anywhere on the window."));
  models_->completer()->setFilterMode(Qt::MatchContains);
  models_->completer()->setCompletionMode(QCompleter::PopupCompletion);
  models_->setMinimumContentsLength(12);
  models_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  guardWheel(models_);
  fillModels();
  auto* open = new QPushButton(tr("Open…"), this);
  open->setToolTip(tr("Choose an ONNX file"));
  open->setAccessibleName(tr("Open a model file"));
  auto* row = new QHBoxLayout;
  row->addWidget(models_, 1);
  row->addWidget(open);
  about_->setWordWrap(true);
  about_->setForegroundRole(QPalette::PlaceholderText);
  dimensions_form_->setContentsMargins(0, 0, 0, 0);
  body().addLayout(row);
  body().addWidget(about_);
  body().addLayout(dimensions_form_);
  connect(open, &QPushButton::clicked, this, &ModelSection::openRequested);
  connect(models_, &QComboBox::activated, this,
          [this](int index) { emit modelChosen(models_->itemData(index).toString()); });
  connect(models_->lineEdit(), &QLineEdit::returnPressed, this, [this] {
    const int known = models_->findText(models_->currentText());
    emit modelChosen(known >= 0 ? models_->itemData(known).toString() : models_->currentText().trimmed());
  });
}

void ModelSection::fillModels() {
  for (const QString& path : RecentFiles(QStringLiteral("recent/models")).list()) {
    models_->addItem(QFileInfo(path).fileName(), path);
    models_->setItemData(models_->count() - 1, path, Qt::ToolTipRole);
  }
  if (models_->count() > 0) models_->insertSeparator(models_->count());
  for (const ZooModel& model : zoo_models()) {
    models_->addItem("zoo:" + text(model.name), "zoo:" + text(model.name));
    models_->setItemData(
        models_->count() - 1,
        tr("%1: %2 parameters")
            .arg(text(model.description), text(with_prefix(static_cast<double>(model.parameters), ""))),
        Qt::ToolTipRole);
  }
}

void ModelSection::showScenario(const Scenario& scenario) {
  const QSignalBlocker quiet(models_);
  const QString model = text(scenario.model);
  if (!model.isEmpty() && models_->findData(model) < 0) {
    models_->insertItem(0, modelTitle(scenario.model), model);
    models_->setItemData(0, model, Qt::ToolTipRole);
  }
  models_->setCurrentIndex(model.isEmpty() ? -1 : models_->findData(model));
  if (model.isEmpty()) models_->setEditText({});
  for (const auto& [name, box] : dimensions_) {
    const QSignalBlocker still(box);
    box->setValue(given_size(scenario, name).value_or(box->minimum()));
  }
}

void ModelSection::showAnswer(const Answer& answer) {
  setError(answer.wrong == Part::model && !answer.scenario.model.empty() && !answer.report
               ? errorText(answer.report.error())
               : QString());
  if (!(shown_ == answer.dimensions)) showDimensions(answer.dimensions);
  if (answer.study) {
    const Graph& graph = *answer.study->graph;
    about_->setText(tr("%1 parameters in %2 operations")
                        .arg(text(with_prefix(static_cast<double>(graph.parameter_count()), "")).trimmed(),
                             text(grouped(static_cast<std::int64_t>(graph.operations().size())))));
    described_ = answer.scenario.model;
  } else if (answer.scenario.model.empty()) {
    about_->setText(tr("Choose a model, or drop an ONNX file here."));
  } else if (answer.scenario.model != described_ || answer.wrong == Part::model) {
    about_->clear();
    described_.clear();
  }
}

void ModelSection::showDimensions(const std::vector<OpenDimension>& dimensions) {
  while (dimensions_form_->rowCount() > 0) dimensions_form_->removeRow(0);
  dimensions_.clear();
  shown_ = dimensions;
  for (const OpenDimension& dimension : dimensions) {
    auto* box = new QSpinBox(this);
    box->setRange(0, longest);
    // At the least: as the file says, or not given.
    box->setSpecialValueText(dimension.size ? tr("%1 (the file's)").arg(*dimension.size) : tr("not given"));
    box->setKeyboardTracking(false);
    box->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
    box->setAccessibleName(text(dimension.name));
    box->setObjectName("--dim " + text(dimension.name));
    box->setToolTip(tr("An extent that the model leaves open, in elements.\nCommand line: --dim %1=SIZE")
                        .arg(text(dimension.name)));
    guardWheel(box);
    box->setValue(given_size(document().current(), dimension.name).value_or(0));
    connect(box, &QSpinBox::valueChanged, this, [this, name = dimension.name](int size) { setDimension(name, size); });
    endGestures(*box, document());
    dimensions_form_->addRow(text(dimension.name), box);
    dimensions_[dimension.name] = box;
  }
}

void ModelSection::setDimension(const std::string& name, int size) {
  document().change(
      tr("Change %1").arg(text(name)),
      [&](Scenario& scenario) {
        std::vector<std::string> dims = scenario.options["--dim"];
        std::erase_if(dims, [&](const std::string& dim) { return dim.starts_with(name + "="); });
        if (size > 0) dims.push_back(name + "=" + std::to_string(size));
        if (dims.empty())
          scenario.clear("--dim");
        else
          scenario.options["--dim"] = dims;
      },
      "dim " + text(name));
}

}  // namespace sibyl::gui
