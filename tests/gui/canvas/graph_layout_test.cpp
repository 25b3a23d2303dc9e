#include "gui/view/canvas/graph_layout.h"

#include <QTest>
#include <random>
#include <set>

namespace sibyl::gui {
namespace {

std::vector<LayoutBox> boxes(std::size_t count) {
  std::vector<LayoutBox> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back({0, 0, 60.0 + 10.0 * static_cast<double>(i % 5), 20.0 + 4.0 * static_cast<double>(i % 3)});
  return result;
}

// Every node but the first follows one before it, and some others.
std::vector<LayoutEdge> some_edges(std::size_t nodes, unsigned seed) {
  std::mt19937 random(seed);
  std::set<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t to = 1; to < nodes; ++to)
    for (unsigned n = 0; n < 1 + random() % 2; ++n)
      edges.insert({(to - 1) - random() % std::min<std::size_t>(to, 6), to});
  std::vector<LayoutEdge> result;
  for (const auto& [from, to] : edges) result.push_back({from, to});
  return result;
}

bool overlap(const LayoutBox& a, const LayoutBox& b) {
  return a.x < b.x + b.width - 1e-6 && b.x < a.x + a.width - 1e-6 && a.y < b.bottom() - 1e-6 && b.y < a.bottom() - 1e-6;
}

}  // namespace

class GraphLayoutTest : public QObject {
  Q_OBJECT

 private slots:
  void chainStandsStraight() {
    const GraphLayout layout = lay_out({{0, 0, 50, 20}, {0, 0, 80, 20}, {0, 0, 50, 20}}, {{0, 1}, {1, 2}});
    QCOMPARE(layout.layers, (std::vector<std::size_t>{0, 1, 2}));
    QVERIFY(std::abs(layout.boxes[0].middle() - layout.boxes[1].middle()) < 1e-6);
    QVERIFY(std::abs(layout.boxes[2].middle() - layout.boxes[1].middle()) < 1e-6);
    QCOMPARE(layout.width, 80.0);
    QCOMPARE(layout.height, 3 * 20.0 + 2 * 40.0);
  }

  // 0 leads to 1, 2 and, past them, to 3: the long edge has a place of its own in their layer.
  void longEdgesPassBesideNodes() {
    const GraphLayout layout = lay_out(boxes(4), {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}});
    QCOMPARE(layout.layers, (std::vector<std::size_t>{0, 1, 1, 2}));
    const auto& route = layout.routes[4];
    QCOMPARE(route.size(), std::size_t{4});
    for (const std::size_t node : {1U, 2U})
      QVERIFY(route[1].x < layout.boxes[node].x || route[1].x > layout.boxes[node].x + layout.boxes[node].width);
  }

  // What is needed late stands late.
  void sourcesStandAboveTheirFirstReader() {
    const GraphLayout layout = lay_out(boxes(4), {{0, 1}, {1, 3}, {2, 3}});
    QCOMPARE(layout.layers, (std::vector<std::size_t>{0, 1, 1, 2}));
  }

  void crossingsAreUndone() {
    // 0 -> 3, 1 -> 2: ordered as given, they cross.
    const GraphLayout layout = lay_out(boxes(4), {{0, 3}, {1, 2}});
    const auto left = [&](std::size_t a, std::size_t b) { return layout.boxes[a].x < layout.boxes[b].x; };
    QCOMPARE(left(0, 1), left(3, 2));
  }

  void anyGraphIsInOrder() {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::size_t nodes = 5 + 7 * seed;
      const std::vector<LayoutEdge> edges = some_edges(nodes, seed);
      const GraphLayout layout = lay_out(boxes(nodes), edges);
      QCOMPARE(layout.boxes.size(), nodes);
      for (std::size_t a = 0; a < nodes; ++a) {
        QVERIFY(layout.boxes[a].x >= -1e-6 && layout.boxes[a].x + layout.boxes[a].width <= layout.width + 1e-6);
        for (std::size_t b = a + 1; b < nodes; ++b) QVERIFY(!overlap(layout.boxes[a], layout.boxes[b]));
      }
      for (std::size_t e = 0; e < edges.size(); ++e) {
        QVERIFY(layout.boxes[edges[e].from].bottom() < layout.boxes[edges[e].to].y);
        for (std::size_t i = 1; i < layout.routes[e].size(); ++i)
          QVERIFY(layout.routes[e][i].y >= layout.routes[e][i - 1].y);
      }
      const GraphLayout again = lay_out(boxes(nodes), edges);
      for (std::size_t a = 0; a < nodes; ++a) QCOMPARE(again.boxes[a].x, layout.boxes[a].x);
    }
  }

  void nothingIsLaidOut() { QCOMPARE(lay_out({}, {}).boxes.size(), std::size_t{0}); }
};

}  // namespace sibyl::gui

QTEST_APPLESS_MAIN(sibyl::gui::GraphLayoutTest)
#include "graph_layout_test.moc"
