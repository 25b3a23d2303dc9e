#include "gui/app/setup/mesh_editor.h"

#include <QGridLayout>
#include <QSignalBlocker>
#include <algorithm>

#include "gui/app/setup/gesture.h"
#include "gui/app/setup/section.h"
#include "gui/app/text.h"
#include "gui/view/colours.h"
#include "oracle/axes.h"

namespace sibyl::gui {
namespace {

constexpr int most = 1 << 24, narrow_field = 4;

// The axes as they are said; those of a scenario that cannot be read are all 1.
Strategy meshOf(const Scenario& scenario) {
  Strategy mesh;
  if (const auto parallel = scenario.option("--parallel"))
    if (!parse_parallel(*parallel, mesh)) mesh = {};
  return mesh;
}

bool saysData(const Scenario& scenario) {
  return scenario.option("--parallel").value_or("").find("data=") != std::string::npos;
}

int devicesOf(const Scenario& scenario, const Strategy& mesh, int clusterDevices) {
  if (const auto given = scenario.option("--devices")) return std::max(1, text(*given).toInt());
  return scenario.option("--parallel") && saysData(scenario) ? mesh.devices() : clusterDevices;
}

// "tensor=4,pipeline=2"; empty where nothing but data is split.
std::string wordsOf(Strategy mesh) {
  const std::string all = parallel_text(mesh);
  const std::size_t comma = all.find(',');
  return comma == std::string::npos ? "" : all.substr(comma + 1);
}

}  // namespace

FactorBox::FactorBox(QWidget* parent) : QSpinBox(parent) {
  setRange(1, most);
  setKeyboardTracking(false);
  setMinimumWidth(narrow_field * fontMetrics().height());
  guardWheel(this);
}

int FactorBox::next(int from, int direction) const {
  for (int candidate = from + direction; candidate >= 1 && candidate <= product_; candidate += direction)
    if (product_ % candidate == 0) return candidate;
  return 0;
}

void FactorBox::stepBy(int steps) {
  int at = value();
  for (int i = 0; i < std::abs(steps); ++i)
    if (const int further = next(at, steps > 0 ? 1 : -1)) at = further;
  setValue(at);
}

QAbstractSpinBox::StepEnabled FactorBox::stepEnabled() const {
  return (next(value(), 1) > 0 ? StepUpEnabled : StepNone) | (next(value(), -1) > 0 ? StepDownEnabled : StepNone);
}

MeshEditor::MeshEditor(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      devices_(new QSpinBox(this)),
      data_(new QLabel(this)),
      sequence_(new QCheckBox(tr("Tensor ranks split the sequence, too"), this)) {
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setVerticalSpacing(3);
  grid->setColumnStretch(1, 1);
  grid->setColumnStretch(3, 1);
  devices_->setRange(1, most);
  devices_->setKeyboardTracking(false);
  devices_->setMinimumWidth(narrow_field * fontMetrics().height());
  devices_->setObjectName(QStringLiteral("--devices"));
  devices_->setAccessibleName(tr("Devices"));
  devices_->setToolTip(tip(predictOption("--devices")));
  guardWheel(devices_);
  grid->addWidget(new QLabel(tr("Devices"), this), 0, 0);
  grid->addWidget(devices_, 0, 1);
  grid->addWidget(new QLabel(tr("Data"), this), 0, 2);
  grid->addWidget(data_, 0, 3);
  QFont font = data_->font();
  font.setBold(true);
  data_->setFont(font);
  data_->setAccessibleName(tr("Data: replicas"));
  makeFactor(MeshAxis::tensor, tr("Tensor"), tr("weights of linear layers by columns and rows in turn"));
  makeFactor(MeshAxis::pipeline, tr("Pipeline"), tr("layers dealt out in stages"));
  makeFactor(MeshAxis::context, tr("Context"), tr("tokens of a sequence"));
  makeFactor(MeshAxis::expert, tr("Expert"), tr("experts of a mixture"));
  makeFactor(MeshAxis::table, tr("Table"), tr("columns of tables that are looked up in"));
  makeFactor(MeshAxis::filter, tr("Filter"), tr("filters of convolutions"));
  makeFactor(MeshAxis::channel, tr("Channel"), tr("channels of convolutions"));
  makeFactor(MeshAxis::height, tr("Height"), tr("rows of images"));
  makeFactor(MeshAxis::width, tr("Width"), tr("columns of images"));
  makeFactor(MeshAxis::depth, tr("Depth"), tr("slices of volumes"));
  for (const MeshAxis axis : axes_of_a_program())  // those that no words are found for yet
    if (!factors_.contains(axis)) makeFactor(axis, text(to_string(axis)), tr("a replica's work"));
  sequence_->setObjectName(QStringLiteral("sequence"));
  sequence_->setAccessibleName(tr("Split the sequence, too"));
  sequence_->setToolTip(
      tr("What lies between the tensor axis' weights is split along the sequence (sequence parallelism)"));
  grid->addWidget(sequence_, grid->rowCount(), 0, 1, 4);
  connect(devices_, &QSpinBox::valueChanged, this, &MeshEditor::takeDevices);
  endGestures(*devices_, document_);
  connect(sequence_, &QCheckBox::toggled, this, &MeshEditor::takeSequence);
}

void MeshEditor::makeFactor(MeshAxis axis, const QString& label, const QString& meaning) {
  auto* grid = static_cast<QGridLayout*>(layout());
  const int n = static_cast<int>(factors_.size());
  auto* box = new FactorBox(this);
  box->setObjectName("factor " + text(to_string(axis)));
  box->setAccessibleName(label);
  const QString says = tr("%1: devices that share %2").arg(label, meaning);
  box->setToolTip(says + "\n" + tr("Command line: --parallel %1=N").arg(text(to_string(axis))));
  auto* name = new QLabel(label, this);
  name->setBuddy(box);
  name->setToolTip(says);
  grid->addWidget(name, 1 + n / 2, 2 * (n % 2));
  grid->addWidget(box, 1 + n / 2, 2 * (n % 2) + 1);
  factors_[axis] = box;
  connect(box, &QSpinBox::valueChanged, this, [this, axis](int factor) { takeFactor(axis, factor); });
  endGestures(*box, document_);
}

void MeshEditor::setClusterDevices(int devices) {
  cluster_devices_ = devices;
  showScenario(document_.current());
}

void MeshEditor::showScenario(const Scenario& scenario) {
  const Strategy mesh = meshOf(scenario);
  const int devices = devicesOf(scenario, mesh, cluster_devices_), replica = mesh.devices_per_replica();
  const QSignalBlocker quiet(devices_), still(sequence_);
  devices_->setValue(devices);
  sequence_->setChecked(mesh.sequence);
  sequence_->setEnabled(mesh.tensor > 1);
  for (const auto& [axis, box] : factors_) {
    const QSignalBlocker silent(box);
    const int degree = mesh.degree(axis), others = replica / degree;
    box->setProduct(devices % others == 0 ? devices / others : devices);
    box->setValue(degree);
  }
  const bool divides = devices % replica == 0;
  data_->setText(divides ? QString::number(devices / replica) : tr("%1 does not divide").arg(replica));
  data_->setToolTip(divides
                        ? tr("%1 devices / %2 of each replica").arg(devices).arg(replica)
                        : tr("The factors multiply to %1, which does not divide %2 devices").arg(replica).arg(devices));
  QPalette colours = palette();
  if (!divides) colours.setColor(QPalette::WindowText, seriesColour(1, palette()));
  data_->setPalette(colours);
}

void MeshEditor::write(const QString& why, const Strategy& mesh, int devices, const QString& gesture) {
  const std::string words = wordsOf(mesh);
  document_.change(
      why,
      [&](Scenario& scenario) {
        scenario.set("--devices", std::to_string(devices));
        if (words.empty())
          scenario.clear("--parallel");
        else
          scenario.set("--parallel", words);
        if (mesh.pipeline > 1) return;
        scenario.clear("--schedule");
        scenario.clear("--stages");
      },
      gesture);
}

void MeshEditor::takeDevices(int devices) {
  write(tr("Change devices"), meshOf(document_.current()), devices, QStringLiteral("devices"));
}

void MeshEditor::takeFactor(MeshAxis axis, int factor) {
  Strategy mesh = meshOf(document_.current());
  const int devices = devicesOf(document_.current(), mesh, cluster_devices_);
  degree_of(mesh, axis) = factor;
  if (mesh.tensor == 1) mesh.sequence = false;
  write(tr("Change %1").arg(text(to_string(axis))), mesh, devices, "factor " + text(to_string(axis)));
}

void MeshEditor::takeSequence(bool split) {
  Strategy mesh = meshOf(document_.current());
  mesh.sequence = split && mesh.tensor > 1;
  write(tr("Change sequence"), mesh, devicesOf(document_.current(), mesh, cluster_devices_), {});
}

}  // namespace sibyl::gui
