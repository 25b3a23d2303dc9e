#include "gui/view/canvas/graph_painter.h"

#include <QFontMetricsF>
#include <QPainterPath>
#include <algorithm>

#include "gui/view/colours.h"

namespace sibyl::gui {
namespace {

QRectF rect(const LayoutBox& box) { return {box.x, box.y, box.width, box.height}; }

class GraphPainter {
 public:
  GraphPainter(QPainter& painter, const GraphModel& model, const GraphScene& scene, const GraphLook& look,
               const QRectF& seen, const QPalette& palette, const QFont& font)
      : painter_(painter),
        model_(model),
        scene_(scene),
        look_(look),
        seen_(seen),
        palette_(palette),
        font_(font),
        metrics_(font),
        em_(metrics_.height()) {}

  void paint() {
    painter_.setRenderHint(QPainter::Antialiasing);
    painter_.setFont(font_);
    if (model_.stages() > 1)
      for (int stage = 0; stage < model_.stages(); ++stage) paintBand(stage);
    for (std::size_t e = 0; e < scene_.edges.size(); ++e) paintEdge(e);
    if (model_.stages() > 1)
      for (int stage = 0; stage < model_.stages(); ++stage) paintTitle(stage);
    for (std::size_t n = 0; n < scene_.nodes.size(); ++n)
      if (rect(scene_.layout.boxes[n]).adjusted(-4, -4, 8, 8).intersects(seen_)) paintNode(n);
  }

 private:
  [[nodiscard]] QColor base() const { return palette_.color(QPalette::Base); }
  [[nodiscard]] QColor text() const { return palette_.color(QPalette::Text); }

  // Behind the stage's nodes, with room for its title above them.
  [[nodiscard]] QRectF band(int stage) const {
    QRectF all;
    for (std::size_t n = 0; n < scene_.nodes.size(); ++n)
      if (scene_.nodes[n].stage == stage && scene_.nodes[n].kind != GraphNode::Kind::transfer)
        all |= rect(scene_.layout.boxes[n]);
    if (all.isEmpty()) return all;
    for (std::size_t e = 0; e < scene_.edges.size(); ++e) {
      const auto inside = [&](std::size_t n) {
        return scene_.nodes[n].stage == stage && scene_.nodes[n].kind != GraphNode::Kind::transfer;
      };
      if (!inside(scene_.edges[e].from) || !inside(scene_.edges[e].to)) continue;
      for (const LayoutPoint& point : scene_.layout.routes[e]) {
        all.setLeft(std::min(all.left(), point.x));
        all.setRight(std::max(all.right(), point.x));
      }
    }
    all.adjust(-1.2 * em_, -1.7 * em_, 1.2 * em_, 0.7 * em_);
    const double lacking = metrics_.horizontalAdvance(model_.stageTitle(stage)) + 1.6 * em_ - all.width();
    return lacking > 0 ? all.adjusted(-lacking / 2, 0, lacking / 2, 0) : all;
  }

  [[nodiscard]] QColor bandColour(int stage) const {
    return mixed(base(), stageColour(stage, model_.stages(), palette_), 0.12);
  }

  void paintBand(int stage) {
    const QRectF box = band(stage);
    if (box.isEmpty() || !box.intersects(seen_)) return;
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(bandColour(stage));
    painter_.drawRoundedRect(box, 8, 8);
  }

  // Above the edges, which end behind it.
  void paintTitle(int stage) {
    const QRectF box = band(stage);
    if (box.isEmpty() || !box.intersects(seen_)) return;
    const QString title = model_.stageTitle(stage);
    const QRectF line(box.left() + 0.8 * em_, box.top() + 0.25 * em_, metrics_.horizontalAdvance(title) + 1, 1.1 * em_);
    painter_.fillRect(line, bandColour(stage));
    painter_.setPen(mixed(text(), base(), 0.2));
    painter_.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, title);
  }

  // Beziers that leave and enter vertically.
  void paintEdge(std::size_t e) {
    const std::vector<LayoutPoint>& points = scene_.layout.routes[e];
    if (points.size() < 2) return;
    QPainterPath path(QPointF(points[0].x, points[0].y));
    for (std::size_t i = 1; i < points.size(); ++i) {
      const QPointF from(points[i - 1].x, points[i - 1].y), to(points[i].x, points[i].y);
      const double middle = (from.y() + to.y()) / 2;
      path.cubicTo(QPointF(from.x(), middle), QPointF(to.x(), middle), to);
    }
    if (!path.controlPointRect().adjusted(-2, -2, 2, 2).intersects(seen_)) return;
    const bool lit = scene_.edges[e].from == look_.hovered || scene_.edges[e].to == look_.hovered ||
                     scene_.edges[e].from == look_.selected || scene_.edges[e].to == look_.selected;
    const QColor colour = lit ? palette_.color(QPalette::Highlight) : mixed(base(), text(), 0.42);
    painter_.setPen(QPen(colour, lit ? 2.0 : 1.2));
    painter_.setBrush(Qt::NoBrush);
    painter_.drawPath(path);
    if (scene_.nodes[scene_.edges[e].to].kind == GraphNode::Kind::transfer) return;
    const QPointF tip(points.back().x, points.back().y);
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(colour);
    painter_.drawPolygon(QPolygonF({tip, tip + QPointF(-4, -7), tip + QPointF(4, -7)}));
  }

  void paintNode(std::size_t n) {
    const GraphNode& node = scene_.nodes[n];
    const QRectF box = rect(scene_.layout.boxes[n]);
    if (node.kind == GraphNode::Kind::transfer) return paintTransfer(n, box);
    const QColor colour = stageColour(node.stage, model_.stages(), palette_);
    const QColor fill = mixed(base(), colour, node.opens() ? 0.26 : 0.16);
    painter_.setPen(outline(n, mixed(colour, base(), 0.15)));
    painter_.setBrush(fill);
    if (node.kind == GraphNode::Kind::run)
      for (const double behind : {6.0, 3.0}) painter_.drawRoundedRect(box.translated(behind, behind), 5, 5);
    painter_.drawRoundedRect(box, 5, 5);
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(colour);
    painter_.drawRoundedRect(QRectF(box.left(), box.top(), 5, box.height()), 2.5, 2.5);
    QRectF line(box.left() + 12, box.top() + 0.35 * em_, box.width() - 20, 1.3 * em_);
    QFont bold = font_;
    bold.setBold(true);
    painter_.setFont(bold);
    write(line, node.title, text(), Qt::ElideMiddle, QFontMetricsF(bold));
    painter_.setFont(font_);
    write(line, node.subtitle, mixed(text(), base(), 0.3), Qt::ElideRight, metrics_);
    if (!node.splits.empty()) paintSplits(node, line);
    if (!node.sent.isEmpty()) write(line, QStringLiteral("⇄ ") + node.sent, sentText(), Qt::ElideRight, metrics_);
  }

  void write(QRectF& line, const QString& words, const QColor& colour, Qt::TextElideMode mode,
             const QFontMetricsF& metrics) {
    painter_.setPen(colour);
    painter_.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(words, mode, line.width()));
    line.translate(0, 1.3 * em_);
  }

  void paintSplits(const GraphNode& node, QRectF& line) {
    double x = line.left();
    for (const OperationSplit& split : node.splits) {
      const QString words = QString("%1 / %2").arg(axisName(split.axis)).arg(split.ways);
      const QRectF pill(x, line.top() + 0.1 * em_, metrics_.horizontalAdvance(words) + 12, 1.1 * em_);
      if (pill.right() > line.right()) break;
      const QColor colour = axisColour(split.axis, palette_);
      painter_.setPen(Qt::NoPen);
      painter_.setBrush(colour);
      painter_.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2);
      painter_.setPen(textOn(colour));
      painter_.drawText(pill, Qt::AlignCenter, words);
      x = pill.right() + 5;
    }
    line.translate(0, 1.3 * em_);
  }

  [[nodiscard]] QColor sentText() const { return mixed(colourOf("communication", palette_), text(), 0.35); }

  void paintTransfer(std::size_t n, const QRectF& box) {
    const QColor colour = colourOf("communication", palette_);
    painter_.setPen(outline(n, colour));
    painter_.setBrush(mixed(base(), colour, 0.13));
    painter_.drawRoundedRect(box, 0.7 * em_, 0.7 * em_);
    painter_.setPen(text());
    painter_.drawText(box, Qt::AlignCenter, scene_.nodes[n].sent);
  }

  [[nodiscard]] QPen outline(std::size_t n, const QColor& usual) const {
    if (n == look_.selected) return {palette_.color(QPalette::Highlight), 3};
    if (n == look_.hovered) return {palette_.color(QPalette::Highlight), 1.8};
    return {usual, 1.2};
  }

  QPainter& painter_;
  const GraphModel& model_;
  const GraphScene& scene_;
  const GraphLook& look_;
  QRectF seen_;
  const QPalette& palette_;
  QFont font_;
  QFontMetricsF metrics_;
  double em_;
};

}  // namespace

QColor stageColour(int stage, int stages, const QPalette& palette) {
  return stages > 1 ? seriesColour(stage, palette) : colourOf("forward", palette);
}

// None is that of what is sent, or of a model in one piece.
QColor axisColour(MeshAxis axis, const QPalette& palette) {
  constexpr int taken = 2, colours = 8;
  return seriesColour(taken + static_cast<int>(axis) % (colours - taken), palette);
}

void paintGraph(QPainter& painter, const GraphModel& model, const GraphScene& scene, const GraphLook& look,
                const QRectF& seen, const QPalette& palette, const QFont& font) {
  GraphPainter(painter, model, scene, look, seen, palette, font).paint();
}

}  // namespace sibyl::gui
