// What a person does, in a real window: open a model, change the strategy, drag a slider, pin, compare, undo, save,
// reopen, export. The command line that the window gives is run, and must answer the same.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QProcess>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QStyleOptionSlider>
#include <QTableView>
#include <QToolButton>
#include <set>

#include "base/quantity.h"
#include "gui/app/exporter.h"
#include "gui/view/charts/search_view.h"
#include "gui/view/compare/compare_view.h"
#include "tests/gui/flow/driven_window.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

namespace {

QPoint handleOf(const QSlider& slider) {
  QStyleOptionSlider option;
  option.initFrom(&slider);
  option.orientation = slider.orientation();
  option.minimum = slider.minimum();
  option.maximum = slider.maximum();
  option.sliderPosition = slider.sliderPosition();
  option.sliderValue = slider.value();
  return slider.style()->subControlRect(QStyle::CC_Slider, &option, QStyle::SC_SliderHandle, &slider).center();
}

}  // namespace

class FlowTest : public DrivenWindow {
  Q_OBJECT

  [[nodiscard]] bool anyBusy() const {
    return std::ranges::any_of(window_->views(), [](const View* view) { return view->busy(); });
  }

 private slots:
  void initTestCase() { openWindow(); }

  void openAModel() {
    openModel("gpt2-mini");
    QCOMPARE(document().current().cluster, std::string("dgx-a100"));
  }

  void aFileIsDropped() {
    const int steps = document().undoStack().index();
    const QString path = folder_.filePath("lenet.onnx");
    QVERIFY(write_zoo_model("lenet", path.toStdString()).has_value());
    QVERIFY(dragAndDrop(*window_, path));
    QCOMPARE(document().current().model, path.toStdString());
    undoTo(steps);
  }

  void whatIsWrongIsSaidAndNothingIsLost() {
    const State before = document().state();
    const QString path = folder_.filePath("broken.json");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("{\"schema\": \"sibyl-session\", \"version\": 9}") > 0);
    file.close();
    const auto opened = window_->open(path);
    QVERIFY(!opened.has_value());
    QVERIFY(QString::fromStdString(opened.error().where).contains("$.version"));
    QVERIFY(document().state() == before);
  }

  void changeTheStrategy() {
    control<QSpinBox>("--devices").setValue(8);
    settle();
    auto& tensor = control<QSpinBox>("factor tensor");
    tensor.setFocus();
    QTest::keyClick(&tensor, Qt::Key_Up);
    QCOMPARE(tensor.value(), 2);
    settle();
    QCOMPARE(document().current().option("--parallel"), std::optional<std::string>("tensor=2"));
    QCOMPARE(window_->answer()->study->strategy.data, 4);
    QVERIFY(window_->answer()->report.has_value());
  }

  void noFactorLiesOnAnother() {
    const QWidget* mesh = control<QSpinBox>("factor tensor").parentWidget();
    const QList<QWidget*> all = mesh->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly);
    QVERIFY(all.contains(&control<QCheckBox>("sequence")));
    for (const QWidget* one : all)
      for (const QWidget* other : all) QVERIFY(one == other || !one->geometry().intersects(other->geometry()));
  }

  void aFactorThatDoesNotDivideIsSaid() {
    control<QSpinBox>("factor pipeline").setValue(3);
    settle();
    QVERIFY(!window_->answer()->report.has_value());
    QVERIFY(!window_->answerBar().sentence().isEmpty());
    keys(*window_, Qt::Key_Z, Qt::ControlModifier);
    settle();
    QVERIFY(window_->answer()->report.has_value());
  }

  void whatDoesNotFitIsOfferedASettingThatDoes() {
    const int steps = document().undoStack().index();
    document().change("Change batch", [](Scenario& scenario) { scenario.set("--batch", "16384/device"); });
    settle();
    QVERIFY(!window_->answer()->report->prediction.fits);
    auto& button = control<QPushButton>("smaller batch");
    QVERIFY(button.isVisible());
    QTest::mouseClick(&button, Qt::LeftButton);
    settle();
    QVERIFY(window_->answer()->report->prediction.fits);
    QVERIFY(!button.isVisible());
    undoTo(steps);
  }

  void dragASlider() {
    auto& slider = control<QSlider>("batch slider");
    const int steps = document().undoStack().index();
    const double before = window_->answer()->report->prediction.step_time.value();
    QPoint at = handleOf(slider);
    QTest::mousePress(&slider, Qt::LeftButton, {}, at);
    for (int i = 0; i < 10; ++i) {
      at += QPoint(slider.width() / 20, 0);
      QTest::mouseMove(&slider, at);
      QTest::qWait(20);
    }
    QTest::mouseRelease(&slider, Qt::LeftButton, {}, at);
    settle();
    QCOMPARE(document().undoStack().index(), steps + 1);
    QVERIFY(window_->answer()->report.has_value());
    QVERIFY(window_->answer()->report->prediction.step_time.value() > before);
  }

  void aFormulaIsShownUntilTheAnswerComes() {
    auto* answers = window_->findChild<Answers*>({}, Qt::FindDirectChildrenOnly);
    QStringList shown, said;
    const auto once = connect(answers, &Answers::foreseen, this, [&](const Foreseen& foreseen) {
      shown << window_->answerBar().stepTime();
      said << QString::fromStdString(to_string(foreseen.answer.step_time));
    });
    const int steps = document().undoStack().index();
    for (int batch = 100; batch < 120 && shown.isEmpty(); ++batch) {  // the answer may be the first
      document().change(
          "batch", [batch](Scenario& s) { s.set("--batch", std::to_string(2 * batch)); }, "slider");
      settle();
    }
    disconnect(once);
    QVERIFY(!shown.isEmpty());
    QCOMPARE(shown, said);
    QCOMPARE(window_->answerBar().stepTime(),
             QString::fromStdString(to_string(window_->answer()->report->prediction.step_time)));
    undoTo(steps);
  }

  void nodesOfOtherSizesAndDevices() {
    const int steps = document().undoStack().index();
    auto& each = control<QSpinBox>("--devices-per-node");
    QVERIFY2(each.text().startsWith("8 "), qPrintable(each.text()));  // what the cluster has
    each.setFocus();
    QTest::keyClick(&each, Qt::Key_Down);
    QCOMPARE(each.value(), 7);
    each.setValue(4);
    settle();
    QCOMPARE(document().undoStack().index(), steps + 1);
    QCOMPARE(window_->answer()->study->cluster->devices_per_node, 4);
    auto& kind = control<QComboBox>("--device-type");
    const double before = window_->answer()->report->prediction.step_time.value();
    kind.setCurrentIndex(kind.findText("h100-sxm"));
    emit kind.activated(kind.currentIndex());
    settle();
    QVERIFY(window_->answer()->report->prediction.step_time.value() < before);
    QVERIFY(QString::fromStdString(command_line(document().current())).contains("--device-type=h100-sxm"));
    window_->setCluster("dgx-h100");  // its own size, its own devices
    QVERIFY(!document().current().option("--device-type") && !document().current().option("--devices-per-node"));
    undoTo(steps);
    QCOMPARE(each.value(), 0);
    QCOMPARE(kind.currentIndex(), 0);
  }

  // Eight devices of one node sum over its links alone.
  void othersOnTheNetwork() {
    const int steps = document().undoStack().index();
    auto& between = control<QDoubleSpinBox>("--set nic.background");
    auto& inside = control<QDoubleSpinBox>("--set link.background");
    QVERIFY2(inside.text().startsWith("0 % "), qPrintable(inside.text()));  // what the cluster has
    const double before = window_->answer()->report->prediction.step_time.value();
    inside.setFocus();
    QTest::keyClick(&inside, Qt::Key_Up);
    QCOMPARE(inside.value(), 5.0);
    inside.setValue(90);
    settle();
    QCOMPARE(document().undoStack().index(), steps + 1);
    QCOMPARE(document().current().change("link.background"), std::optional<std::string>("0.9"));
    QVERIFY(window_->answer()->report->prediction.step_time.value() > before);
    QVERIFY(QString::fromStdString(command_line(document().current())).contains("--set=link.background=0.9"));
    QVERIFY2(inside.toolTip().contains("90 %"), qPrintable(inside.toolTip()));
    between.setValue(33.5);
    settle();
    QCOMPARE(between.text(), QStringLiteral("33.5 %"));
    QCOMPARE(window_->answer()->study->cluster->network.topology().spec().nic_background, 0.335);
    between.setValue(3);
    between.setFocus();
    QTest::keyClick(&between, Qt::Key_Down);
    QCOMPARE(document().current().change("nic.background"), std::optional<std::string>("0"));
    QTest::keyClick(&between, Qt::Key_Down);
    QVERIFY(!document().current().change("nic.background"));
    document().change("one node", [](Scenario& s) { s.set("--nodes", "1"); });
    settle();
    QVERIFY(inside.isEnabled() && !between.isEnabled());
    document().change("by hand", [](Scenario& s) { s.set_change("nic.background", "much"); });
    settle();
    QVERIFY(between.isEnabled());
    QCOMPARE(between.text(), QStringLiteral("much"));
    QVERIFY(!window_->answer()->report.has_value());
    undoTo(steps);
    QVERIFY2(inside.text().startsWith("0 % "), qPrintable(inside.text()));
  }

  void stateThatLiesElsewhereIsSaid() {
    const int steps = document().undoStack().index();
    document().change("adam", [](Scenario& s) { s.set("--optimizer", "adam"); });
    auto& offload = control<QComboBox>("--offload");
    emit offload.textActivated("optimizer");
    settle();
    QCOMPARE(document().current().option("--offload"), std::optional<std::string>("optimizer"));
    QVERIFY(window_->answer()->report->prediction.host_memory.value() > 0);
    QStringList words;
    for (const QLabel* label : window_->answerBar().findChildren<QLabel*>()) words << label->text();
    QVERIFY2(words.join('\n').contains("of each host"), qPrintable(words.join('\n')));
    emit offload.textActivated("optimizer:nvme");
    settle();
    words.clear();
    for (const QLabel* label : window_->answerBar().findChildren<QLabel*>()) words << label->text();
    QVERIFY2(words.join('\n').contains("of each node's storage"), qPrintable(words.join('\n')));
    // Beside the strategy, for it is --offload that is wrong: nothing else in the message says so.
    emit offload.textActivated("gradients");
    settle();
    words.clear();
    for (const QLabel* label : window_->setup().strategy().findChildren<QLabel*>())
      if (label->isVisible()) words << label->text();
    QVERIFY2(words.join('\n').contains("'gradients' is nothing that can lie outside"), qPrintable(words.join('\n')));
    emit offload.textActivated("nothing");
    QVERIFY(!document().current().option("--offload"));
    undoTo(steps);
  }

  // By its button and by its key, whichever view is at work; the next question is answered again.
  void whatTakesLongIsStopped() {
    for (const char* key : {"scaling", "memory", "timeline", "graph"}) {
      window_->showView(key);
      settle();
      const auto found = std::ranges::find(window_->views(), QLatin1String(key), &View::key);
      View* view = *found;
      const auto says = [view](const char* word) {
        return std::ranges::any_of(view->findChildren<QLabel*>(),
                                   [word](const QLabel* label) { return label->text().contains(QLatin1String(word)); });
      };
      bool stopped = false;
      // The views have begun when the window has shown the answer, and none has ended.
      const auto once = connect(window_.get(), &MainWindow::answered, this, [&] {
        if (std::exchange(stopped, true)) return;
        QVERIFY(view->busy());
        if (view->key() == "scaling")
          control<QToolButton>("stop").click();
        else
          keys(*window_, Qt::Key_Period, Qt::ControlModifier);
        QVERIFY(!view->busy());
      });
      const int steps = document().undoStack().index();
      document().change("batch", [](Scenario& s) { s.set("--batch", "24/device"); });
      settle();
      disconnect(once);
      QVERIFY(stopped);
      QVERIFY2(says("Stopped"), key);
      undoTo(steps);
      QVERIFY2(!says("Stopped"), key);
    }
  }

  // The answer before comes back, in place of what a formula foresaw, and is said to be so. The question stays, and is
  // asked again by reloading.
  void theAnswerIsStopped() {
    const AnswerPointer before = window_->answer();
    const QString step = window_->answerBar().stepTime();
    const int steps = document().undoStack().index();
    bool stopped = false;
    const auto stop = [&] {
      QVERIFY(!window_->settled());
      keys(*window_, Qt::Key_Period, Qt::ControlModifier);
      stopped = window_->settled();
    };
    const auto is_as_before = [&] {
      return window_->answer() == before && window_->answerBar().stepTime() == step &&
             window_->answerBar().stopped().startsWith("Stopped");
    };
    document().change("batch", [](Scenario& s) { s.set("--batch", "24/device"); });
    stop();
    QVERIFY(stopped && is_as_before());
    for (const QPushButton* button : window_->findChild<SearchView*>()->findChildren<QPushButton*>())
      QVERIFY2(!button->isEnabled(), qPrintable(button->text()));  // what is shown is not what is asked
    auto* answers = window_->findChild<Answers*>({}, Qt::FindDirectChildrenOnly);
    const auto once = connect(answers, &Answers::foreseen, this, stop);
    stopped = false;
    document().change("batch", [](Scenario& s) { s.set("--batch", "28/device"); });
    QTRY_VERIFY_WITH_TIMEOUT(stopped, patience_ms);
    disconnect(once);
    QVERIFY(is_as_before());
    picture(*window_, "stopped");
    QTest::qWait(100);  // nothing comes after all
    QVERIFY(is_as_before());
    keys(*window_, Qt::Key_F5, Qt::NoModifier);
    QVERIFY(window_->answerBar().stopped().isEmpty());
    settle();
    QCOMPARE(window_->answer()->scenario.option("--batch"), std::optional<std::string>("28/device"));
    QVERIFY(window_->answer()->report.has_value() && window_->answerBar().stopped().isEmpty());
    undoTo(steps);
    QCOMPARE(window_->answerBar().stepTime(), step);
  }

  // One step for a click on a row of the search's table, and one for two clicks.
  void clicksOnStrategies() {
    const QString step = window_->answerBar().stepTime();
    const int steps = document().undoStack().index();
    window_->showView("search");
    auto* view = window_->findChild<SearchView*>();
    view->start();
    settle();
    QTRY_VERIFY_WITH_TIMEOUT(!view->busy(), patience_ms);
    auto* table = view->findChild<QTableView*>();
    QTRY_VERIFY(table->isVisible() && table->model()->rowCount() > 1);
    const auto strategy = [this] { return strategy_words(window_->answer()->study->strategy); };
    const auto at = [table](int row) { return table->visualRect(table->model()->index(row, 0)).center(); };
    std::set<std::string> used;
    for (const int row : {0, 0, 1, 1}) {  // at the second click it is the scenario's
      const int now = document().undoStack().index();
      const std::string before = strategy();
      QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, at(row));
      settle();
      QCOMPARE(document().undoStack().index(), strategy() == before ? now : now + 1);
      used.insert(strategy());
    }
    QCOMPARE(used.size(), std::size_t{2});
    const int now = document().undoStack().index();
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, at(0));
    QTest::mouseDClick(table->viewport(), Qt::LeftButton, {}, at(0));  // the second press of two
    QTest::mouseRelease(table->viewport(), Qt::LeftButton, {}, at(0));
    settle();
    QCOMPARE(document().undoStack().index(), now + 1);
    picture(*window_, "search-used");
    undoTo(steps);
    QCOMPARE(window_->answerBar().stepTime(), step);
  }

  // The model that was opened stays the question's. What is exported is an answer to it.
  void theImportOfAModelIsStopped() {
    const AnswerPointer before = window_->answer();
    const int steps = document().undoStack().index();
    const QString path = folder_.filePath("lenet.onnx");
    QVERIFY(window_->open(path).has_value());
    QVERIFY(!window_->settled());
    control<QToolButton>("stop").click();
    QVERIFY(window_->settled());
    QVERIFY(window_->answerBar().stopped().startsWith("Stopped"));
    QCOMPARE(window_->answer(), before);
    QCOMPARE(document().current().model, path.toStdString());
    window_->setup().strategy().findBest();  // of a model that is not there
    QVERIFY(!window_->setup().strategy().searching());
    ExportRequest request;
    request.folder = folder_.filePath("stopped");
    QVERIFY(window_->exportTo({}, request, {}).has_value());
    QCOMPARE(window_->answer()->scenario.model, path.toStdString());
    QVERIFY(window_->answer()->report.has_value() && window_->answerBar().stopped().isEmpty());
    undoTo(steps);
  }

  void pinAndCompare() {
    keys(*window_, Qt::Key_B, Qt::ControlModifier);
    QVERIFY(document().state().baseline.has_value());
    control<QComboBox>("--precision").setCurrentText("bf16");
    emit control<QComboBox>("--precision").textActivated("bf16");
    settle();
    QCOMPARE(document().current().option("--precision"), std::optional<std::string>("bf16"));
    keys(*window_, Qt::Key_M, Qt::ControlModifier);
    settle();
    const auto* compare = window_->findChild<CompareView*>();
    QVERIFY(compare->isVisible());
    QVERIFY2(compare->verdict().contains("faster"), qPrintable(compare->verdict()));
    QVERIFY(compare->table().has_value());
  }

  void aComparisonIsStopped() {
    const auto* compare = window_->findChild<CompareView*>();
    const QString verdict = compare->verdict();
    const int steps = document().undoStack().index();
    document().change("batch", [](Scenario& s) { s.set("--batch", "24/device"); });
    QVERIFY(compare->busy());
    for (const QLabel* label : compare->findChildren<QLabel*>())  // a verdict of the question before is dimmed
      QVERIFY(label->text() != verdict || !label->isEnabled());
    keys(*window_, Qt::Key_Period, Qt::ControlModifier);
    QVERIFY(!compare->busy());
    QVERIFY2(compare->verdict().startsWith("Stopped"), qPrintable(compare->verdict()));
    QVERIFY(!compare->table().has_value());
    keys(*window_, Qt::Key_F5, Qt::NoModifier);
    settle();
    QVERIFY2(!compare->verdict().startsWith("Stopped"), qPrintable(compare->verdict()));
    QVERIFY(compare->table().has_value());
    undoTo(steps);
    QCOMPARE(compare->verdict(), verdict);
  }

  // The command line reproduces what the window shows, with a part of the cluster changed.
  void theCommandLineAnswersTheSame() {
    document().change("nic", [](Scenario& s) {
      s.changes = {"nic.bandwidth=2x", "device.memory=60GB", "link.background=0.5"};
    });
    settle();
    keys(*window_, Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
    const QString command = QApplication::clipboard()->text();
    QVERIFY2(command.startsWith("sibyl predict "), qPrintable(command));
    QProcess process;
    process.start("sh",
                  {"-c", QString(command).replace("sibyl predict ", SIBYL_BINARY_DIR "/bin/sibyl predict --json ")});
    QVERIFY(process.waitForFinished(patience_ms));
    const QJsonObject json = QJsonDocument::fromJson(process.readAllStandardOutput()).object();
    QVERIFY2(json.contains("step_time_s"), process.readAllStandardError().constData());
    QCOMPARE(json["step_time_s"].toDouble(), window_->answer()->report->prediction.step_time.value());
    keys(*window_, Qt::Key_Z, Qt::ControlModifier);
    settle();
  }

  void undoAndRedo() {
    const State now = document().state();
    keys(*window_, Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(!document().current().option("--precision"));
    keys(*window_, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(document().state() == now);
    settle();
  }

  void saveAndReopen() {
    const QString path = folder_.filePath("session.json");
    QVERIFY(window_->saveTo(path).has_value());
    QVERIFY(!window_->isWindowModified());
    MainWindow other;
    QVERIFY(other.open(path).has_value());
    QVERIFY(other.document().state() == document().state());
    QTRY_VERIFY_WITH_TIMEOUT(other.settled() && other.answer(), patience_ms);
    QCOMPARE(other.answer()->report->prediction.step_time.value(),
             window_->answer()->report->prediction.step_time.value());
  }

  void aWindowIsClosedWhileItWorks() {
    auto other = std::make_unique<MainWindow>();
    QSignalSpy answered(other.get(), &MainWindow::answered);
    QVERIFY(other->open(folder_.filePath("session.json")).has_value());
    other->showView("scaling");
    other->QWidget::show();
    QVERIFY(answered.wait(patience_ms));
    if (other->settled()) other->document().change("batch", [](Scenario& s) { s.set("--batch", "40/device"); });
    QVERIFY(!other->settled());
    other.reset();
    activate();
  }

  void theBestIsFound() {
    document().change("fewer", [](Scenario& s) {
      s.set("--devices", "2");
      s.set("--batch", "16");
      s.clear("--parallel");
    });
    settle();
    window_->setup().strategy().findBest();
    QTRY_VERIFY_WITH_TIMEOUT(!window_->setup().strategy().searching(), patience_ms);
    settle();
    QVERIFY(document().current().option("--parallel").value_or("").starts_with("data="));
    QVERIFY(window_->answer()->report.has_value());
  }

  // Of a question that most views have not seen yet.
  void exportEverything() {
    document().change("batch", [](Scenario& s) { s.set("--batch", "8"); });
    ExportRequest request;
    request.folder = folder_.filePath("out");
    request.figures = {FigureFormat::png, FigureFormat::svg, FigureFormat::pdf};
    const auto written = window_->exportTo(window_->views(), request, {});
    QVERIFY2(written.has_value(), written ? "" : to_string(written.error()).c_str());
    for (const QString& file : *written) QVERIFY2(QFileInfo(file).size() > 100, qPrintable(file));
    QVERIFY(written->contains(QDir(request.folder).filePath("report.html")));
    for (const View* view : window_->views()) {
      const bool compared = view->key() != "compare" || document().state().baseline;
      if (compared)
        QVERIFY2(written->contains(QDir(request.folder).filePath(view->key() + ".csv")), qPrintable(view->key()));
    }
    QCOMPARE(window_->answer()->scenario.option("--batch"), std::optional<std::string>("8"));
    request.folder = "/proc/nowhere";
    QVERIFY(!window_->exportTo(window_->views(), request, {}).has_value());
  }

  void anExportIsCancelled() {
    ExportRequest request;
    request.folder = folder_.filePath("cancelled");
    const auto is_cancelled = [&](const std::function<bool()>& cancelled) {
      document().change("batch", [](Scenario& s) { s.set("--batch", s.option("--batch") == "8" ? "16" : "8"); });
      const auto written = window_->exportTo(window_->views(), request, cancelled);
      return !written && written.error().code == ErrorCode::interrupted;
    };
    QVERIFY(is_cancelled([] { return true; }));  // at once
    QVERIFY(is_cancelled([this] { return anyBusy(); }));
    QVERIFY(!QFileInfo::exists(request.folder));
    settle();
  }

  void cleanupTestCase() { window_.reset(); }
};

QTEST_MAIN(FlowTest)
#include "flow_test.moc"
