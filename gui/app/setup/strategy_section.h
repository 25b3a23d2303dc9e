// How devices share a step: the mesh, micro-batches, schedule, what is kept; or whatever a search recommends.
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <memory>
#include <vector>

#include "gui/app/setup/mesh_editor.h"
#include "gui/app/setup/option_field.h"
#include "gui/app/setup/section.h"
#include "gui/model/latest.h"
#include "oracle/search/search.h"

namespace sibyl::gui {

class StrategySection : public ScenarioSection {
  Q_OBJECT

 public:
  StrategySection(Document& document, QWidget* parent);

  void showScenario(const Scenario& scenario) override;
  void showAnswer(const Answer& answer) override;

  // Asks the search for this model, cluster, batch and number of devices, and takes what it recommends. Pressed again:
  // stops.
  void findBest();
  [[nodiscard]] bool searching() const { return search_.busy(); }

 signals:
  void searchEnded();

 private:
  QLayout* makeAuto();
  void take(const Scenario& asked, const Result<SearchResult>& result);
  void say(const QString& message);

  MeshEditor* mesh_;
  std::vector<OptionField*> fields_;
  OptionField* schedule_ = nullptr;
  QPushButton* auto_;
  QProgressBar* progress_;
  QLabel* found_;
  std::shared_ptr<const Study> study_;
  Latest<Result<SearchResult>> search_;
};

}  // namespace sibyl::gui
