// Parts of the window by themselves: the answer bar, the forms of cluster and training, and the comparison.
#include <QAbstractButton>
#include <QComboBox>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QSlider>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QUndoStack>
#include <fstream>

#include "base/quantity.h"
#include "gui/app/answer_bar.h"
#include "gui/app/exporter.h"
#include "gui/app/setup/cluster_section.h"
#include "gui/app/setup/training_section.h"
#include "gui/view/compare/compare_view.h"
#include "oracle/cost_of_training.h"
#include "oracle/report/format.h"

using namespace sibyl;
using namespace sibyl::gui;

namespace {

Scenario resnet(const std::string& devices) {
  Scenario scenario;
  scenario.model = "zoo:resnet18";
  scenario.cluster = "dgx-a100";
  scenario.set("--devices", devices);
  scenario.set("--batch", "64/device");
  return scenario;
}

AnswerPointer answered(const Scenario& scenario) {
  StudyReader reader;
  auto study = reader.read(scenario);
  if (!study) return std::make_shared<const Answer>(Answer{scenario, nullptr, Failure(study.error())});
  auto report = predict(*(*study)->graph, (*study)->strategy, *(*study)->cluster).map([&](Prediction p) {
    return PredictionReport{scenario.model, (*study)->cluster->name, std::move(p)};
  });
  Answer answer{scenario, *study, std::move(report)};
  answer.unchanged_cluster = (*study)->cluster;
  return std::make_shared<const Answer>(std::move(answer));
}

QString text(const std::string& utf8) { return QString::fromStdString(utf8); }

QStringList wordsOf(const QWidget& widget) {
  QStringList all;
  for (const QLabel* label : widget.findChildren<QLabel*>()) all << label->text();
  return all;
}

}  // namespace

class PartsTest : public QObject {
  Q_OBJECT

 private slots:
  // Twice the devices need half the time for an epoch, and as many device-hours at three times the price.
  void anEpochIsHeldAgainstThePinnedOne() {
    Scenario then = resnet("8"), now = resnet("16");
    then.device_hour_price = 1;
    now.device_hour_price = 3;
    now.epoch_samples = 1'281'167;
    const AnswerPointer before = answered(then), current = answered(now);
    QVERIFY(before->report && current->report);
    AnswerBar bar(nullptr);
    bar.showAnswer(current, before);
    const TrainingCost cost = cost_of_training(current->report->prediction, now.epoch_samples, 3);
    const CostRatios against = ratios(cost, cost_of_training(before->report->prediction, now.epoch_samples, 1));
    QVERIFY(against.time < 0.6 && against.cost > 2.5);
    const QStringList words = wordsOf(bar);
    QVERIFY2(words.contains("Epoch of 1,281,167"), qPrintable(words.join('\n')));
    QVERIFY2(words.contains(text(ratio_text(against.time))), qPrintable(words.join('\n')));
    QVERIFY2(words.contains(text(ratio_text(against.cost))), qPrintable(words.join('\n')));
    bar.showAnswer(current, nullptr);
    QVERIFY(!wordsOf(bar).contains(text(ratio_text(against.cost))));
  }

  // Where no epoch is named, of a million samples.
  void samplesThatNobodyNamesAreAMillion() {
    const AnswerPointer current = answered(resnet("8"));
    AnswerBar bar(nullptr);
    bar.showAnswer(current, nullptr);
    const TrainingCost cost = cost_of_training(current->report->prediction, 1'000'000, 0);
    const QStringList words = wordsOf(bar);
    QVERIFY2(words.contains("1,000,000 samples"), qPrintable(words.join('\n')));
    QVERIFY2(words.contains(text(to_string(cost.time))), qPrintable(words.join('\n')));
  }

  // What a device must have, and its share of what there is: the same that Compare shows.
  void memoryIsWhatCompareSays() {
    const AnswerPointer current = answered(resnet("8"));
    const Prediction& p = current->report->prediction;
    QVERIFY(p.memory.reserved > p.memory.total);
    AnswerBar bar(nullptr);
    bar.showAnswer(current, nullptr);
    const QString needed = text(to_string(p.memory.needed()));
    QVERIFY(wordsOf(bar).contains(needed));
    QVERIFY(wordsOf(bar).contains(
        QString("%1 of %2")
            .arg(text(percent(p.memory.needed() / p.memory_capacity)), text(to_string(p.memory_capacity)))));
    QString compared;
    for (const auto& row : comparison_table(*current->report, *current->report).rows)
      if (row[0].text == "memory") compared = text(row[1].text);
    QCOMPARE(compared, needed);
  }

  // In the library's words: what holds the step back and what would relieve it, all limits in the tooltip.
  void whatWouldRelieveItIsSaid() {
    Scenario scenario = resnet("64");
    scenario.set("--optimizer", "adam");
    for (const char* batch : {"1/device", "256/device"}) {
      scenario.set("--batch", batch);
      const AnswerPointer current = answered(scenario);
      const Prediction& p = current->report->prediction;
      AnswerBar bar(nullptr);
      bar.showAnswer(current, nullptr);
      QVERIFY(!p.bottleneck.relieved_by.empty());
      QCOMPARE(bar.sentence().toLower(),
               text(bottleneck_sentence(p.bottleneck) + "; " + relief_clause(p.bottleneck) + ".").toLower());
      QVERIFY(bar.sentence()[0].isUpper());
      QString tip;
      for (const QLabel* label : bar.findChildren<QLabel*>())
        if (label->text() == bar.sentence()) tip = label->toolTip();
      const Table limits = limits_table(p.limits);
      QVERIFY(limits.rows.size() > 1);
      for (const auto& row : limits.rows) QVERIFY2(tip.contains(text(row[4].text)), qPrintable(tip));
    }
  }

  // As `sibyl predict` says it, below what holds the step back; and nothing where all that is asked for counts.
  void whatIsAskedForInVainIsSaid() {
    Scenario scenario = resnet("64");
    AnswerBar bar(nullptr);
    for (const bool in_vain : {false, true}) {
      if (in_vain) scenario.set("--recompute", "selective");
      const AnswerPointer current = answered(scenario);
      const std::vector<std::string>& lines = current->report->prediction.without_effect;
      QCOMPARE(!lines.empty(), in_vain);
      bar.showAnswer(current, nullptr);
      QCOMPARE(bar.sentence().count("Has no effect here"), static_cast<qsizetype>(lines.size()));
      for (const std::string& line : lines) QVERIFY(bar.sentence().contains(text(line)));
    }
  }

  // A box that was left, or in which Return was pressed, begins another step of undo; so does a slider after a pause.
  void changesThatAreApartAreStepsOfTheirOwn() {
    Document document;
    TrainingSection section(document, nullptr);
    section.show();
    auto* pause = document.findChild<QTimer*>();
    auto* batch = section.findChild<QSpinBox*>("--batch");
    auto* slider = section.findChild<QSlider*>("batch slider");
    const QUndoStack& steps = document.undoStack();
    batch->setValue(64);
    batch->setValue(65);
    QCOMPARE(steps.count(), 1);
    QTest::keyClick(batch, Qt::Key_Return);
    batch->setValue(66);
    QCOMPARE(steps.count(), 2);
    pause->setInterval(0);
    QTest::keyClick(slider, Qt::Key_Right);
    QCOMPARE(steps.count(), 3);
    QTRY_VERIFY(!pause->isActive());
    QTest::keyClick(slider, Qt::Key_Right);
    QCOMPARE(steps.count(), 4);
    slider->setSliderDown(true);
    slider->setValue(slider->value() + 1);
    QVERIFY(!pause->isActive());  // however long it is held
    slider->setValue(slider->value() + 1);
    QCOMPARE(steps.count(), 5);
    slider->setSliderDown(false);
    QTest::keyClick(slider, Qt::Key_Left);
    QCOMPARE(steps.count(), 6);
  }

  // Nothing is made of it, and it stays to be corrected, until another scenario is shown.
  void anEpochThatCannotBeReadIsSaidAndStays() {
    Document document;
    TrainingSection section(document, nullptr);
    connect(&document, &Document::changed, &section, [&] { section.showScenario(document.current()); });
    section.show();
    section.showScenario(document.current());
    auto* epoch = section.findChild<QLineEdit*>("epoch");
    const auto* wrong = section.findChild<QLabel*>("epoch is wrong");
    const auto type = [&](const QString& typed) {
      epoch->setText(typed);
      QTest::keyClick(epoch, Qt::Key_Return);
    };
    type("1281167");
    QVERIFY(wrong->isHidden());
    QCOMPARE(document.current().epoch_samples, std::int64_t{1'281'167});
    for (const char* typed : {"many", "-3", "1.5", "1e30"}) {
      type(typed);
      QVERIFY2(!wrong->isHidden() && wrong->text().contains("300e9"), typed);
      QCOMPARE(document.current().epoch_samples, std::int64_t{1'281'167});
      section.findChild<QSpinBox*>("--batch")->stepUp();
      QCOMPARE(epoch->text(), QString(typed));
      QVERIFY(!wrong->isHidden());
    }
    type("300e9");
    QVERIFY(wrong->isHidden());
    QCOMPARE(document.current().epoch_samples, std::int64_t{300'000'000'000});
    QCOMPARE(epoch->text(), QString("300,000,000,000"));
    type("many");
    document.duplicate(0);
    QVERIFY(wrong->isHidden());
    QCOMPARE(epoch->text(), QString("300,000,000,000"));
    type("");
    QCOMPARE(document.current().epoch_samples, std::int64_t{0});
  }

  // Whatever becomes of the others, the one that was chosen is compared.
  void aChoiceOfScenariosStays() {
    Document document;
    document.rename(0, "A");
    for (const char* name : {"B", "C"}) {
      Scenario scenario;
      scenario.name = name;
      document.add(scenario, "add");
    }
    CompareView view(document, nullptr);
    QComboBox* second = nullptr;
    for (auto* choice : view.findChildren<QComboBox*>())
      if (choice->accessibleName() == "Second scenario") second = choice;
    QVERIFY(second != nullptr);
    second->setCurrentIndex(3);
    QCOMPARE(second->currentText(), QString("C"));
    document.remove(0);
    QCOMPARE(second->currentText(), QString("C"));
    QCOMPARE(view.viewState()["second"].toInt(), 1);
    document.undoStack().undo();
    QCOMPARE(second->currentText(), QString("C"));
    document.rename(2, "D");
    QCOMPARE(second->currentText(), QString("D"));
    document.remove(2);
    QCOMPARE(second->currentIndex(), 0);
  }

  void whatIsUnpinnedMeanwhileIsNotShown() {
    Document document;
    document.change("", [](Scenario& s) { s = resnet("8"); });
    document.pin(0);
    CompareView view(document, nullptr);
    view.show();
    QVERIFY(view.busy());
    document.unpin();
    QTRY_VERIFY_WITH_TIMEOUT(!view.busy(), 120'000);
    QVERIFY2(view.verdict().contains("Nothing is pinned"), qPrintable(view.verdict()));
    QVERIFY(!view.table());
  }

  // However little height is asked for: the picture has what one has that is higher than all of it.
  void aPictureOfAComparisonHasAllRows() {
    Document document;
    document.change("", [](Scenario& s) { s = resnet("8"); });
    document.pin(0);
    document.change("", [](Scenario& s) { s.set("--batch", "32/device"); });
    CompareView view(document, nullptr);
    view.prepare();
    QTRY_VERIFY_WITH_TIMEOUT(!view.busy() && view.table(), 120'000);
    QTemporaryDir folder;
    const auto picture = [&](FigureFormat format, int height) {
      const QString path = folder.filePath("compare" + ending(format));
      return exportFigure(view, path, format, {800, height}) ? QImage(path) : QImage();
    };
    constexpr int twice = 2;  // a PNG has twice as many pixels
    const QImage small = picture(FigureFormat::png, 50), tall = picture(FigureFormat::png, 3000);
    QCOMPARE(small.width(), twice * 800);
    QCOMPARE(tall.height(), twice * 3000);
    QVERIFY(small.height() > twice * 50 && small.height() < tall.height());
    QVERIFY(small == tall.copy(small.rect()));
    QImage paper = tall.copy(0, small.height(), tall.width(), tall.height() - small.height());
    const QImage rest = paper;
    paper.fill(view.palette().color(QPalette::Base));
    QVERIFY(rest == paper);
  }

  // The load of a fabric's links is asked for where there is a fabric.
  void aFabricsLinksHaveALoad() {
    QTemporaryDir folder;
    const std::string file = folder.filePath("ring.yaml").toStdString();
    std::ofstream(file) << "name: ring\ncalibration: a100-sxm-80gb\nnodes: 8\ndevices_per_node: 1\n"
                           "device_link: {kind: pcie, bandwidth: 25GB/s, latency: 1us}\n"
                           "fabric: {kind: ring, size: 8, background: 0.1, link: {bandwidth: 1GB/s, latency: 1us}}\n";
    Document document;
    ClusterSection section(document, nullptr);
    section.show();
    auto* load = section.findChild<BackgroundBox*>("--set fabric.background");
    auto* nics = section.findChild<BackgroundBox*>("--set nic.background");
    const auto show = [&] {
      section.showScenario(document.current());
      section.showAnswer(*answered(document.current()));
    };
    document.change("", [](Scenario& s) { s = resnet("8"); });
    show();
    QVERIFY(!load->isVisible() && nics->isEnabled() == (answered(document.current())->study->cluster->nodes > 1));
    document.change("", [&](Scenario& s) { s.cluster = file; });
    show();
    const AnswerPointer quiet = answered(document.current());
    QVERIFY2(quiet->report, quiet->report ? "" : to_string(quiet->report.error()).c_str());
    QVERIFY(load->isVisible() && load->isEnabled());
    QVERIFY(!nics->isEnabled());  // its links end at the devices
    QVERIFY2(load->text().startsWith("10 % "), qPrintable(load->text()));
    load->setValue(90);
    QCOMPARE(document.current().change("fabric.background"), std::optional<std::string>("0.9"));
    const AnswerPointer busy = answered(document.current());
    QVERIFY2(busy->report, busy->report ? "" : to_string(busy->report.error()).c_str());
    QVERIFY(busy->report->prediction.step_time > quiet->report->prediction.step_time);
    document.change("", [](Scenario& s) { s.cluster = "dgx-a100"; });  // where it can be taken back
    section.showScenario(document.current());
    QVERIFY(load->isVisible());
  }
};

QTEST_MAIN(PartsTest)
#include "parts_test.moc"
