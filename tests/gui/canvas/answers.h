// Answers to show: shipped models on shipped clusters, predicted by the library.
#pragma once

#include <QElapsedTimer>
#include <QTest>
#include <map>
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

}  // namespace sibyl::gui::test
