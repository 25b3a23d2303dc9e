#include "gui/app/wait.h"

#include <QEventLoop>
#include <QTimer>

namespace sibyl::gui {

bool waitUntil(const std::function<bool()>& done, const std::function<bool()>& cancelled) {
  constexpr int often_ms = 10;
  const auto over = [&] { return done() || (cancelled && cancelled()); };
  QEventLoop loop;
  QTimer timer;
  QObject::connect(&timer, &QTimer::timeout, &loop, [&] {
    if (over()) loop.quit();
  });
  timer.start(often_ms);
  if (!over()) loop.exec();
  return done();
}

}  // namespace sibyl::gui
