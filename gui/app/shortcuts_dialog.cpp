#include "gui/app/shortcuts_dialog.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QTableWidget>
#include <QVBoxLayout>

#include "gui/app/command_palette.h"

namespace sibyl::gui {

ShortcutsDialog::ShortcutsDialog(QWidget& window) : QDialog(&window) {
  setWindowTitle(tr("Keys"));
  QList<std::pair<QString, QString>> rows;
  for (const QAction* action : commandsOf(window)) {
    QStringList keys;
    for (const QKeySequence& key : action->shortcuts()) keys.append(key.toString(QKeySequence::NativeText));
    if (!keys.isEmpty()) rows.append({keys.join(tr(" or ")), plainText(*action)});
  }
  rows.append({tr("W, S, wheel"), tr("In the timeline: nearer, farther")});
  rows.append({tr("A, D, drag"), tr("In the timeline: to the left, to the right")});
  rows.append({tr("Esc"), tr("Let go of what is selected")});
  auto* table = new QTableWidget(static_cast<int>(rows.size()), 2, this);
  table->setHorizontalHeaderLabels({tr("Keys"), tr("What they do")});
  table->verticalHeader()->hide();
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSelectionMode(QAbstractItemView::NoSelection);
  table->setShowGrid(false);
  table->setAlternatingRowColors(true);
  table->setAccessibleName(tr("Keys"));
  for (int row = 0; row < static_cast<int>(rows.size()); ++row) {
    table->setItem(row, 0, new QTableWidgetItem(rows[row].first));
    table->setItem(row, 1, new QTableWidgetItem(rows[row].second));
  }
  table->resizeColumnsToContents();
  table->horizontalHeader()->setStretchLastSection(true);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(table);
  layout->addWidget(buttons);
  const int height = fontMetrics().height();
  resize(32 * height, 34 * height);
}

}  // namespace sibyl::gui
