// What tests of chart views look at: labels, tables, colours; and the answers that all of them show.
#pragma once

#include <QLabel>
#include <QTableView>
#include <set>

#include "tests/gui/charts/answers.h"

namespace sibyl::gui::test {

// All that a view says beside its charts.
inline QString said(const QWidget& view) {
  QStringList all;
  for (const QLabel* label : view.findChildren<QLabel*>())
    if (!label->isHidden()) all << label->text();
  return all.join('\n');
}

inline QTableView* tableOf(const View& view) { return view.findChild<QTableView*>(); }

// How many colours its figure has; 0 where some of the paper is left as it was.
inline int coloursOf(View& view, const QSize& size) {
  QImage image(size, QImage::Format_RGB32);
  image.fill(Qt::magenta);
  QPainter painter(&image);
  view.renderFigure(painter, size);
  painter.end();
  std::set<QRgb> colours;
  for (int y = 0; y < image.height(); y += 2)
    for (int x = 0; x < image.width(); x += 2) colours.insert(image.pixel(x, y));
  return colours.contains(QColor(Qt::magenta).rgb()) ? 0 : static_cast<int>(colours.size());
}

// LeNet-5 on eight devices, and a pipeline of four: asked once.
inline const AnswerPointer& lenetAnswer() {
  static const AnswerPointer made = answered(lenet());
  return made;
}
inline const AnswerPointer& pipelineAnswer() {
  static const AnswerPointer made = answered(pipeline());
  return made;
}

}  // namespace sibyl::gui::test
