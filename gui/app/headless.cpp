#include "gui/app/headless.h"

#include "base/files.h"
#include "gui/app/main_window.h"
#include "gui/app/wait.h"

namespace sibyl::gui {

Result<int> exportHeadless(const QString& session, const QString& folder) {
  MainWindow window;
  SIBYL_CHECK(window.open(session));
  waitUntil([&window] { return window.settled(); });
  if (!window.answer()->report) return Failure(window.answer()->report.error());
  ExportRequest request;
  request.folder = folder;
  SIBYL_TRY(const QStringList written, window.exportTo(window.views(), request, {}));
  SIBYL_CHECK(print((written.join('\n') + '\n').toStdString()));
  return window.answer()->report->prediction.fits ? 0 : exit_code(ErrorCode::infeasible);
}

}  // namespace sibyl::gui
