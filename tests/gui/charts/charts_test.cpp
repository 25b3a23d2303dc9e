// The views made of charts: what they show is what the library says, and what is clicked is told.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <set>

#include "base/files.h"
#include "base/quantity.h"
#include "calibration/cluster_change.h"
#include "gui/view/charts/breakdown_view.h"
#include "gui/view/charts/memory_view.h"
#include "gui/view/charts/scaling_view.h"
#include "gui/view/charts/search_view.h"
#include "gui/view/charts/sensitivity_view.h"
#include "gui/view/charts/views.h"
#include "tests/gui/charts/answers.h"

namespace sibyl::gui {
namespace {

using namespace test;

QString said(const QWidget& view) {
  QStringList all;
  for (const QLabel* label : view.findChildren<QLabel*>())
    if (!label->isHidden()) all << label->text();
  return all.join('\n');
}

QTableView* tableOf(const View& view) { return view.findChild<QTableView*>(); }

int coloursOf(View& view, const QSize& size) {
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

}  // namespace

class ChartsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    lenet_ = answered(lenet());
    pipeline_ = answered(pipeline());
    QVERIFY2(lenet_->report, lenet_->report ? "" : to_string(lenet_->report.error()).c_str());
    QVERIFY2(pipeline_->report, pipeline_->report ? "" : to_string(pipeline_->report.error()).c_str());
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

  void theHistoryIsThinnedWithoutLosingThePeak() {
    const auto memory = step_memory(*pipeline_->study->graph, pipeline_->study->strategy, *pipeline_->study->cluster);
    for (const std::size_t columns : {std::size_t{1}, std::size_t{7}, std::size_t{100000}}) {
      const std::vector<std::size_t> shown = highestMoments(memory->history, columns);
      QVERIFY(shown.size() <= columns);
      QVERIFY(std::ranges::is_sorted(shown));
      double most = 0;
      for (const std::size_t m : shown) most = std::max(most, memory->history.moments[m].most.total.value());
      QCOMPARE(most, memory->history.footprint.peak.total.value());
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

  // Device-hours of the epoch that the scenario names; what a device-hour costs makes them money. No new search.
  void theSearchSaysWhatEachStrategyCosts() {
    Scenario asked = lenet();
    asked.epoch_samples = 51'200;  // 100 steps of 512
    const AnswerPointer epoch = answered(asked);
    SearchView view(nullptr);
    settle(view, epoch);
    const auto column = [&](const std::string& key) {
      const std::vector<Column> columns = view.table()->columns;
      return static_cast<std::size_t>(std::ranges::find(columns, key, &Column::key) - columns.begin());
    };
    const SearchResult found = *answer(*searchQuestion(epoch->study, {}), {}, {});
    const double hours = 100 * found.best[0].step_time.value() * 8 / 3600;
    const std::size_t of_hours = column("device_hours");
    QVERIFY(of_hours < view.table()->columns.size());
    QVERIFY(std::abs(std::stod(view.table()->rows[0][of_hours].value) - hours) < 1e-9 * hours);
    QCOMPARE(column("cost"), view.table()->columns.size());
    asked.device_hour_price = 2;
    view.showAnswer(answered(asked), nullptr);
    QVERIFY(!view.busy());
    view.restoreViewState({{"cost", true}});
    view.resize(900, 600);
    QVERIFY(coloursOf(view, {800, 500}) > 8);
    const std::size_t of_cost = column("cost");
    QVERIFY(of_cost < view.table()->columns.size());
    QVERIFY(std::abs(std::stod(view.table()->rows[0][of_cost].value) - 2 * hours) < 1e-9 * hours);
    Plot* plot = view.findChild<Plot*>();
    QCOMPARE(plot->yAxis->label(), QString("Cost of an epoch"));
    const auto first = plot->graph(plot->graphCount() - 1)->data()->constBegin();
    QVERIFY(std::abs(first->value - 2 * 100 * first->key * 8 / 3600) < 1e-9);
  }

  void workIsGivenUpAndTheViewSaysSo() {
    const AnswerPointer other = answered(pipeline());  // of the same scenario, but asked anew
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      view->restoreViewState({{"compared", QJsonArray{"zero1"}}});
      QSignalSpy told(view, &View::busyChanged);
      view->showAnswer(other, nullptr);
      view->prepare();
      QVERIFY2(view->busy(), qPrintable(view->key()));
      QVERIFY(!told.isEmpty());
      view->stop();
      QTRY_VERIFY_WITH_TIMEOUT(!view->busy(), 120000);
      if (view->key() == "search") continue;  // shows what it found until then
      QVERIFY2(said(*view).contains("Stopped"), qPrintable(view->key() + ": " + said(*view)));
      settle(*view, pipeline_);
      QVERIFY2(!said(*view).contains("Stopped"), qPrintable(view->key()));
    }
  }

  void controlsGoOnInTheNextLineWhereThereIsNoRoom() {
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      settle(*view, lenet_);
      QVERIFY2(view->minimumSizeHint().width() <= 560, qPrintable(view->key()));
      view->resize(560, 500);
      view->show();
      QTest::qWait(1);
      for (const QAbstractButton* button : view->findChildren<QAbstractButton*>()) {
        if (!button->isVisible() || qobject_cast<QTableView*>(button->parentWidget())) continue;
        QVERIFY2(button->mapTo(view, button->rect().bottomRight()).x() < view->width(), qPrintable(button->text()));
        QVERIFY2(button->width() >= button->minimumSizeHint().width(), qPrintable(button->text()));
      }
    }
  }

  void curvesAreWhatScaleSays() {
    ScalingView view(nullptr);
    QJsonObject state = view.viewState();
    state["most"] = 16;
    state["compared"] = QJsonArray{"zero1"};
    view.restoreViewState(state);
    settle(view, lenet_, pipeline_);
    const auto expected =
        scale(*lenet_->study->graph, lenet_->study->strategy, *lenet_->study->cluster, {1, 2, 4, 8, 16}, Scaling::weak);
    const Table table = *view.table();
    QCOMPARE(table.columns[1].key, std::string("devices"));
    QCOMPARE(table.rows.size(), std::size_t{15});  // current, baseline, ZeRO 1
    const Table own = to_table(ScaleReport{"", "", Scaling::weak, expected});
    for (std::size_t row = 0; row < own.rows.size(); ++row) {
      QCOMPARE(table.rows[row][0].text, std::string("Current"));
      QVERIFY(std::equal(own.rows[row].begin(), own.rows[row].end(), table.rows[row].begin() + 1));
    }
    // A pipeline of two cannot run on one device, and says so.
    QVERIFY2(said(view).contains("1 device"), qPrintable(said(view)));
    const ScalingSeries series{"", lenet_->study, lenet_->study->strategy, expected};
    const Ranged time = value_of(expected[3], ScaleQuantity::step_time);
    QCOMPARE(time.value, expected[3].prediction->step_time.value());
    QCOMPARE(time.low, expected[3].prediction->interval_low.value());
    QCOMPARE(ideal_value(expected[0], 4, Scaling::strong, ScaleQuantity::step_time),
             expected[0].prediction->step_time.value() / 4);
    QCOMPARE(ideal_value(expected[0], 4, Scaling::weak, ScaleQuantity::throughput),
             expected[0].prediction->throughput * 4);
    QCOMPARE(measured_value(Seconds{0.5}, 64, ScaleQuantity::throughput), 128.0);
    QCOMPARE(measured_value(Seconds{0.5}, 64, ScaleQuantity::step_time), 0.5);
  }

  void simpleStrategiesDoTheSameWork() {
    for (const Scaling scaling : {Scaling::weak, Scaling::strong})
      for (const SimpleStrategy& simple : simpleStrategies(*lenet_->study, scaling)) {
        QCOMPARE(simple.strategy.devices(), 8);
        QCOMPARE(simple.strategy.global_batch, std::int64_t{512});
      }
  }

  void measuredPointsStandBesideTheCurves() {
    const std::string json = R"({"schema": "sibyl-validation", "cases": [
      {"case": "zoo:lenet --batch 16/device", "measured_s": 0.5, "spread": 0.01, "steps": 10, "memory_measured_bytes": 1,
       "bytes_sent": 7, "bytes_sent_by_rank": [7, 7], "breakdown_measured_s": {"forward": 0.1, "backward": 0.2,
       "optimizer": 0.1, "communication_exposed": 0.1}},
      {"case": "zoo:alexnet --batch 16", "measured_s": 0.5, "spread": 0.01, "steps": 10, "memory_measured_bytes": 1,
       "bytes_sent": 7, "breakdown_measured_s": {"forward": 0.1, "backward": 0.2, "optimizer": 0.1, "communication_exposed": 0.1}}]})";
    const auto points = measuredPoints(json, "f.json", "zoo:lenet");
    QVERIFY2(points, points ? "" : to_string(points.error()).c_str());
    QCOMPARE(points->size(), std::size_t{1});
    QCOMPARE(points->front().devices, 2);
    QCOMPARE(points->front().samples, 32.0);
    QVERIFY(!measuredPoints(json, "f.json", "zoo:vgg11"));
    QVERIFY(!measuredPoints("{}", "f.json", "zoo:lenet"));

    QTemporaryDir folder;
    const QString file = folder.filePath("one.results.json");
    QVERIFY(replace_file(file.toStdString(), json));
    ScalingView view(nullptr);
    settle(view, lenet_);
    view.loadMeasured(file);
    Plot* plot = view.findChild<Plot*>();
    QStringList names;
    for (int n = 0; n < plot->plottableCount(); ++n) names << plot->plottable(n)->name();
    QVERIFY(names.contains("Measured"));
    view.loadMeasured(folder.filePath("none.json"));
    QVERIFY(said(view).contains("none.json"));
  }

  void theSearchIsTheLibrarysAndIsUsed() {
    SearchView view(nullptr);
    settle(view, lenet_);
    const SearchQuestion question = *searchQuestion(lenet_->study, {});
    const SearchResult result = *answer(question, {}, {});
    const SearchReport report{"", "", "", result, 1'000'000, 0};
    QCOMPARE(view.table()->rows, searchTable(report).rows);
    QVERIFY(said(view).contains(searchSummary(result)));
    QAbstractItemModel* model = tableOf(view)->model();
    QCOMPARE(model->rowCount(), static_cast<int>(result.best.size()));

    QSignalSpy proposed(&view, &View::scenarioProposed);
    tableOf(view)->setCurrentIndex(model->index(1, 0));
    for (QPushButton* button : view.findChildren<QPushButton*>())
      if (button->text() == "Use this strategy") button->click();
    QCOMPARE(proposed.size(), 1);
    const AnswerPointer used = answered(proposed[0][0].value<Scenario>());
    QVERIFY2(used->report, used->report ? "" : to_string(used->report.error()).c_str());
    QCOMPARE(used->report->prediction.step_time, result.best[1].step_time);
  }

  void theSearchIsLimitedAndSaysWhatIsWrong() {
    SearchControls controls;
    controls.memory = "1kB";
    QCOMPARE(answer(*searchQuestion(lenet_->study, controls), {}, {})->best.size(), std::size_t{0});
    controls.memory = "lots";
    QVERIFY(!searchQuestion(lenet_->study, controls));
    controls = {};
    controls.axes = QStringList{"data"};
    controls.devices = "2,4";
    const SearchResult replicas = *answer(*searchQuestion(lenet_->study, controls), {}, {});
    QVERIFY(!replicas.best.empty());
    for (const Candidate& c : replicas.best) QCOMPARE(c.strategy.devices(), c.strategy.data);
    SearchView view(nullptr);
    view.restoreViewState({{"memory", "lots"}});
    settle(view, lenet_);
    QVERIFY(said(view).contains("lots"));
  }

  void theTornadoIsTheLibrarys() {
    SensitivityView view(nullptr);
    settle(view, lenet_);
    const auto expected = sensitivities(*lenet_->study->graph, lenet_->study->strategy, *lenet_->study->cluster);
    QVERIFY(expected);
    QCOMPARE(view.table()->rows, to_table(SensitivityReport{"", "", *expected}).rows);
    const Tornado tornado = tornadoOf(*expected);
    QCOMPARE(tornado.shown.size() + tornado.without_effect.size(), expected->inputs.size());
    QVERIFY(!tornado.shown.empty());
    Plot* plot = view.findChild<Plot*>();
    QCOMPARE(plot->plottableCount(), static_cast<int>(2 * tornado.shown.size()));
    QVERIFY(said(view).contains(QString::fromStdString(tornado.without_effect.front())));
  }

  void everyViewHasAFigureATableAndAName() {
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      view->resize(900, 600);
      settle(*view, pipeline_, lenet_);
      QVERIFY2(coloursOf(*view, {800, 500}) > 8, qPrintable(view->key()));
      QVERIFY(view->table().has_value());
      QVERIFY(!view->table()->rows.empty());
      QVERIFY(!view->title().isEmpty());
      for (const Plot* plot : view->findChildren<Plot*>()) QVERIFY(!plot->accessibleName().isEmpty());
      for (const QTableView* table : view->findChildren<QTableView*>()) QVERIFY(!table->accessibleName().isEmpty());
    }
  }

  void anErrorIsSaidInTheView() {
    const AnswerPointer wrong = answered(scenario("zoo:lenet", {{"--devices", "8"}, {"--batch", "7"}}));
    QVERIFY(!wrong->report);
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      settle(*view, wrong);
      QVERIFY2(said(*view).contains(sentence(wrong->report.error())), qPrintable(view->key()));
      QVERIFY(coloursOf(*view, {400, 300}) > 1);
      settle(*view, lenet_);
      QVERIFY(!said(*view).contains(sentence(wrong->report.error())));
    }
  }

  void hiddenViewsDoNothing() {
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      view->showAnswer(lenet_, nullptr);
      QVERIFY(!view->busy());
      QVERIFY(view->findChildren<Plot*>().front()->plottableCount() == 0);
    }
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
  AnswerPointer lenet_, pipeline_;
};

}  // namespace sibyl::gui

QTEST_MAIN(sibyl::gui::ChartsTest)
#include "charts_test.moc"
