// Both views as they are used: pointed at, zoomed, searched, exported.
#include <QImage>
#include <QPainter>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTextBrowser>
#include <fstream>

#include "gui/view/canvas/graph_view.h"
#include "gui/view/canvas/timeline_view.h"
#include "gui/view/canvas/views.h"
#include "oracle/trace.h"
#include "tests/gui/canvas/answers.h"

namespace sibyl::gui {
namespace {

using test::answer;
using test::settle;

AnswerPointer data_parallel() {
  static const AnswerPointer made = answer("small-cnn", {{"--devices", "8"}, {"--batch", "8/device"}});
  return made;
}
AnswerPointer pipeline() {
  static const AnswerPointer made = answer("gpt2", {{"--devices", "4"},
                                                    {"--parallel", "pipeline=4"},
                                                    {"--batch", "8"},
                                                    {"--micro-batches", "8"},
                                                    {"--dim", "seq=128"}});
  return made;
}

void wheel(QWidget* widget, const QPointF& at, int notches, Qt::KeyboardModifiers keys) {
  QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, keys, Qt::NoScrollPhase, false);
  QApplication::sendEvent(widget, &event);
}

// A figure is not of one colour.
bool paintsSomething(View& view) {
  QImage image(600, 400, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  view.renderFigure(painter, image.size());
  painter.end();
  std::set<QRgb> colours;
  for (int y = 0; y < image.height(); y += 3)
    for (int x = 0; x < image.width(); x += 3) colours.insert(image.pixel(x, y));
  return colours.size() > 5;
}

double seconds(const Timeline& timeline, const TimelineArea& area, const std::string& category) {
  for (const CategoryTotal& total : timeline.totals(area))
    if (timeline.categories()[total.category] == category) return total.seconds;
  return 0;
}

}  // namespace

class CanvasViewsTest : public QObject {
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
    QTest::mousePress(canvas->viewport(), Qt::LeftButton, Qt::ShiftModifier, {200, top});
    QMouseEvent move(QEvent::MouseMove, QPointF(900, top), canvas->viewport()->mapToGlobal(QPointF(900, top)),
                     Qt::NoButton, Qt::LeftButton, Qt::ShiftModifier);
    QApplication::sendEvent(canvas->viewport(), &move);
    QTest::mouseRelease(canvas->viewport(), Qt::LeftButton, Qt::ShiftModifier, {900, top});
    QVERIFY(canvas->look().area.has_value());
    QCOMPARE(canvas->look().area->first_row, canvas->look().area->last_row);
    QVERIFY(totals->isVisible() && totals->rowCount() >= 2);
    QTest::keyClick(canvas, Qt::Key_Escape);
    QVERIFY(!totals->isVisible());
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
    settle(other, data_parallel());
    QCOMPARE(other.viewState(), view.viewState());
    QCOMPARE(other.canvas()->matches()->places().size(), view.canvas()->matches()->places().size());
  }

  void errorsAreSentences() {
    const AnswerPointer wrong = answer("small-cnn", {{"--devices", "4096"}, {"--batch", "4096"}});
    QVERIFY(!wrong->report);
    TimelineView timeline;
    settle(timeline, wrong);
    QVERIFY(timeline.message().contains("4096"));
    GraphView graph;
    settle(graph, wrong);
    QVERIFY(graph.message().contains("4096"));
    QVERIFY(!graph.table().has_value());
  }

  void everyOperationIsInTheGraphOnce() {
    GraphView view;
    settle(view, pipeline());
    const std::size_t operations = pipeline()->study->graph->operations().size();
    const auto count = [&] {
      std::multiset<OperationId> seen;
      for (const GraphNode& node : view.canvas()->scene().nodes)
        seen.insert(node.operations.begin(), node.operations.end());
      return std::pair(seen.size(), std::set<OperationId>(seen.begin(), seen.end()).size());
    };
    QCOMPARE(count(), std::pair(operations, operations));
    QVERIFY(view.canvas()->scene().nodes.size() < operations / 3);  // folded
    view.pointAtOperation(QString::fromStdString(view.canvas()->model()->name(OperationId{operations / 2})));
    QCOMPARE(count(), std::pair(operations, operations));
  }

  // Four stages are joined by three sends.
  void stagesAreJoinedBySends() {
    GraphView view;
    settle(view, pipeline());
    std::set<int> stages;
    int sends = 0;
    for (const GraphNode& node : view.canvas()->scene().nodes) {
      stages.insert(node.stage);
      sends += node.kind == GraphNode::Kind::transfer ? 1 : 0;
    }
    QCOMPARE(stages, (std::set<int>{0, 1, 2, 3}));
    QCOMPARE(sends, 3);
    for (const LayoutEdge& edge : view.canvas()->scene().edges) QVERIFY(edge.from < edge.to);
  }

  void doubleClickOpensABlock() {
    GraphView view;
    view.resize(1000, 600);
    view.show();
    settle(view, pipeline());
    GraphCanvas* canvas = view.canvas();
    const std::size_t nodes = canvas->scene().nodes.size();
    std::size_t block = 0;
    while (!canvas->scene().nodes[block].opens()) ++block;
    canvas->select(block);
    const OperationId inside = canvas->scene().nodes[block].operations.front();
    QTest::mouseDClick(canvas, Qt::LeftButton, {}, canvas->pointOf(block).toPoint());
    QVERIFY(canvas->scene().nodes.size() > nodes);
    while (canvas->scene().nodes[canvas->scene().node_of(inside)].opens()) QTest::keyClick(canvas, Qt::Key_Return);
    QSignalSpy pointed(&view, &View::operationPointedAt);
    const QPoint at = canvas->pointOf(canvas->scene().node_of(inside)).toPoint();
    QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
    QCOMPARE(pointed.count(), 1);
    QCOMPARE(pointed[0][0].toString().toStdString(), canvas->model()->name(inside));
    QVERIFY(view.findChild<QTextBrowser*>()->toPlainText().contains(pointed[0][0].toString()));
  }

  void graphZoomsAtThePointer() {
    GraphView view;
    view.resize(1000, 600);
    view.show();
    settle(view, pipeline());
    GraphCanvas* canvas = view.canvas();
    const QPointF at(300, 200);
    const QPointF under = (at - canvas->origin()) / canvas->scale();
    const double before = canvas->scale();
    wheel(canvas, at, 1, Qt::ControlModifier);
    QVERIFY(canvas->scale() > before);
    const QPointF now = (at - canvas->origin()) / canvas->scale();
    QVERIFY((now - under).manhattanLength() < 1e-6);
    QTest::keyClick(canvas, Qt::Key_F);
    for (std::size_t n = 0; n < canvas->scene().nodes.size(); ++n)
      QVERIFY(QRectF(canvas->rect()).contains(canvas->pointOf(n)));
  }

  void graphIsExported() {
    GraphView view;
    settle(view, pipeline());
    QVERIFY(paintsSomething(view));
    const auto table = view.table();
    QCOMPARE(table->rows.size(), pipeline()->study->graph->operations().size());
    QCOMPARE(table->rows[0].size(), table->columns.size());
  }

  void hiddenViewsWait() {
    TimelineView timeline;
    timeline.showAnswer(data_parallel(), nullptr);
    QVERIFY(!timeline.busy());
    timeline.show();
    QTRY_VERIFY(timeline.canvas()->timeline());
  }
};

}  // namespace sibyl::gui

QTEST_MAIN(sibyl::gui::CanvasViewsTest)
#include "canvas_views_test.moc"
