// The timeline as it is used: pointed at, zoomed, searched, an area of it totalled, exported.
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QToolButton>
#include <fstream>
#include <map>

#include "gui/view/canvas/timeline_text.h"
#include "gui/view/canvas/timeline_totals.h"
#include "gui/view/canvas/timeline_view.h"
#include "gui/view/canvas/views.h"
#include "oracle/trace/trace.h"
#include "tests/gui/canvas/answers.h"

namespace sibyl::gui {
namespace {

using namespace test;

// From one point of the canvas to another.
void drag(TimelineCanvas& canvas, const QPoint& from, const QPoint& to, Qt::KeyboardModifiers keys) {
  QTest::mousePress(canvas.viewport(), Qt::LeftButton, keys, from);
  QMouseEvent move(QEvent::MouseMove, to, canvas.viewport()->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, keys);
  QApplication::sendEvent(canvas.viewport(), &move);
  QTest::mouseRelease(canvas.viewport(), Qt::LeftButton, keys, to);
}

double seconds(const Timeline& timeline, const TimelineArea& area, const std::string& category) {
  for (const CategoryTotal& total : timeline.totals(area))
    if (timeline.categories()[total.category] == category) return total.seconds;
  return 0;
}

}  // namespace

class TimelineViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    QVERIFY2(data_parallel()->report, data_parallel()->report ? "" : data_parallel()->report.error().message.c_str());
    QVERIFY2(pipeline()->report, pipeline()->report ? "" : pipeline()->report.error().message.c_str());
  }

  void viewsAreNamed() {
    QWidget parent;
    const std::vector<View*> views = canvasViews(&parent);
    QCOMPARE(views.size(), std::size_t{2});
    QCOMPARE(views[0]->key(), QStringLiteral("timeline"));
    QCOMPARE(views[1]->key(), QStringLiteral("graph"));
    for (View* view : views) QVERIFY(!view->accessibleName().isEmpty() && !view->title().isEmpty());
  }

  // What the area of the whole step holds is what the prediction says of one rank.
  void totalsAreThePredictions() {
    TimelineView view;
    settle(view, data_parallel());
    const Timeline& timeline = *view.canvas()->timeline();
    const TimelineArea all{{0, timeline.end()}, 0, timeline.rows().size() - 1};
    const TimeBreakdown& parts = data_parallel()->report->prediction.breakdown;
    const double step = data_parallel()->report->prediction.step_time.value();
    QVERIFY(std::abs(timeline.end() - step) < 1e-9);
    const auto equal = [](double a, Seconds b) { return std::abs(a - b.value()) < 1e-9; };
    QVERIFY(equal(seconds(timeline, all, "forward"), parts.forward));
    QVERIFY(equal(seconds(timeline, all, "optimizer"), parts.optimizer));
    // Backward and messages take longer while they run beside each other.
    QVERIFY(seconds(timeline, all, "backward") > 0.5 * parts.backward.value());
    QVERIFY(seconds(timeline, all, "communication") >= parts.communication_total.value() - 1e-9);
  }

  void wheelAndKeysZoomAndMove() {
    TimelineView view;
    view.resize(1000, 500);
    view.show();
    settle(view, pipeline());
    TimelineCanvas* canvas = view.canvas();
    const TimeWindow all = canvas->window();
    QVERIFY(canvas->showsAll());
    wheel(canvas->viewport(), {600, 100}, 1, Qt::ControlModifier);
    TimeWindow nearer = canvas->window();
    QVERIFY(std::abs(nearer.width() - all.width() / 1.2) < 1e-9 * all.width());
    QVERIFY(nearer.begin > all.begin && nearer.end < all.end);
    wheel(canvas->viewport(), {600, 100}, 4, Qt::ControlModifier);
    nearer = canvas->window();
    QTest::keyClick(canvas, Qt::Key_D);
    QVERIFY(std::abs(canvas->window().width() - nearer.width()) < 1e-9 && canvas->window().begin > nearer.begin);
    QTest::keyClick(canvas, Qt::Key_A);
    QVERIFY(std::abs(canvas->window().begin - nearer.begin) < 1e-12);
    QTest::keyClick(canvas, Qt::Key_W);
    QVERIFY(canvas->window().width() < nearer.width());
    QTest::keyClick(canvas, Qt::Key_S);
    QVERIFY(std::abs(canvas->window().width() - nearer.width()) < 1e-12);
    QTest::keyClick(canvas, Qt::Key_F);
    QCOMPARE(canvas->window(), all);
    QVERIFY(canvas->verticalScrollBar()->maximum() > 0);
    wheel(canvas->viewport(), {600, 100}, -1, Qt::NoModifier);
    QVERIFY(canvas->verticalScrollBar()->value() > 0);
    QCOMPARE(canvas->window(), all);
  }

  void draggingMoves() {
    TimelineView view;
    view.resize(1000, 500);
    view.show();
    settle(view, pipeline());
    TimelineCanvas* canvas = view.canvas();
    canvas->setWindow({0, canvas->timeline()->end() / 4});
    const TimeWindow before = canvas->window();
    QTest::mousePress(canvas->viewport(), Qt::LeftButton, {}, {700, 200});
    QTest::mouseMove(canvas->viewport(), {500, 200});
    QTest::mouseRelease(canvas->viewport(), Qt::LeftButton, {}, {500, 200});
    QVERIFY(canvas->window().begin > before.begin);
    QVERIFY(std::abs(canvas->window().width() - before.width()) < 1e-12);
  }

  void hoverFindsTheSpanAndClickPointsAtItsOperation() {
    TimelineView view;
    view.resize(1000, 500);
    view.show();
    settle(view, data_parallel());
    TimelineCanvas* canvas = view.canvas();
    QSignalSpy pointed(&view, &View::operationPointedAt);
    SpanPlace longest;
    for (std::size_t i = 0; i < canvas->timeline()->rows()[0].spans.size(); ++i) {
      const auto length = [&](std::size_t s) {
        const TraceSpan& span = canvas->timeline()->at({0, s});
        return operation_of(span).empty() ? Seconds{} : span.end - span.start;
      };
      if (length(i) > length(longest.span)) longest.span = i;
    }
    const QPoint at = canvas->pointOf(longest);
    QTest::mouseMove(canvas->viewport(), at);
    QTRY_COMPARE(canvas->look().hovered, std::optional(longest));
    QTest::mouseClick(canvas->viewport(), Qt::LeftButton, {}, at);
    QCOMPARE(pointed.count(), 1);
    QCOMPARE(pointed[0][0].toString().toStdString(), operation_of(canvas->timeline()->at(longest)));
    QTest::mouseMove(canvas->viewport(), {5, 5});
    QTRY_VERIFY(!canvas->look().hovered);
  }

  void shiftDragSelectsAnArea() {
    TimelineView view;
    view.resize(1000, 500);
    view.show();
    settle(view, data_parallel());
    TimelineCanvas* canvas = view.canvas();
    auto* totals = view.findChild<QTableWidget*>();
    QVERIFY(!totals->isVisible());
    const int top = canvas->pointOf({0, 0}).y();
    drag(*canvas, {200, top}, {900, top}, Qt::ShiftModifier);
    QVERIFY(canvas->look().area.has_value());
    QCOMPARE(canvas->look().area->first_row, canvas->look().area->last_row);
    QVERIFY(totals->isVisible() && totals->rowCount() >= 2);
    QTest::keyClick(canvas, Qt::Key_Escape);
    QVERIFY(!totals->isVisible());
  }

  // Whoever does not know of Shift finds the button; and what was selected is let go of with another.
  void dragSelectsWhereTheButtonSaysSo() {
    TimelineView view;
    view.resize(1000, 500);
    view.show();
    settle(view, data_parallel());
    TimelineCanvas* canvas = view.canvas();
    const TimeWindow before = canvas->window();
    auto* select = view.findChild<QToolButton*>("select an area");
    select->click();
    const int top = canvas->pointOf({0, 0}).y();
    drag(*canvas, {200, top}, {900, top}, Qt::NoModifier);
    QVERIFY(canvas->look().area.has_value());
    QCOMPARE(canvas->window(), before);
    view.findChild<TimelineTotals*>()->findChild<QToolButton*>()->click();
    QVERIFY(!canvas->look().area.has_value());
    select->click();
    canvas->setWindow({0, canvas->timeline()->end() / 4});
    drag(*canvas, {700, top}, {500, top}, Qt::NoModifier);
    QVERIFY(!canvas->look().area.has_value());
  }

  // Of all streams together and of each; all times of an area and what is left of it are its duration times its
  // streams.
  void anAreaIsTotalledByStreamAndCategory() {
    TimelineTotals totals(nullptr);
    TimelineView view;
    settle(view, data_parallel());
    const Timeline& timeline = *view.canvas()->timeline();
    const TimelineArea area{{timeline.end() / 4, timeline.end() / 2}, 0, 1};
    totals.display(&timeline, area);
    auto* table = totals.findChild<QTableWidget*>();
    std::map<QString, double> shares;
    QString stream;  // stands in the first of its rows
    for (int row = 0; row < table->rowCount(); ++row) {
      if (const QString named = table->item(row, 0)->text(); !named.isEmpty()) stream = named;
      shares[stream] += table->item(row, 3)->text().chopped(2).toDouble();
    }
    QCOMPARE(shares.size(), std::size_t{3});
    for (const auto& [name, share] : shares)
      QVERIFY2(std::abs(share - 100) < 0.5, qPrintable(QString("%1: %2").arg(name).arg(share)));
    QVERIFY(shares.contains(QString::fromStdString(timeline.groups()[0].title + ", " + timeline.rows()[1].title)));
    const CategoryTotal most = timeline.totals(area)[0];
    QCOMPARE(table->item(0, 1)->text(), categoryTitle(timeline.categories()[most.category]));
    QCOMPARE(table->item(0, 2)->text(), timeText(most.seconds));
    totals.display(&timeline, {});
    QVERIFY(totals.isHidden());
  }

  void searchLightsAndSteps() {
    TimelineView view;
    settle(view, data_parallel());
    view.search("backward", false);
    const std::size_t all = view.canvas()->matches()->places().size();
    QVERIFY(all > 3);
    view.search("^conv.*(forward|backward)$", true);
    const std::size_t some = view.canvas()->matches()->places().size();
    QVERIFY(some > 0);
    view.step(1);
    const SpanPlace first = *view.canvas()->look().selected;
    QCOMPARE(first, view.canvas()->matches()->places()[0]);
    view.step(1);
    QVERIFY(*view.canvas()->look().selected != first);
    view.step(-1);
    view.step(-1);
    QCOMPARE(*view.canvas()->look().selected, view.canvas()->matches()->places().back());
    view.search("(", true);  // no expression
    QVERIFY(!view.canvas()->matches());
  }

  // A real step, here the predicted one with its processes called measured, lies below the predicted one.
  void realStepsLieBesidePredictedOnes() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("real.json").toStdString();
    const Study& study = *data_parallel()->study;
    auto traced = trace_step(*study.graph, study.strategy, *study.cluster);
    QVERIFY(traced.has_value());
    std::vector<std::string> events;
    for (TraceProcess process : traced->processes) {
      process.source = TraceSource::measured;
      process.name = "rank 0, measured";
      events.push_back(trace_events(process));
    }
    std::ofstream(path) << trace_file(events, {});
    TimelineView view;
    settle(view, data_parallel());
    const std::size_t rows = view.canvas()->timeline()->rows().size();
    view.showMeasured(QString::fromStdString(path));
    view.prepare();
    QTRY_VERIFY(!view.busy());
    const Timeline& both = *view.canvas()->timeline();
    QCOMPARE(both.rows().size(), 2 * rows);
    QCOMPARE(both.groups()[1].title, std::string("rank 0, measured"));
    QCOMPARE(both.rows()[0].spans.size(), both.rows()[rows].spans.size());
    view.showMeasured(folder.filePath("missing.json"));
    view.prepare();
    QTRY_VERIFY(!view.busy());
    QCOMPARE(view.canvas()->timeline()->rows().size(), rows);  // the prediction is still there
  }

  // Though it is at work when the view is hidden, and no newer one is asked for then.
  void aTimelineIsOfItsAnswer() {
    TimelineView view;
    view.show();
    view.showAnswer(pipeline(), nullptr);
    view.hide();
    view.showAnswer(data_parallel(), nullptr);
    QTRY_VERIFY(!view.busy());
    view.show();
    QTRY_VERIFY(!view.busy() && view.canvas()->timeline());
    const double step = data_parallel()->report->prediction.step_time.value();
    QVERIFY(std::abs(view.canvas()->timeline()->end() - step) < 1e-9);
  }

  void aRealStepIsReadAgain() {
    const QTemporaryDir folder;
    const std::string path = folder.filePath("step.json").toStdString();
    const auto write = [&](double seconds) {
      std::ofstream(path)
          << R"({"traceEvents": [{"ph": "X", "name": "fc forward", "cat": "forward", "pid": 1, "tid": 1,)"
          << R"("ts": 0, "dur": )" << seconds * 1e6 << "}]}";
    };
    write(1);
    TimelineView view;
    settle(view, data_parallel());
    view.showMeasured(QString::fromStdString(path));
    settle(view, data_parallel());
    QCOMPARE(view.canvas()->timeline()->end(), 1.0);
    write(2);
    settle(view, data_parallel());
    QCOMPARE(view.canvas()->timeline()->end(), 1.0);
    view.forget();
    settle(view, data_parallel());
    QCOMPARE(view.canvas()->timeline()->end(), 2.0);
  }

  void timelineIsExported() {
    TimelineView view;
    settle(view, data_parallel());
    QVERIFY(paintsSomething(view));
    const auto table = view.table();
    QVERIFY(table.has_value());
    QCOMPARE(table->rows.size(), view.canvas()->timeline()->size());
    QCOMPARE(table->rows[0].size(), table->columns.size());
  }

  void timelineStateIsKept() {
    TimelineView view, other;
    settle(view, data_parallel());
    view.search("conv", false);
    view.canvas()->setWindow({0, view.canvas()->timeline()->end() / 3});
    other.restoreViewState(view.viewState());
    QCOMPARE(other.viewState(), view.viewState());  // though nobody has looked yet: a session may be saved then
    settle(other, data_parallel());
    QCOMPARE(other.viewState(), view.viewState());
    QCOMPARE(other.canvas()->matches()->places().size(), view.canvas()->matches()->places().size());
  }

  void hiddenViewsWait() {
    TimelineView timeline;
    timeline.showAnswer(data_parallel(), nullptr);
    QVERIFY(!timeline.busy());
    timeline.show();
    QTRY_VERIFY(timeline.canvas()->timeline());
  }

  void errorsAreSentences() {
    const AnswerPointer wrong = answer("small-cnn", {{"--devices", "4096"}, {"--batch", "4096"}});
    QVERIFY(!wrong->report);
    TimelineView timeline;
    settle(timeline, wrong);
    QVERIFY(timeline.message().contains("4096"));
  }
};

}  // namespace sibyl::gui

QTEST_MAIN(sibyl::gui::TimelineViewTest)
#include "timeline_view_test.moc"
