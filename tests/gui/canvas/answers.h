// Answers to show: shipped models on shipped clusters, predicted by the library.
#pragma once

#include <QApplication>
#include <QImage>
#include <QPainter>
#include <QTest>
#include <QWheelEvent>
#include <map>
#include <set>
#include <string>

#include "gui/model/study.h"
#include "gui/view/view.h"
#include "oracle/predict.h"

namespace sibyl::gui::test {

inline AnswerPointer answer(const std::string& model, const std::map<std::string, std::string>& options,
                            const std::string& cluster = "dgx-a100") {
  Scenario scenario;
  scenario.model = "zoo:" + model;
  scenario.cluster = cluster;
  for (const auto& [name, value] : options) scenario.set(name, value);
  StudyReader reader;
  auto study = reader.read(scenario);
  if (!study) return std::make_shared<const Answer>(Answer{scenario, nullptr, Failure(study.error())});
  auto prediction = predict(*(*study)->graph, (*study)->strategy, *(*study)->cluster);
  if (!prediction) return std::make_shared<const Answer>(Answer{scenario, *study, Failure(prediction.error())});
  return std::make_shared<const Answer>(
      Answer{scenario, *study, PredictionReport{scenario.model, cluster, std::move(*prediction), {}}});
}

// Shows the answer and waits until the view has settled.
inline void settle(View& view, const AnswerPointer& shown) {
  view.showAnswer(shown, nullptr);
  view.prepare();
  QTRY_VERIFY_WITH_TIMEOUT(!view.busy(), 120000);
}

// Eight replicas of a small network; a pipeline of four stages.
inline AnswerPointer data_parallel() {
  static const AnswerPointer made = answer("small-cnn", {{"--devices", "8"}, {"--batch", "8/device"}});
  return made;
}
inline AnswerPointer pipeline() {
  static const AnswerPointer made = answer("gpt2", {{"--devices", "4"},
                                                    {"--parallel", "pipeline=4"},
                                                    {"--batch", "8"},
                                                    {"--micro-batches", "8"},
                                                    {"--dim", "seq=128"}});
  return made;
}

inline void wheel(QWidget* widget, const QPointF& at, int notches, Qt::KeyboardModifiers keys) {
  QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, keys, Qt::NoScrollPhase, false);
  QApplication::sendEvent(widget, &event);
}

// A figure is not of one colour.
inline bool paintsSomething(View& view) {
  QImage image(600, 400, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  view.renderFigure(painter, image.size());
  painter.end();
  std::set<QRgb> colours;
  for (int y = 0; y < image.height(); y += 3)
    for (int x = 0; x < image.width(); x += 3) colours.insert(image.pixel(x, y));
  return colours.size() > 5;
}

}  // namespace sibyl::gui::test
