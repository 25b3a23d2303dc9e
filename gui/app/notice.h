// A line above the views that says what went wrong, or what was done unasked, until it is closed. It stops nobody.
#pragma once

#include <QFrame>
#include <QLabel>

namespace sibyl::gui {

class Notice : public QFrame {
  Q_OBJECT

 public:
  explicit Notice(QWidget* parent);
  void say(const QString& message, bool wrong);
  [[nodiscard]] QString message() const { return isHidden() ? QString() : label_->text(); }

 private:
  QLabel* label_;
};

}  // namespace sibyl::gui
