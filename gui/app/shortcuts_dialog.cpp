#include "gui/app/shortcuts_dialog.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QPushButton>
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
    const QString whole = action->property(whole_name).toString();
    if (!keys.isEmpty()) rows.append({keys.join(tr(" or ")), whole.isEmpty() ? action->iconText() : whole});
  }
  rows.append({tr("W, S, Ctrl+wheel"), tr("In the timeline and the graph: nearer, farther")});
  rows.append({tr("A, D, wheel, drag"), tr("In the timeline: to the left, to the right")});
  rows.append({tr("F"), tr("In the timeline and the graph: show all")});
  rows.append({tr("Shift+drag"), tr("In the timeline: select an area, for its totals")});
  rows.append({tr("Ctrl+F, F3, Shift+F3"), tr("In the timeline: search, next, previous")});
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
  table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  table->horizontalHeader()->setSectionResizeMode(1, QHeaderView::Stretch);
  table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(table);
  layout->addWidget(buttons);
  const int height = fontMetrics().height();
  resize(40 * height, 36 * height);
  buttons->button(QDialogButtonBox::Close)->setFocus();
}

}  // namespace sibyl::gui
