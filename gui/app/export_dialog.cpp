#include "gui/app/export_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QMessageBox>

namespace sibyl::gui {

ExportDialog::ExportDialog(const std::vector<View*>& views, const View* current, const QString& folder, QWidget* parent)
    : QDialog(parent),
      all_(views),
      list_(new QListWidget(this)),
      png_(new QCheckBox(tr("PNG, a picture"), this)),
      svg_(new QCheckBox(tr("SVG, a drawing"), this)),
      pdf_(new QCheckBox(tr("PDF, for print"), this)),
      csv_(new QCheckBox(tr("CSV, the numbers"), this)),
      html_(new QCheckBox(tr("HTML, a report of the prediction"), this)),
      width_(new QSpinBox(this)),
      height_(new QSpinBox(this)),
      folder_(new QLineEdit(folder, this)) {
  setWindowTitle(tr("Export"));
  for (const View* view : all_) {
    auto* item = new QListWidgetItem(view->title(), list_);
    item->setFlags(Qt::ItemIsUserCheckable | Qt::ItemIsEnabled);
    item->setCheckState(view == current ? Qt::Checked : Qt::Unchecked);
  }
  list_->setAccessibleName(tr("Views"));
  list_->setToolTip(tr("The views that are exported"));
  png_->setToolTip(tr("Each view as a picture of the size below, with two pixels each way for one"));
  svg_->setToolTip(tr("Each view as a drawing that can be enlarged"));
  pdf_->setToolTip(tr("Each view as a page of the size below"));
  csv_->setToolTip(tr("Each view's numbers in SI units, a column each"));
  html_->setToolTip(tr("A page of the prediction that stands alone, as `sibyl export` writes it"));
  png_->setChecked(true);
  csv_->setChecked(true);
  const ExportRequest usual{};
  for (QSpinBox* box : {width_, height_}) {
    box->setRange(200, 10'000);
    box->setSuffix(tr(" px"));
  }
  width_->setValue(usual.size.width());
  height_->setValue(usual.size.height());
  width_->setAccessibleName(tr("Width"));
  height_->setAccessibleName(tr("Height"));
  folder_->setAccessibleName(tr("Folder"));
  width_->setToolTip(tr("Of each figure, in logical pixels"));
  height_->setToolTip(width_->toolTip());
  folder_->setToolTip(tr("Where the files are written; it is made where it is missing"));
  auto* choose = new QPushButton(tr("Choose…"), this);
  choose->setToolTip(tr("Choose a folder"));
  connect(choose, &QPushButton::clicked, this, [this] {
    const QString chosen = QFileDialog::getExistingDirectory(this, tr("Export to"), folder_->text());
    if (!chosen.isEmpty()) folder_->setText(chosen);
  });
  auto* sizes = new QHBoxLayout;
  sizes->addWidget(width_);
  sizes->addWidget(new QLabel(QStringLiteral("×"), this));
  sizes->addWidget(height_);
  sizes->addStretch(1);
  auto* place = new QHBoxLayout;
  place->addWidget(folder_, 1);
  place->addWidget(choose);
  auto* form = new QFormLayout(this);
  form->addRow(tr("Views"), list_);
  form->addRow(tr("As"), png_);
  for (QCheckBox* box : {svg_, pdf_, csv_, html_}) form->addRow(QString(), box);
  form->addRow(tr("Size"), sizes);
  form->addRow(tr("Folder"), place);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  export_ = buttons->addButton(tr("Export"), QDialogButtonBox::AcceptRole);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(folder_, &QLineEdit::textChanged, this, &ExportDialog::check);
  connect(list_, &QListWidget::itemChanged, this, &ExportDialog::check);
  for (QCheckBox* box : {png_, svg_, pdf_, csv_, html_}) connect(box, &QCheckBox::toggled, this, &ExportDialog::check);
  form->addRow(buttons);
  check();
}

// Something must be chosen, and a place for it.
void ExportDialog::check() {
  const ExportRequest wanted = request();
  const bool of_views = !views().empty() && (!wanted.figures.empty() || wanted.tables);
  export_->setEnabled((of_views || wanted.report) && !wanted.folder.isEmpty());
}

void ExportDialog::accept() {
  constexpr qsizetype most = 12;  // names that are shown
  const ExportRequest wanted = request();
  const QStringList there = filesInTheWay(views(), wanted);
  if (!there.isEmpty()) {
    QString names = there.mid(0, most).join(QLatin1Char('\n'));
    if (there.size() > most) names += QStringLiteral("\n…");
    const auto answer = QMessageBox::question(
        this, tr("Export"), tr("%1 has already:\n\n%2\n\nReplace what is there?").arg(wanted.folder, names),
        QMessageBox::Yes | QMessageBox::Cancel, QMessageBox::Cancel);
    if (answer != QMessageBox::Yes) return;
  }
  QDialog::accept();
}

std::vector<View*> ExportDialog::views() const {
  std::vector<View*> chosen;
  for (int row = 0; row < list_->count(); ++row)
    if (list_->item(row)->checkState() == Qt::Checked) chosen.push_back(all_[static_cast<std::size_t>(row)]);
  return chosen;
}

ExportRequest ExportDialog::request() const {
  ExportRequest request;
  request.folder = folder_->text().trimmed();
  request.figures.clear();
  if (png_->isChecked()) request.figures.push_back(FigureFormat::png);
  if (svg_->isChecked()) request.figures.push_back(FigureFormat::svg);
  if (pdf_->isChecked()) request.figures.push_back(FigureFormat::pdf);
  request.tables = csv_->isChecked();
  request.report = html_->isChecked();
  request.size = QSize(width_->value(), height_->value());
  return request;
}

}  // namespace sibyl::gui
