// What all views made of charts have in common: figures, names, errors, giving up, room.
#include <QAbstractButton>
#include <QHeaderView>

#include "gui/view/charts/plot.h"
#include "gui/view/charts/views.h"
#include "tests/gui/charts/helpers.h"
#include "tests/gui/charts/tests.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

class ChartViewsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    for (const AnswerPointer& answer : {lenet_, pipeline_})
      QVERIFY2(answer->report, answer->report ? "" : to_string(answer->report.error()).c_str());
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

  // Half of it, and what nobody knows the length of: to and fro.
  void aJobTellsHowFarItIs() {
    LatestSignals job;
    const std::unique_ptr<QProgressBar> bar(makeProgress(job, "job", nullptr));
    emit job.progressed(5, 10);
    QCOMPARE(2 * bar->value(), bar->maximum());
    emit job.progressed(10, 10);
    QCOMPARE(bar->maximum(), 0);
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

  void columnsFillTheirTable() {
    QCOMPARE(columnWidths({100, 300}, 160, 800), (std::vector<int>{200, 600}));
    QCOMPARE(columnWidths({100, 300}, 160, 399), (std::vector<int>{100, 299}));  // the widest is cut
    QCOMPARE(columnWidths({100, 300, 250}, 160, 500), (std::vector<int>{100, 200, 200}));
    QCOMPARE(columnWidths({100, 300, 900}, 160, 400),
             (std::vector<int>{100, 300, 320}));  // scrolled, and so hardly cut
    QCOMPARE(columnWidths({100, 300, 900}, 160, 420), (std::vector<int>{100, 160, 160}));
    // Of five the first three are to be in sight: what is widest of them gives way, and the others keep theirs.
    QCOMPARE(columnWidths({100, 300, 200, 250, 90}, 160, 500, 3), (std::vector<int>{100, 200, 200, 250, 90}));
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      view->resize(1500, 800);
      view->show();
      settle(*view, pipeline_);
      for (const WideTable* table : view->findChildren<WideTable*>())
        for (const int width : {1500, 1900}) {
          view->resize(width, 800);
          QTest::qWait(1);
          QVERIFY2(table->horizontalHeader()->length() == table->viewport()->width(),
                   qPrintable(QString("%1: %2 of %3")
                                  .arg(view->key())
                                  .arg(table->horizontalHeader()->length())
                                  .arg(table->viewport()->width())));
        }
    }
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
      settle(*view, lenet_);
      QVERIFY(view->table());
      settle(*view, wrong);
      QVERIFY2(!view->table(), qPrintable(view->key()));  // of the question before
      QVERIFY2(said(*view).contains(sentence(wrong->report.error())), qPrintable(view->key()));
      QVERIFY(coloursOf(*view, {400, 300}) > 1);
      settle(*view, lenet_);
      QVERIFY(!said(*view).contains(sentence(wrong->report.error())));
    }
  }

  // It is of an answer that is not shown any more.
  void aJobEndsAfterAnErrorCame() {
    const AnswerPointer wrong = answered(scenario("zoo:lenet", {{"--devices", "8"}, {"--batch", "7"}}));
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      view->show();
      view->showAnswer(pipeline_, lenet_);
      view->showAnswer(wrong, nullptr);
      QTRY_VERIFY_WITH_TIMEOUT(!view->busy(), 120000);
      QVERIFY2(said(*view).contains(sentence(wrong->report.error())), qPrintable(view->key()));
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

 private:
  AnswerPointer lenet_ = lenetAnswer(), pipeline_ = pipelineAnswer();
};

std::unique_ptr<QObject> chartViewsTest() { return std::make_unique<ChartViewsTest>(); }

#include "views_test.moc"
