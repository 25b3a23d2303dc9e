// Curves over devices: what scale() says of the strategies that are chosen, and points of runs beside them.
#include <fmt/format.h>

#include <QCheckBox>
#include <QMenu>
#include <QPushButton>
#include <QTemporaryDir>
#include <chrono>
#include <filesystem>

#include "base/files.h"
#include "gui/view/charts/scaling_view.h"
#include "tests/gui/charts/helpers.h"
#include "tests/gui/charts/tests.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

namespace {

QStringList namesIn(const View& view) {
  QStringList names;
  auto* plot = view.findChild<Plot*>();
  for (int n = 0; n < plot->plottableCount(); ++n)
    if (!plot->plottable(n)->name().isEmpty()) names << plot->plottable(n)->name();
  return names;
}

// The curves, by their names in the legend.
QStringList shownBy(const View& view) {
  QStringList names;
  auto* plot = view.findChild<Plot*>();
  for (int n = 0; n < plot->legend->itemCount(); ++n)
    if (auto* item = qobject_cast<QCPPlottableLegendItem*>(plot->legend->item(n)))
      if (item->plottable()->name() != "Ideal") names << item->plottable()->name();
  return names;
}

void tick(View& view, const QString& title, bool on) {
  for (QAction* action : view.findChild<QPushButton*>("curves")->menu()->actions())
    if (action->text() == title) return action->setChecked(on);
  QFAIL(qPrintable("there is no curve called " + title));
}

// A case of a file of `sibyl validate --save`, of two ranks.
std::string run(const std::string& name, const std::string& device) {
  return fmt::format(R"({{"case": "{}", "device": "{}", "measured_s": 0.5, "spread": 0.01, "steps": 10,
    "memory_measured_bytes": 1, "bytes_sent": 7, "bytes_sent_by_rank": [7, 7],
    "breakdown_measured_s": {{"forward": 0.1, "backward": 0.2, "optimizer": 0.1, "communication_exposed": 0.1}}}})",
                     name, device);
}

std::string fileOf(const std::string& cases) {
  return fmt::format(R"({{"schema": "sibyl-validation", "cases": [{}]}})", cases);
}

}  // namespace

class ScalingTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    for (const AnswerPointer& answer : {lenet_, pipeline_})
      QVERIFY2(answer->report, answer->report ? "" : to_string(answer->report.error()).c_str());
  }

  void curvesAreWhatScaleSays() {
    ScalingView view(nullptr);
    QJsonObject state = view.viewState();
    state["most"] = 16;
    state["curves"] = QJsonArray{"current", "baseline", "zero1"};
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

  // The scenario and its baseline until somebody chooses; then what is ticked, and others of the session are read.
  void whichCurvesAreShownIsChosen() {
    ScalingView view(nullptr);
    view.restoreViewState({{"most", 8}});
    Scenario other = pipeline(), broken = lenet();
    other.name = "R&D";
    broken.name = "broken";
    broken.set("--parallel", "tensor=3");
    view.showOthers({other, broken});
    settle(view, lenet_, pipeline_);
    QCOMPARE(shownBy(view), (QStringList{"Current", "Baseline"}));
    tick(view, "Baseline", false);
    tick(view, "R&&D", true);
    tick(view, "broken", true);
    settle(view, lenet_, pipeline_);
    QCOMPARE(shownBy(view), (QStringList{"Current", "R&D"}));
    QVERIFY2(said(view).contains("broken cannot be read"), qPrintable(said(view)));
    const Table table = *view.table();
    const std::vector<ScalePoint> own =
        scale(*pipeline_->study->graph, pipeline_->study->strategy, *pipeline_->study->cluster, {8}, Scaling::weak);
    const Table expected = to_table(ScaleReport{"", "", Scaling::weak, own});
    QCOMPARE(table.rows.back()[0].text, std::string("R&D"));
    QCOMPARE(table.rows.back()[3].value, expected.rows[0][2].value);  // step time on eight devices
    const QJsonObject state = view.viewState();
    QCOMPARE(state["curves"].toArray(), (QJsonArray{"current", "scenario:R&D", "scenario:broken"}));
    view.followRename("R&D", "lab");
    view.followRename("of no curve", "nor this");
    other.name = "lab";
    view.showOthers({other, broken});
    settle(view, lenet_, pipeline_);
    QCOMPARE(shownBy(view), (QStringList{"Current", "lab"}));
    view.followRename("lab", "R&D");
    other.name = "R&D";
    view.showOthers({other, broken});
    settle(view, lenet_, pipeline_);
    QVERIFY(view.viewState() == state);
    tick(view, "Current", false);
    tick(view, "R&&D", false);
    tick(view, "broken", false);
    settle(view, lenet_, pipeline_);
    QVERIFY2(said(view).contains("No curve is chosen"), qPrintable(said(view)));
    QVERIFY(!view.table());
    view.restoreViewState(state);
    settle(view, lenet_, pipeline_);
    QCOMPARE(shownBy(view), (QStringList{"Current", "R&D"}));
  }

  // The same colours, whatever else is shown.
  void aCurveKeepsItsColour() {
    const auto colourOfZero = [this](const QJsonArray& curves) {
      ScalingView view(nullptr);
      view.restoreViewState({{"most", 8}, {"curves", curves}});
      settle(view, lenet_);
      auto* plot = view.findChild<Plot*>();
      for (int n = 0; n < plot->plottableCount(); ++n)
        if (plot->plottable(n)->name() == "Data parallel, ZeRO 1") return plot->plottable(n)->pen().color();
      return QColor();
    };
    const QColor alone = colourOfZero({"zero1"});
    QVERIFY(alone.isValid());
    QCOMPARE(colourOfZero({"current", "data", "zero1"}), alone);
  }

  // Of chosen strategies as of the scenario; its ends are in the table, and the curve pointed at stands out.
  void everyCurveHasItsBand() {
    ScalingView view(nullptr);
    view.restoreViewState({{"most", 8}, {"curves", QJsonArray{"current", "zero1", "tensor"}}});
    view.resize(900, 600);
    view.show();
    settle(view, lenet_);
    auto* plot = view.findChild<Plot*>();
    const auto bands = [plot] {
      std::vector<QCPGraph*> found;
      for (int n = 0; n < plot->graphCount(); ++n)
        if (plot->graph(n)->channelFillGraph() != nullptr) found.push_back(plot->graph(n));
      return found;
    };
    QCOMPARE(bands().size(), std::size_t{3});
    const std::vector<ScalePoint> points =
        scale(*lenet_->study->graph, lenet_->study->strategy, *lenet_->study->cluster, {1, 2, 4, 8}, Scaling::weak);
    const Ranged last = value_of(points.back(), ScaleQuantity::throughput);
    QCOMPARE((bands().front()->data()->constEnd() - 1)->value, last.high);
    QCOMPARE((bands().front()->channelFillGraph()->data()->constEnd() - 1)->value, last.low);
    const Table table = *view.table();
    const auto column = [&table](const std::string& key) {
      return std::ranges::find(table.columns, key, &Column::key) - table.columns.begin();
    };
    QCOMPARE(table.rows[3][static_cast<std::size_t>(column("throughput_low_samples_per_s"))].value,
             plain_number(last.low));
    QCOMPARE(table.rows[3][static_cast<std::size_t>(column("throughput_high_samples_per_s"))].value,
             plain_number(last.high));

    const auto alphas = [&bands] {
      std::vector<int> all;
      for (const QCPGraph* band : bands()) all.push_back(band->brush().color().alpha());
      return all;
    };
    const std::vector<int> usual = alphas();
    QVERIFY(usual[0] > usual[1] && usual[1] == usual[2] && usual[1] > 0);
    QTRY_VERIFY(plot->legend->item(2)->rect().height() > 0);  // after the ideal and the scenario
    const QPoint name = plot->legend->item(2)->rect().center();
    QTest::mouseMove(plot, name);
    QTRY_VERIFY(alphas()[1] > alphas()[0]);
    QVERIFY(alphas()[1] > usual[1] && alphas()[2] < usual[2]);
    QTest::mouseMove(plot, QPoint(1, plot->height() - 1));
    QTRY_COMPARE(alphas(), usual);
    QTest::mouseClick(plot, Qt::LeftButton, {}, name);  // stays
    QTest::mouseMove(plot, QPoint(1, plot->height() - 1));
    QTRY_VERIFY(alphas()[1] > usual[1]);
    for (auto* box : view.findChildren<QCheckBox*>())
      if (box->text() == "intervals") box->setChecked(false);
    QVERIFY(bands().empty());
  }

  void simpleStrategiesDoTheSameWork() {
    for (const Scaling scaling : {Scaling::weak, Scaling::strong})
      for (const SimpleStrategy& simple : simpleStrategies(*lenet_->study, scaling)) {
        QCOMPARE(simple.strategy.devices(), 8);
        QCOMPARE(simple.strategy.global_batch, std::int64_t{512});
      }
  }

  // Of runs of emulated ranks nothing is called measured.
  void pointsOfRunsStandBesideTheCurves() {
    const std::string real = run("zoo:lenet --batch 16/device", "this machine"),
                      emulated = run("zoo:lenet --batch 8/device", "emulated: V100"),
                      json = fileOf(real + "," + run("zoo:alexnet --batch 16", "this machine"));
    const auto runs = parse_measurements(json, "f.json");
    QVERIFY2(runs, runs ? "" : to_string(runs.error()).c_str());
    const auto points = measuredPoints(*runs, "f.json", lenet());
    QVERIFY2(points, points ? "" : to_string(points.error()).c_str());
    QCOMPARE(points->size(), std::size_t{1});
    QCOMPARE(points->front().devices, 2);
    QCOMPARE(points->front().samples, 32.0);
    QCOMPARE(points->front().emulated, QString());
    QCOMPARE(points->front().otherwise, QString());
    QVERIFY(!measuredPoints(*runs, "f.json", scenario("zoo:vgg11", {})));

    QTemporaryDir folder;
    ScalingView view(nullptr);
    settle(view, lenet_);
    const auto load = [&](const std::string& cases) {
      const QString file = folder.filePath("one.results.json");
      QVERIFY(replace_file(file.toStdString(), fileOf(cases)));
      view.loadMeasured(file);
      QTRY_VERIFY(!view.busy());
    };
    load(real);
    QVERIFY(namesIn(view).contains("Measured") && !namesIn(view).contains("Emulated devices"));
    load(emulated);
    QVERIFY(!namesIn(view).contains("Measured") && namesIn(view).contains("Emulated devices"));
    load(real + "," + emulated);
    QVERIFY(namesIn(view).contains("Measured") && namesIn(view).contains("Emulated devices"));
    QVERIFY2(!said(view).contains("otherwise"), qPrintable(said(view)));
    load(real + "," + run("zoo:lenet --optimizer=adam --batch 16/device", "this machine"));
    QVERIFY2(said(view).contains("otherwise than the scenario: --optimizer adam"), qPrintable(said(view)));
    load("{}");
    QVERIFY2(said(view).contains("one.results.json"), qPrintable(said(view)));
    view.loadMeasured(folder.filePath("none.json"));
    QTRY_VERIFY(!view.busy());
    QVERIFY(said(view).contains("none.json"));
  }

  // The window's thread does not wait for a file: nothing is there until it comes back to its events. Of two files the
  // one chosen last is shown, and one whose reading was stopped stays chosen.
  void aFileOfRunsIsReadInAnotherThread() {
    QTemporaryDir folder;
    const QString good = folder.filePath("good.json"), bad = folder.filePath("bad.json");
    QVERIFY(replace_file(good.toStdString(), fileOf(run("zoo:lenet --batch 16/device", "this machine"))));
    QVERIFY(replace_file(bad.toStdString(), "{}"));
    ScalingView view(nullptr);
    settle(view, lenet_);
    QSignalSpy settled(&view, &View::settled);
    view.loadMeasured(good);
    QVERIFY(view.busy() && !namesIn(view).contains("Measured"));
    QTRY_VERIFY(!view.busy());
    QVERIFY(namesIn(view).contains("Measured"));
    QCOMPARE(settled.size(), 1);

    view.loadMeasured(good);
    view.loadMeasured(bad);
    QTRY_VERIFY(!view.busy());
    QVERIFY(!namesIn(view).contains("Measured"));
    QVERIFY2(said(view).contains("bad.json"), qPrintable(said(view)));
    view.loadMeasured(bad);
    view.loadMeasured(good);
    QTRY_VERIFY(!view.busy());
    QVERIFY(namesIn(view).contains("Measured"));
    QVERIFY2(!said(view).contains("bad.json"), qPrintable(said(view)));

    view.loadMeasured(good);
    view.stop();
    QVERIFY(!view.busy() && !namesIn(view).contains("Measured"));
    QVERIFY2(said(view).contains("Stopped"), qPrintable(said(view)));
    QCOMPARE(view.viewState()["measured"].toString(), good);
    settle(view, lenet_);
    QVERIFY(namesIn(view).contains("Measured") && !said(view).contains("Stopped"));
  }

  // A scenario's model has its whole path; a case's is as somebody wrote it.
  void runsOfAFileAreThoseOfItsPath() {
    QTemporaryDir folder;
    QVERIFY(QDir(folder.path()).mkpath("models") && QDir(folder.path()).mkpath("out"));
    QVERIFY(QFile(folder.filePath("models/m.onnx")).open(QIODevice::WriteOnly));
    const std::string file = folder.filePath("out/a.results.json").toStdString(),
                      model = folder.filePath("models/m.onnx").toStdString();
    const auto count = [&](const std::string& said) {
      const auto runs = parse_measurements(fileOf(run(said + " --batch 4", "this machine")), file);
      const auto points = measuredPoints(*runs, file, scenario(model, {}));
      return points ? static_cast<int>(points->size()) : 0;
    };
    QCOMPARE(count(model), 1);
    QCOMPARE(count("../models/m.onnx"), 1);  // from the file's folder
    QCOMPARE(count("./../models/m.onnx"), 1);
    QCOMPARE(count("models/m.onnx"), 0);  // from nowhere
    QCOMPARE(count("../models/n.onnx"), 0);
    const QString before = QDir::currentPath();
    QVERIFY(QDir::setCurrent(folder.path()));
    QCOMPARE(count("models/m.onnx"), 1);  // from here
    QVERIFY(QDir::setCurrent(before));
  }

  void aFileOfRunsIsReadOnce() {
    QTemporaryDir folder;
    const QString path = folder.filePath("one.results.json");
    const std::filesystem::path file = path.toStdString();
    const auto write = [&](const std::string& batch) {
      QVERIFY(replace_file(file.string(), fileOf(run("zoo:lenet --batch " + batch, "this machine"))));
    };
    MeasuredFile measured;
    QVERIFY(measured.points(lenet())->empty());  // none is chosen
    measured.choose(path);
    const auto samples = [&] {
      const auto points = measured.points(lenet());
      return points && !points->empty() ? points->front().samples : 0;
    };
    write("16");
    QCOMPARE(samples(), 16.0);
    const auto time = std::filesystem::last_write_time(file);
    write("32");
    std::filesystem::last_write_time(file, time);
    QCOMPARE(samples(), 16.0);  // nothing tells that it is another
    std::filesystem::last_write_time(file, time + std::chrono::seconds(1));
    QCOMPARE(samples(), 32.0);
    QVERIFY(std::filesystem::remove(file));
    QVERIFY(!measured.points(lenet()));
    write("8");
    QCOMPARE(samples(), 8.0);
  }

 private:
  AnswerPointer lenet_ = lenetAnswer(), pipeline_ = pipelineAnswer();
};

std::unique_ptr<QObject> scalingTest() { return std::make_unique<ScalingTest>(); }

#include "scaling_test.moc"
