// The graph as it is used: folded, opened, pointed at, zoomed, exported.
#include <QSignalSpy>
#include <QTextBrowser>
#include <set>

#include "gui/view/canvas/graph_view.h"
#include "tests/gui/canvas/answers.h"

namespace sibyl::gui {

using namespace test;

class GraphViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    QVERIFY2(data_parallel()->report, data_parallel()->report ? "" : data_parallel()->report.error().message.c_str());
    QVERIFY2(pipeline()->report, pipeline()->report ? "" : pipeline()->report.error().message.c_str());
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

  // Four stages are joined by three sends at least; where two tensors cross there are two.
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
    QVERIFY(sends >= 3 && sends <= 6);
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

  void graphStateIsKept() {
    GraphView view, other;
    settle(view, pipeline());
    view.canvas()->place(2, QPointF(-30, 40));
    other.restoreViewState(view.viewState());
    QCOMPARE(other.viewState(), view.viewState());  // though nobody has looked yet: a session may be saved then
    settle(other, pipeline());
    QCOMPARE(other.viewState(), view.viewState());
    other.restoreViewState({});
    QCOMPARE(other.canvas()->scale(), view.canvas()->scale());
  }

  void graphIsExported() {
    GraphView view;
    settle(view, pipeline());
    QVERIFY(paintsSomething(view));
    const auto table = view.table();
    QCOMPARE(table->rows.size(), pipeline()->study->graph->operations().size());
    QCOMPARE(table->rows[0].size(), table->columns.size());
  }

  void errorsAreSentences() {
    const AnswerPointer wrong = answer("small-cnn", {{"--devices", "4096"}, {"--batch", "4096"}});
    QVERIFY(!wrong->report);
    GraphView graph;
    settle(graph, wrong);
    QVERIFY(graph.message().contains("4096"));
    QVERIFY(!graph.table().has_value());
  }
};

}  // namespace sibyl::gui

QTEST_MAIN(sibyl::gui::GraphViewTest)
#include "graph_view_test.moc"
