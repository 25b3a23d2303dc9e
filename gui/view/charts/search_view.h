// Which strategy is best: asks the search, lists the fastest and why the others lose, and shows what less memory or
// fewer devices cost. A click on one of the table makes it the scenario's own; keys and the chart pick one first.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QSpinBox>

#include "gui/model/latest.h"
#include "gui/model/table_model.h"
#include "gui/view/charts/chart_view.h"
#include "gui/view/charts/plot.h"
#include "gui/view/charts/search_question.h"

namespace sibyl::gui {

class SearchView : public ChartView {
  Q_OBJECT

 public:
  explicit SearchView(QWidget* parent);

  [[nodiscard]] QString key() const override { return "search"; }
  [[nodiscard]] QString title() const override { return tr("Search"); }
  [[nodiscard]] bool busy() const override { return job_.busy(); }
  void stop() override { cancel(); }
  void setStale(bool stale) override;
  void prepare() override;  // searches, where nothing was found for this scenario yet
  [[nodiscard]] QJsonObject viewState() const override;
  void restoreViewState(const QJsonObject& state) override;

 public slots:
  void start();
  void cancel();

 protected:
  void refresh() override;
  void redraw() override;
  void renderCharts(QPainter& painter, const QSize& size) override;
  [[nodiscard]] std::optional<Table> chartTable() const override;

 private:
  struct Found {
    std::shared_ptr<const Study> study;
    bool any_devices;  // not only those of the scenario
    Result<SearchReport> report;
  };

  QWidget* makeControls();
  [[nodiscard]] SearchControls controls() const;
  void deliver(Found found);
  [[nodiscard]] bool isOfTheScenario() const;  // what was found
  void tellFound();
  void showWhatCanBeDone();
  void pick(const Candidate& candidate);
  void pickRow(const QModelIndex& index);
  void useRow(const QModelIndex& index);
  void apply();
  void takePrices();
  [[nodiscard]] bool showsCost() const;
  [[nodiscard]] QString costTitle() const;
  [[nodiscard]] double heightOf(const Candidate& candidate) const;  // along the chart's second axis
  void drawFront();
  void addPoints(int devices, const std::vector<const Candidate*>& points, int series);
  void pickPoint(QCPAbstractPlottable* plottable, int n);

  QList<QCheckBox*> axes_, varied_;
  QLineEdit* devices_;
  QLineEdit* memory_;
  QSpinBox* keep_;
  QComboBox* quantity_;  // what stands against time
  QPushButton* start_;
  QPushButton* cancel_;
  QPushButton* apply_;
  QLabel* says_;
  QWidget* results_;  // the chart and the table, once there is something in them
  Plot* front_;
  TableModel best_;
  QSortFilterProxyModel sorted_;
  WideTable* table_;
  std::optional<Found> found_;
  std::optional<Candidate> picked_;
  std::shared_ptr<std::atomic<bool>> stop_;  // the search under way ends, and shows what it has
  QHash<QCPAbstractPlottable*, std::vector<const Candidate*>> points_;
  Latest<Found> job_;
};

}  // namespace sibyl::gui
