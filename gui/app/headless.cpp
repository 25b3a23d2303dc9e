#include "gui/app/headless.h"

#include <QEventLoop>
#include <QTimer>

#include "base/files.h"
#include "gui/app/exporter.h"
#include "gui/app/main_window.h"

namespace sibyl::gui {
namespace {

// Lets jobs go on until none is left.
void settle(const MainWindow& window) {
  constexpr int often_ms = 10;
  QEventLoop loop;
  QTimer timer;
  QObject::connect(&timer, &QTimer::timeout, &loop, [&] {
    if (window.settled()) loop.quit();
  });
  timer.start(often_ms);
  loop.exec();
}

}  // namespace

Result<int> exportHeadless(const QString& session, const QString& folder) {
  MainWindow window;
  SIBYL_CHECK(window.open(session));
  settle(window);
  if (!window.answer()->report) return Failure(window.answer()->report.error());
  for (View* view : window.views()) view->prepare();
  settle(window);
  ExportRequest request;
  request.folder = folder;
  SIBYL_TRY(const QStringList written, exportAll(window.views(), *window.answer(), request));
  SIBYL_CHECK(print((written.join('\n') + '\n').toStdString()));
  return window.answer()->report->prediction.fits ? 0 : exit_code(ErrorCode::infeasible);
}

}  // namespace sibyl::gui
