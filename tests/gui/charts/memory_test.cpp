// Memory: by kind against capacity, over the time of a step, and what is alive at the peak.
#include <QAbstractItemModelTester>
#include <algorithm>

#include "base/quantity.h"
#include "gui/view/charts/memory_view.h"
#include "tests/gui/charts/helpers.h"
#include "tests/gui/charts/tests.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

class MemoryTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    for (const AnswerPointer& answer : {lenet_, pipeline_})
      QVERIFY2(answer->report, answer->report ? "" : to_string(answer->report.error()).c_str());
  }

  void memoryListsWhatIsAliveAtThePeak() {
    MemoryView view(nullptr);
    settle(view, pipeline_);
    const auto memory = step_memory(*pipeline_->study->graph, pipeline_->study->strategy, *pipeline_->study->cluster);
    QVERIFY(memory);
    QCOMPARE(view.table()->rows, alive_table(memory->history).rows);
    double bytes = 0;
    QAbstractItemModel* model = tableOf(view)->model();
    QAbstractItemModelTester tester(model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    for (int row = 0; row < model->rowCount(); ++row)
      bytes += model->index(row, 3).data(TableModel::ValueRole).toDouble();
    QCOMPARE(bytes, pipeline_->report->prediction.memory.total.value());
    QVERIFY(said(view).contains(QString::fromStdString(memory->history.where(memory->history.peak))));
  }

  // A bar is as long as what the device must have: with what its allocator keeps.
  void barsAreWhatADeviceMustHave() {
    const MemoryBreakdown& memory = pipeline_->report->prediction.memory;
    QVERIFY(memory.cached().value() > 0);
    const BarRow row = memoryRow("", memory);
    QVERIFY(std::abs(lengthOf(row) - memory.needed().value()) < 1);
    QCOMPARE(row.note, QString::fromStdString(to_string(memory.needed())));
    QCOMPARE(row.parts.back().value, memory.cached().value());
  }

  // What is stacked over the step's time ends where the headline does, and its last layer is the allocator's cache.
  void theHistoryReachesTheHeadline() {
    MemoryView view(nullptr);
    view.resize(900, 700);
    view.show();
    settle(view, pipeline_);
    Plot* history = nullptr;
    for (Plot* plot : view.findChildren<Plot*>())
      if (plot->graphCount() > 0) history = plot;
    QVERIFY(history != nullptr);
    history->replot();
    const QCPGraph* top = history->graph(history->graphCount() - 1);
    QCOMPARE(top->name(), QStringLiteral("Allocator's cache"));
    double most = 0;
    for (const QCPGraphData& point : *top->data()) most = std::max(most, point.value);
    QCOMPARE(most, pipeline_->report->prediction.memory.needed().value());
    const QRect axes = history->axisRect()->rect();
    QVERIFY2(history->explanationAt(axes.center()).contains("Allocator's cache"),
             qPrintable(history->explanationAt(axes.center())));
  }

  void theHistoryIsThinnedWithoutLosingThePeak() {
    const auto memory = step_memory(*pipeline_->study->graph, pipeline_->study->strategy, *pipeline_->study->cluster);
    for (const std::size_t columns : {std::size_t{1}, std::size_t{7}, std::size_t{100000}}) {
      const std::vector<HighestMoment> shown = highestMoments(memory->history, columns);
      QVERIFY(shown.size() <= columns);
      QVERIFY(std::ranges::is_sorted(shown, {}, &HighestMoment::moment));
      Bytes alive, needed;
      for (const HighestMoment& m : shown) {
        alive = std::max(alive, memory->history.moments[m.moment].most.total);
        needed = std::max(needed, m.needed);
        QVERIFY(m.needed >= memory->history.moments[m.moment].most.total);
      }
      QCOMPARE(alive, memory->history.footprint.peak.total);
      QCOMPARE(needed, memory->history.footprint.peak.needed());
    }
  }

  // 80 GiB are a line beside bars that reach past them, however little the other bar is.
  void capacityIsALineWhereAnyBarComesNearIt() {
    const AnswerPointer large = answered(scenario("zoo:gpt2-mini", {{"--devices", "8"}, {"--batch", "16384/device"}}));
    QVERIFY(large->report && !large->report->prediction.fits);
    MemoryView view(nullptr);
    for (const AnswerPointer& baseline : {AnswerPointer(), large}) {
      settle(view, lenet_, baseline);
      QStringList words;
      for (int n = 0; n < view.findChild<Plot*>()->itemCount(); ++n)
        if (auto* item = qobject_cast<QCPItemText*>(view.findChild<Plot*>()->item(n))) words << item->text();
      const QString capacity =
          "capacity " + QString::fromStdString(to_string(lenet_->report->prediction.memory_capacity));
      QVERIFY2(words.contains(baseline ? capacity : capacity + " →"), qPrintable(words.join('\n')));
    }
  }

 private:
  AnswerPointer lenet_ = lenetAnswer(), pipeline_ = pipelineAnswer();
};

std::unique_ptr<QObject> memoryTest() { return std::make_unique<MemoryTest>(); }

#include "memory_test.moc"
