#include "gui/app/command_palette.h"

#include <QKeyEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>
#include <vector>

#include "gui/model/fuzzy.h"

namespace sibyl::gui {
namespace {

constexpr int keys_role = Qt::UserRole + 1;

// A command at the left, its keys at the right.
class CommandLine : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    const bool picked = option.state & QStyle::State_Selected;
    painter->setPen(option.palette.color(picked ? QPalette::HighlightedText : QPalette::PlaceholderText));
    painter->setFont(option.font);
    painter->drawText(option.rect.adjusted(0, 0, -padding, 0), Qt::AlignRight | Qt::AlignVCenter,
                      index.data(keys_role).toString());
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return QStyledItemDelegate::sizeHint(option, index) + QSize(0, padding);
  }

 private:
  static constexpr int padding = 8;
};

}  // namespace

QString plainText(const QAction& action) {
  const QString whole = action.property(whole_name).toString();
  return whole.isEmpty() ? action.text().remove('&') : whole;
}

QList<QAction*> commandsOf(const QWidget& window) {
  QList<QAction*> all;
  for (QAction* action : window.findChildren<QAction*>()) {
    const bool command = !action->isSeparator() && action->menu() == nullptr && !plainText(*action).isEmpty();
    if (command && action->isVisible() && action->property("command").toBool()) all.append(action);
  }
  return all;
}

CommandPalette::CommandPalette(QWidget& window)
    : QDialog(&window, Qt::Popup),
      commands_(commandsOf(window)),
      line_(new QLineEdit(this)),
      list_(new QListWidget(this)) {
  setWindowTitle(tr("Commands"));
  line_->setPlaceholderText(tr("A command, by a few of its letters"));
  line_->setAccessibleName(tr("Command"));
  list_->setAccessibleName(tr("Commands"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setUniformItemSizes(true);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setItemDelegate(new CommandLine(list_));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(line_);
  layout->addWidget(list_);
  line_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &CommandPalette::fill);
  connect(line_, &QLineEdit::returnPressed, this, &CommandPalette::run);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run);
  fill({});
  const int height = fontMetrics().height();
  resize(36 * height, 24 * height);
  move(window.mapToGlobal(QPoint((window.width() - width()) / 2, window.height() / 8)));
}

void CommandPalette::fill(const QString& pattern) {
  std::vector<std::pair<int, QAction*>> found;
  for (QAction* action : commands_)
    if (const auto score = action->isEnabled() ? fuzzyScore(pattern, plainText(*action)) : std::nullopt)
      found.emplace_back(*score, action);
  if (!pattern.isEmpty())
    std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
  list_->clear();
  for (const auto& [score, action] : found) {
    auto* item = new QListWidgetItem(plainText(*action), list_);
    item->setData(keys_role, action->shortcut().toString(QKeySequence::NativeText));
    item->setData(Qt::UserRole, QVariant::fromValue(action));
  }
  list_->setCurrentRow(0);
}

void CommandPalette::run() {
  const QListWidgetItem* item = list_->currentItem();
  auto* action = item == nullptr ? nullptr : item->data(Qt::UserRole).value<QAction*>();
  accept();
  if (action != nullptr) action->trigger();
}

bool CommandPalette::eventFilter(QObject* object, QEvent* event) {
  if (object != line_ || event->type() != QEvent::KeyPress) return QDialog::eventFilter(object, event);
  const int key = static_cast<QKeyEvent*>(event)->key();
  if (key != Qt::Key_Up && key != Qt::Key_Down) return false;
  const int row = list_->currentRow() + (key == Qt::Key_Down ? 1 : -1);
  if (list_->count() > 0) list_->setCurrentRow((row + list_->count()) % list_->count());
  return true;
}

}  // namespace sibyl::gui
