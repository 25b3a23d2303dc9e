// Views as files: PNG, SVG and PDF of the figure, CSV of the table; and the prediction as one HTML page that stands
// alone.
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>
#include <vector>

#include "base/result.h"
#include "gui/view/view.h"

namespace sibyl::gui {

enum class FigureFormat { png, svg, pdf };
QString ending(FigureFormat format);  // ".png"

// A PNG has twice as many pixels each way, so that it is sharp in print. An existing file is replaced.
// A view whose table needs more than what is `offered` gets it.
Result<void> exportFigure(View& view, const QString& path, FigureFormat format, const QSize& offered);

struct ExportRequest {
  QString folder;  // made where it is missing
  std::vector<FigureFormat> figures = {FigureFormat::png, FigureFormat::svg};
  bool tables = true, report = true;
  QSize size{1200, 700};
};

// The names of those files of the folder that exportAll() would replace; KEY.csv among them where a view turns out to
// have no table, which is not known before it is worked out.
QStringList filesInTheWay(const std::vector<View*>& views, const ExportRequest& request);

// Every view as KEY.png and so on, report.html; what was written, in that order. Stops at the first that cannot be.
// Existing files are replaced.
Result<QStringList> exportAll(const std::vector<View*>& views, const Answer& answer, const ExportRequest& request);

}  // namespace sibyl::gui
