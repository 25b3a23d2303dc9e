#include "gui/app/setup/cluster_section.h"

#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QSignalBlocker>
#include <algorithm>

#include "base/quantity.h"
#include "gui/app/setup/gesture.h"
#include "gui/app/text.h"
#include "gui/model/recent_files.h"
#include "netmodel/fabric/fabric.h"
#include "oracle/report/format.h"

namespace sibyl::gui {
namespace {

constexpr int most_nodes = 1'000'000, most_in_a_node = 1 << 16;
const std::string type_option = "--device-type";

// "8 nodes of 8 A100-SXM4-80GB, 80.0 GiB each; NVSwitch 300 GB/s, 8 NICs of 25.0 GB/s".
QString description(const Cluster& cluster) {
  const TopologySpec& links = cluster.network.topology().spec();
  const Device& device = cluster.kernels.device();
  QString all = ClusterSection::tr("%1 of %2 × %3, %4 each")
                    .arg(text(plural(cluster.nodes, "node")))
                    .arg(cluster.devices_per_node)
                    .arg(text(device.name), text(to_string(device.memory)));
  if (cluster.devices_per_node > 1)
    all += ClusterSection::tr("; %1 %2").arg(text(to_string(links.device_link.kind)),
                                             text(to_string(links.device_link.bandwidth)));
  all += ClusterSection::tr("; %1 of %2")
             .arg(text(plural(links.nics_per_node, "NIC")), text(to_string(links.nic_bandwidth)));
  // No line breaks inside "12.5 GB/s".
  return all.replace(QLatin1String(" GB"), QStringLiteral("\u00a0GB"))
      .replace(QLatin1String(" GiB"), QStringLiteral("\u00a0GiB"))
      .replace('/', QStringLiteral("/\u2060"));
}

}  // namespace

ClusterSection::ClusterSection(Document& document, QWidget* parent)
    : ScenarioSection(tr("Cluster"), document, parent),
      clusters_(new QComboBox(this)),
      about_(new QLabel(this)),
      nodes_(new CountBox(most_nodes, this)),
      each_(new CountBox(most_in_a_node, this)),
      types_(new QComboBox(this)),
      between_(new BackgroundBox("nic.background", tr("Background load between nodes, percent"),
                                 tr("Background load of each NIC"), document, this)),
      inside_(new BackgroundBox("link.background", tr("Background load inside a node, percent"),
                                tr("Background load of the links between a node's devices"), document, this)),
      fabric_(new BackgroundBox("fabric.background", tr("Background load of the fabric, percent"),
                                tr("Background load of the fabric's links between nodes, beside that of NICs"),
                                document, this)),
      machine_(new QFormLayout) {
  clusters_->setObjectName(QStringLiteral("cluster"));
  clusters_->setAccessibleName(tr("Cluster"));
  clusters_->setToolTip(tr("The machine that trains: one that is shipped, a cluster.yaml, or a calibration.json"));
  clusters_->setPlaceholderText(tr("Choose a cluster"));
  clusters_->setMinimumContentsLength(12);
  clusters_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  guardWheel(clusters_);
  for (const std::string& name : shipped_clusters()) clusters_->addItem(text(name), text(name));
  const QStringList recent = RecentFiles(QStringLiteral("recent/clusters")).list();
  if (!recent.isEmpty()) clusters_->insertSeparator(clusters_->count());
  for (const QString& path : recent) clusters_->addItem(QFileInfo(path).fileName(), path);
  auto* open = new QPushButton(tr("Open…"), this);
  open->setToolTip(tr("Choose a cluster.yaml or a calibration.json"));
  open->setAccessibleName(tr("Open a cluster file"));
  auto* row = new QHBoxLayout;
  row->addWidget(clusters_, 1);
  row->addWidget(open);
  about_->setWordWrap(true);
  about_->setForegroundRole(QPalette::PlaceholderText);
  body().addLayout(row);
  body().addWidget(about_);
  makeMachine();
  body().addLayout(machine_);
  body().addWidget(makeChanges());
  connect(open, &QPushButton::clicked, this, &ClusterSection::openRequested);
  connect(clusters_, &QComboBox::activated, this,
          [this](int index) { emit clusterChosen(clusters_->itemData(index).toString()); });
}

void ClusterSection::makeMachine() {
  makeCount(nodes_, "--nodes", tr("Nodes"), tr("Change nodes"));
  makeCount(each_, "--devices-per-node", tr("Devices of a node"), tr("Change devices of a node"));
  types_->setObjectName(text(type_option));
  types_->setAccessibleName(tr("Kind of device"));
  types_->setToolTip(tip(predictOption(type_option)));
  types_->setMinimumContentsLength(12);
  types_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  types_->addItem(tr("as it has"), QString());
  for (const std::string& name : shipped_calibrations()) types_->addItem(text(name), text(name));
  guardWheel(types_);
  connect(types_, &QComboBox::activated, this, [this](int index) {
    const std::string type = types_->itemData(index).toString().toStdString();
    document().change(tr("Change kind of device"), [&](Scenario& scenario) {
      if (type.empty())
        scenario.clear(type_option);
      else
        scenario.set(type_option, type);
    });
  });
  machine_->setContentsMargins(0, 0, 0, 0);
  machine_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  machine_->addRow(tr("Nodes"), nodes_);
  machine_->addRow(tr("Devices of each"), each_);
  machine_->addRow(tr("Kind of device"), types_);
  machine_->addRow(tr("Load between nodes"), between_);
  machine_->addRow(tr("Load of the fabric"), fabric_);
  machine_->addRow(tr("Load inside a node"), inside_);
  machine_->setRowVisible(fabric_, false);
}

void ClusterSection::makeCount(CountBox* box, const char* option, const QString& name, const QString& why) {
  box->setObjectName(QString::fromLatin1(option));
  box->setAccessibleName(name);
  box->setToolTip(tip(predictOption(option)));
  connect(box, &QSpinBox::valueChanged, this, [this, option, why](int count) {
    document().change(
        why,
        [&](Scenario& scenario) {
          if (count > 0)
            scenario.set(option, std::to_string(count));
          else
            scenario.clear(option);
        },
        QString::fromLatin1(option));
  });
  endGestures(*box, document());
}

QWidget* ClusterSection::makeChanges() {
  auto* all = new QWidget(this);
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* rows = new QWidget(all);
  auto* grid = new QGridLayout(rows);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setVerticalSpacing(2);
  grid->setColumnStretch(1, 3);
  grid->setColumnStretch(2, 2);
  for (const ClusterKey& key : cluster_keys())
    if (!key.share) changes_.push_back(new ChangeRow(key, document(), *grid, rows));
  more_ = new Disclosure(tr("What if its parts were different"), rows, all);
  more_->setOpen(false);
  layout->addWidget(more_);
  layout->addWidget(rows);
  return all;
}

void ClusterSection::showScenario(const Scenario& scenario) {
  const QSignalBlocker quiet(clusters_), still(types_);
  const QString cluster = text(scenario.cluster);
  if (!cluster.isEmpty() && clusters_->findData(cluster) < 0)
    clusters_->addItem(QFileInfo(cluster).fileName(), cluster);
  clusters_->setCurrentIndex(cluster.isEmpty() ? -1 : clusters_->findData(cluster));
  nodes_->showValue(text(scenario.option("--nodes").value_or("0")).toInt());
  each_->showValue(text(scenario.option("--devices-per-node").value_or("0")).toInt());
  const QString type = text(scenario.option(type_option).value_or(""));
  // What is no choice (a session written by hand) is shown all the same; the message says what is wrong with it.
  if (types_->findData(type) < 0) types_->addItem(type, type);
  types_->setCurrentIndex(types_->findData(type));
  for (BackgroundBox* box : {between_, inside_, fabric_}) box->showScenario(scenario);
  for (ChangeRow* row : changes_) row->showScenario(scenario);
  if (std::ranges::any_of(changes_, &ChangeRow::isChanged) && !more_->isOpen()) more_->setOpen(true);
}

void ClusterSection::showAnswer(const Answer& answer) {
  const bool wrong = answer.wrong == Part::cluster && !answer.report;
  setError(wrong && !answer.scenario.cluster.empty() ? errorText(answer.report.error()) : QString());
  if (!answer.unchanged_cluster) {
    if (answer.scenario.cluster.empty())
      about_->setText(tr("Choose a cluster, or drop its file here."));
    else if (answer.scenario.cluster != described_ || answer.wrong == Part::cluster)
      about_->clear();
    else
      return;
    described_.clear();
    for (ChangeRow* row : changes_) row->showValue({});
    return;
  }
  about_->setText(description(*answer.unchanged_cluster));
  described_ = answer.scenario.cluster;
  showUsual(answer.scenario, *answer.unchanged_cluster);
  const DType computed_in = answer.study ? compute_type(answer.study->strategy.precision) : DType::f32;
  for (ChangeRow* row : changes_) row->showValue(text(value_text(*answer.unchanged_cluster, row->key(), computed_in)));
}

// What holds where nothing else is said: known once the cluster was read so.
void ClusterSection::showUsual(const Scenario& scenario, const Cluster& cluster) {
  const QString own = tr("%1 (the cluster's)");
  if (!scenario.option("--nodes")) nodes_->setUsual(cluster.nodes, own.arg(cluster.nodes));
  if (!scenario.option("--devices-per-node"))
    each_->setUsual(cluster.devices_per_node, own.arg(cluster.devices_per_node));
  const fabric::Fabric* fabric = cluster.network.links();
  const bool has_nics = fabric == nullptr || !fabric->spec().direct;
  between_->setUsual(share_of(cluster, between_->key()), cluster.nodes > 1 && has_nics);
  fabric_->setUsual(share_of(cluster, fabric_->key()), cluster.nodes > 1 && fabric != nullptr);
  // Where a scenario changes what is not there, the change can be taken back.
  machine_->setRowVisible(fabric_, fabric != nullptr || scenario.change(fabric_->key()).has_value());
  inside_->setUsual(share_of(cluster, inside_->key()), cluster.devices_per_node > 1);
  if (!scenario.option(type_option)) types_->setItemText(0, text(cluster.kernels.device().name));
}

}  // namespace sibyl::gui
