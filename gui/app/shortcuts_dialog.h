// The keys of all commands, and those of the views.
#pragma once

#include <QDialog>

namespace sibyl::gui {

class ShortcutsDialog : public QDialog {
  Q_OBJECT

 public:
  explicit ShortcutsDialog(QWidget& window);
};

}  // namespace sibyl::gui
