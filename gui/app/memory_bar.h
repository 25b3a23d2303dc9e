// Memory of the fullest device by kind, against what it has: a bar that is full where the device is. What does not fit
// is drawn beyond a mark.
#pragma once

#include <QWidget>

#include "oracle/prediction.h"

namespace sibyl::gui {

class MemoryBar : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryBar(QWidget* parent);
  void display(const MemoryBreakdown& memory, Bytes capacity);
  void clear();

  [[nodiscard]] QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  MemoryBreakdown memory_{};
  Bytes capacity_;
};

}  // namespace sibyl::gui
