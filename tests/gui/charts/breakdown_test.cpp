// The breakdown: parts that add up, layers, other strategies beside the step.
#include <QAbstractItemModelTester>
#include <QLineEdit>

#include "base/quantity.h"
#include "gui/view/charts/breakdown_view.h"
#include "tests/gui/charts/helpers.h"
#include "tests/gui/charts/tests.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

class BreakdownTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    for (const AnswerPointer& answer : {lenet_, pipeline_})
      QVERIFY2(answer->report, answer->report ? "" : to_string(answer->report.error()).c_str());
  }

  // Parts on the critical path, and the wait for the slowest rank, are the step.
  void barsOfTheBreakdownAddUp() {
    for (const AnswerPointer& answer : {lenet_, pipeline_}) {
      const Prediction& p = answer->report->prediction;
      const BarRow row = breakdownRow("", p);
      double sum = 0;
      for (const BarPart& part : row.parts) sum += part.value;
      QVERIFY(std::abs(sum - p.step_time.value()) < 1e-6 * p.step_time.value());
      QCOMPARE(row.beside.size(), std::size_t{1});
      QVERIFY(std::abs(row.beside[0].value -
                       (p.breakdown.communication_total - p.breakdown.communication_exposed).value()) < 1e-12);
    }
  }

  void layersAreThePredictionsOperations() {
    BreakdownView view(nullptr);
    settle(view, lenet_);
    const Prediction& p = lenet_->report->prediction;
    QAbstractItemModel* model = tableOf(view)->model();
    QAbstractItemModelTester tester(model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(model->rowCount(), static_cast<int>(p.operations.size()));
    double share = 0;
    for (int row = 0; row < model->rowCount(); ++row) {
      const OperationCost& o = p.operations[static_cast<std::size_t>(row)];
      QCOMPARE(model->index(row, 0).data().toString(), QString::fromStdString(o.name));
      if (o.forward.time.value() > 0)
        QCOMPARE(model->index(row, 3).data().toString(), QString::fromStdString(to_string(o.forward.time)));
      share += model->index(row, 5).data(TableModel::ValueRole).toDouble();
    }
    QVERIFY(std::abs(share - 1) < 1e-9);
    QCOMPARE(view.table()->rows, layer_table(p).rows);
  }

  void layersSortByValueAndAreFiltered() {
    BreakdownView view(nullptr);
    settle(view, lenet_);
    QAbstractItemModel* model = tableOf(view)->model();
    tableOf(view)->sortByColumn(3, Qt::DescendingOrder);
    for (int row = 1; row < model->rowCount(); ++row)
      QVERIFY(model->index(row - 1, 3).data(TableModel::ValueRole).toDouble() >=
              model->index(row, 3).data(TableModel::ValueRole).toDouble());
    const int all = model->rowCount();
    view.findChild<QLineEdit*>()->setText("CONV");
    QVERIFY(model->rowCount() > 0);
    QVERIFY(model->rowCount() < all);
    BreakdownView other(nullptr);
    other.restoreViewState(view.viewState());
    settle(other, lenet_);
    QCOMPARE(tableOf(other)->model()->rowCount(), model->rowCount());
    QCOMPARE(tableOf(other)->model()->index(0, 0).data(), model->index(0, 0).data());
  }

  void aRowPointsAtItsLayerAndBack() {
    BreakdownView view(nullptr);
    settle(view, lenet_);
    QSignalSpy pointed(&view, &View::operationPointedAt);
    const auto name = QString::fromStdString(lenet_->report->prediction.operations[2].name);
    view.pointAtOperation(name);
    QCOMPARE(tableOf(view)->currentIndex().siblingAtColumn(0).data().toString(), name);
    QCOMPARE(pointed.size(), 0);
    tableOf(view)->setCurrentIndex(tableOf(view)->model()->index(1, 0));
    QCOMPARE(pointed.size(), 1);
    QCOMPARE(pointed[0][0].toString(), QString::fromStdString(lenet_->report->prediction.operations[1].name));
  }

  void operationsTellTheirWork() {
    // conv1 of LeNet-5: 6 kernels of 5 x 5 over 28 x 28 places, 64 samples, a multiply-add as two; backward the
    // weight's alone.
    const OperationCost& conv = lenet_->report->prediction.operations.front();
    QCOMPARE(QString::fromStdString(conv.kind).contains("conv"), true);
    QVERIFY(conv.flops.value() >= 2 * 2.0 * 64 * 28 * 28 * 6 * 25);
    QVERIFY(conv.traffic.value() > 64.0 * 28 * 28 * 4);
  }

  // The step of other strategies is what predict() says of them; the scenario's own batch, on as many devices.
  void otherStrategiesStandBesideTheStep() {
    BreakdownView view(nullptr);
    view.restoreViewState({{"compared", QJsonArray{"zero1", "pipeline"}}});
    settle(view, lenet_);
    const std::vector<SimpleStrategy> all = simpleStrategies(*lenet_->study, Scaling::strong);
    const auto zero = std::ranges::find(all, "zero1", &SimpleStrategy::key);
    const auto priced = predict(*lenet_->study->graph, zero->strategy, *lenet_->study->cluster);
    QVERIFY(priced);
    QStringList notes;
    for (int n = 0; n < view.findChild<Plot*>()->itemCount(); ++n)
      if (auto* item = qobject_cast<QCPItemText*>(view.findChild<Plot*>()->item(n))) notes << item->text();
    QVERIFY2(notes.contains(breakdownRow("", *priced).note), qPrintable(notes.join('\n')));
    QVERIFY2(said(view).contains("Pipeline in a node") || notes.size() > 2, qPrintable(said(view)));
    QCOMPARE(view.viewState()["compared"].toArray(), (QJsonArray{"zero1", "pipeline"}));
    view.restoreViewState({});
    settle(view, pipeline_);
    QCOMPARE(view.viewState()["compared"].toArray().size(), 0);
  }

  void whatThePointerRestsOnIsExplained() {
    BreakdownView view(nullptr);
    view.resize(900, 600);
    view.show();
    settle(view, lenet_);
    Plot* plot = view.findChild<Plot*>();
    plot->replot();
    const double middle = lenet_->report->prediction.breakdown.forward.value() / 2;
    const QString text = plot->explanationAt({plot->xAxis->coordToPixel(middle), plot->yAxis->coordToPixel(0)});
    QVERIFY2(text.contains("Forward") && text.contains(quantityText(Measure::seconds, 2 * middle)), qPrintable(text));
  }

 private:
  AnswerPointer lenet_ = lenetAnswer(), pipeline_ = pipelineAnswer();
};

std::unique_ptr<QObject> breakdownTest() { return std::make_unique<BreakdownTest>(); }

#include "breakdown_test.moc"
