#include "gui/app/setup/cluster_section.h"

#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QSignalBlocker>

#include "base/quantity.h"
#include "gui/app/text.h"
#include "gui/model/recent_files.h"
#include "oracle/report/format.h"

namespace sibyl::gui {
namespace {

constexpr int most_nodes = 1'000'000, narrow_box = 5;

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
  return all + ClusterSection::tr("; %1 of %2")
                   .arg(text(plural(links.nics_per_node, "NIC")), text(to_string(links.nic_bandwidth)));
}

}  // namespace

ClusterSection::ClusterSection(Document& document, QWidget* parent)
    : ScenarioSection(tr("Cluster"), document, parent),
      clusters_(new QComboBox(this)),
      about_(new QLabel(this)),
      nodes_(new QSpinBox(this)) {
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
  nodes_->setRange(0, most_nodes);
  nodes_->setKeyboardTracking(false);
  nodes_->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  nodes_->setObjectName(QStringLiteral("--nodes"));
  nodes_->setAccessibleName(tr("Nodes"));
  nodes_->setToolTip(tip(predictOption("--nodes")));
  nodes_->setSpecialValueText(tr("as it has"));
  nodes_->setMinimumWidth(narrow_box * fontMetrics().height());
  guardWheel(nodes_);
  auto* form = new QFormLayout;
  form->setContentsMargins(0, 0, 0, 0);
  form->addRow(tr("Nodes"), nodes_);
  body().addLayout(row);
  body().addWidget(about_);
  body().addLayout(form);
  body().addWidget(makeChanges());
  connect(open, &QPushButton::clicked, this, &ClusterSection::openRequested);
  connect(clusters_, &QComboBox::activated, this,
          [this](int index) { emit clusterChosen(clusters_->itemData(index).toString()); });
  connect(nodes_, &QSpinBox::valueChanged, this, [this](int nodes) {
    this->document().change(
        tr("Change nodes"),
        [&](Scenario& scenario) {
          if (nodes > 0)
            scenario.set("--nodes", std::to_string(nodes));
          else
            scenario.clear("--nodes");
        },
        QStringLiteral("nodes"));
  });
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
  for (const ClusterKey& key : cluster_keys()) changes_.push_back(new ChangeRow(key, document(), *grid, rows));
  more_ = new Disclosure(tr("What if its parts were different"), rows, all);
  more_->setOpen(false);
  layout->addWidget(more_);
  layout->addWidget(rows);
  return all;
}

void ClusterSection::showScenario(const Scenario& scenario) {
  const QSignalBlocker quiet(clusters_), still(nodes_);
  const QString cluster = text(scenario.cluster);
  if (!cluster.isEmpty() && clusters_->findData(cluster) < 0)
    clusters_->addItem(QFileInfo(cluster).fileName(), cluster);
  clusters_->setCurrentIndex(cluster.isEmpty() ? -1 : clusters_->findData(cluster));
  nodes_->setValue(text(scenario.option("--nodes").value_or("0")).toInt());
  for (ChangeRow* row : changes_) row->showScenario(scenario);
  if (!scenario.changes.empty() && !more_->isOpen()) more_->setOpen(true);
}

void ClusterSection::showAnswer(const Answer& answer) {
  const bool wrong = answer.wrong == Part::cluster && !answer.report;
  setError(wrong && !answer.scenario.cluster.empty() ? errorText(answer.report.error()) : QString());
  if (!answer.unchanged_cluster) {
    if (answer.scenario.cluster.empty()) about_->setText(tr("Choose a cluster, or drop its file here."));
    return;
  }
  about_->setText(description(*answer.unchanged_cluster));
  const DType computed_in = answer.study ? compute_type(answer.study->strategy.precision) : DType::f32;
  for (ChangeRow* row : changes_) row->showValue(text(value_text(*answer.unchanged_cluster, row->key(), computed_in)));
}

}  // namespace sibyl::gui
