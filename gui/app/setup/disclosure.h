// A line with an arrow that shows or hides what stands beneath it.
#pragma once

#include <QToolButton>

namespace sibyl::gui {

class Disclosure : public QToolButton {
  Q_OBJECT

 public:
  Disclosure(const QString& title, QWidget* content, QWidget* parent);

  [[nodiscard]] bool isOpen() const { return open_; }
  void setOpen(bool open);

 private:
  QWidget* content_;
  bool open_ = true;
};

}  // namespace sibyl::gui
