// Every command of the window by a few of its letters (Ctrl+K).
#pragma once

#include <QAction>
#include <QDialog>
#include <QLineEdit>
#include <QListWidget>

namespace sibyl::gui {

// The commands that can be given now, each once, in the order of the menus.
QList<QAction*> commandsOf(const QWidget& window);
// Without the mark of its shortcut letter.
QString plainText(const QAction& action);

class CommandPalette : public QDialog {
  Q_OBJECT

 public:
  explicit CommandPalette(QWidget& window);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  void fill(const QString& pattern);
  void run();

  QList<QAction*> commands_;
  QLineEdit* line_;
  QListWidget* list_;
};

}  // namespace sibyl::gui
