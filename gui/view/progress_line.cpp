#include "gui/view/progress_line.h"

namespace sibyl::gui {

QProgressBar* makeProgress(LatestSignals& job, const QString& accessibleName, QWidget* parent) {
  auto* bar = new QProgressBar(parent);
  bar->setTextVisible(false);
  bar->setFixedHeight(4);
  bar->setRange(0, 0);
  bar->setAccessibleName(accessibleName);
  QSizePolicy policy = bar->sizePolicy();
  policy.setRetainSizeWhenHidden(true);
  bar->setSizePolicy(policy);
  bar->hide();
  QObject::connect(&job, &LatestSignals::busyChanged, bar, [bar](bool busy) {
    bar->setRange(0, 0);
    bar->setVisible(busy);
  });
  QObject::connect(&job, &LatestSignals::progressed, bar, [bar](quint64 done, quint64 total) {
    constexpr quint64 steps = 1000;
    if (done >= total) return bar->setRange(0, 0);
    bar->setRange(0, static_cast<int>(steps));
    bar->setValue(static_cast<int>(done * steps / total));
  });
  return bar;
}

}  // namespace sibyl::gui
