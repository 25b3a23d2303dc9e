// Answers that tests of views show: small models on shipped clusters.
#pragma once

#include <QSignalSpy>
#include <QtTest>

#include "gui/model/study.h"
#include "gui/view/view.h"

namespace sibyl::gui::test {

inline Scenario scenario(const std::string& model, const std::map<std::string, std::string>& options,
                         const std::string& cluster = "dgx-a100") {
  Scenario s;
  s.model = model;
  s.cluster = cluster;
  for (const auto& [name, value] : options) s.set(name, value);
  return s;
}

inline Scenario lenet() { return scenario("zoo:lenet", {{"--devices", "8"}, {"--batch", "64/device"}}); }

inline Scenario pipeline() {
  return scenario("zoo:gpt2-mini", {{"--parallel", "data=2,pipeline=2"},
                                    {"--micro-batches", "4"},
                                    {"--batch", "32"},
                                    {"--optimizer", "adamw"},
                                    {"--dim", "seq=128"}});
}

inline AnswerPointer answered(const Scenario& scenario) {
  StudyReader reader;
  auto study = reader.read(scenario);
  if (!study) return std::make_shared<const Answer>(Answer{scenario, nullptr, Failure(study.error())});
  auto report = predict(*(*study)->graph, (*study)->strategy, *(*study)->cluster).map([&](Prediction p) {
    return PredictionReport{scenario.model, (*study)->cluster->name, std::move(p)};
  });
  return std::make_shared<const Answer>(Answer{scenario, *study, std::move(report)});
}

// Shows it, and waits until the view has nothing more to do.
inline void settle(View& view, const AnswerPointer& current, const AnswerPointer& baseline = nullptr) {
  view.showAnswer(current, baseline);
  view.prepare();
  QTRY_VERIFY_WITH_TIMEOUT(!view.busy(), 120000);
}

}  // namespace sibyl::gui::test
