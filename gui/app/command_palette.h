// Every command of the window by a few of its letters (Ctrl+K).
#pragma once

#include <QAction>
#include <QDialog>
#include <QLineEdit>
#include <QListWidget>

namespace sibyl::gui {

// All commands, each once, in the order of the menus.
QList<QAction*> commandsOf(const QWidget& window);
// A property of an action: what it is called where its menu does not say what it is about ("New scenario" for "New").
inline constexpr char whole_name[] = "whole name";
// That, or its text without the mark of its shortcut letter.
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
