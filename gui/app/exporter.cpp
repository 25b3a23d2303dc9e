#include "gui/app/exporter.h"

#include <QDir>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>

#include "base/files.h"
#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

QString figureFile(const View& view, FigureFormat format) { return view.key() + ending(format); }
QString tableFile(const View& view) { return view.key() + QStringLiteral(".csv"); }
QString reportFile() { return QStringLiteral("report.html"); }

Failure notWritten(const QString& path) { return fail("cannot be written", path.toStdString()); }

void paint(View& view, QPainter& painter, const QSize& size) {
  painter.fillRect(QRect(QPoint(), size), view.palette().color(QPalette::Base));
  view.renderFigure(painter, size);
}

Result<void> asPng(View& view, const QString& path, const QSize& size) {
  constexpr int pixels = 2;  // of a logical one, each way
  QImage image(size * pixels, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(pixels);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  paint(view, painter, size);
  painter.end();
  if (!image.save(path, "PNG")) return notWritten(path);
  return {};
}

Result<void> asSvg(View& view, const QString& path, const QSize& size) {
  QSvgGenerator generator;
  generator.setFileName(path);
  generator.setSize(size);
  generator.setViewBox(QRect(QPoint(), size));
  generator.setTitle(view.title());
  QPainter painter;
  if (!painter.begin(&generator)) return notWritten(path);
  paint(view, painter, size);
  if (!painter.end()) return notWritten(path);
  return {};
}

Result<void> asPdf(View& view, const QString& path, const QSize& size) {
  constexpr int points_per_inch = 72;  // a logical pixel is a point
  QPdfWriter writer(path);
  writer.setPageSize(QPageSize(QSizeF(size), QPageSize::Point));
  writer.setPageMargins({});
  writer.setResolution(points_per_inch);
  writer.setTitle(view.title());
  QPainter painter;
  if (!painter.begin(&writer)) return notWritten(path);
  paint(view, painter, size);
  if (!painter.end()) return notWritten(path);
  return {};
}

}  // namespace

QString ending(FigureFormat format) {
  return format == FigureFormat::png   ? QStringLiteral(".png")
         : format == FigureFormat::svg ? QStringLiteral(".svg")
                                       : QStringLiteral(".pdf");
}

Result<void> exportFigure(View& view, const QString& path, FigureFormat format, const QSize& offered) {
  const QSize size = view.figureSize(offered);
  switch (format) {
    case FigureFormat::png: return asPng(view, path, size);
    case FigureFormat::svg: return asSvg(view, path, size);
    case FigureFormat::pdf: break;
  }
  return asPdf(view, path, size);
}

QStringList filesInTheWay(const std::vector<View*>& views, const ExportRequest& request) {
  const QDir folder(request.folder);
  QStringList names;
  const auto look = [&](const QString& name) {
    if (folder.exists(name)) names.append(name);
  };
  for (const View* view : views) {
    for (const FigureFormat format : request.figures) look(figureFile(*view, format));
    if (request.tables) look(tableFile(*view));
  }
  if (request.report) look(reportFile());
  return names;
}

Result<QStringList> exportAll(const std::vector<View*>& views, const Answer& answer, const ExportRequest& request) {
  if (!QDir().mkpath(request.folder)) return fail("the folder cannot be made", request.folder.toStdString());
  const QDir folder(request.folder);
  QStringList written;
  for (View* view : views) {
    for (const FigureFormat format : request.figures) {
      const QString path = folder.filePath(figureFile(*view, format));
      SIBYL_CHECK(exportFigure(*view, path, format, request.size));
      written.append(path);
    }
    const auto table = request.tables ? view->table() : std::nullopt;
    if (!table) continue;
    const QString path = folder.filePath(tableFile(*view));
    SIBYL_CHECK(replace_file(path.toStdString(), csv(*table)));
    written.append(path);
  }
  if (request.report && answer.report) {
    const QString path = folder.filePath(reportFile());
    SIBYL_CHECK(replace_file(path.toStdString(), to_html(*answer.report)));
    written.append(path);
  }
  return written;
}

}  // namespace sibyl::gui
