// The graph's surface: zoomed, moved, pointed at. A double click, or Return on the selected node, opens what holds
// others; opened blocks are closed again by a double click on one of their operations.
//
// Ctrl+wheel, W and S zoom; the wheel scrolls, with Shift sideways; A and D and dragging move; up and down go from node
// to node; F shows all.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <set>

#include "gui/view/canvas/graph_painter.h"

namespace sibyl::gui {

class GraphCanvas : public QWidget {
  Q_OBJECT

 public:
  explicit GraphCanvas(QWidget* parent = nullptr);

  void setModel(std::shared_ptr<const GraphModel> model);  // null: nothing to show
  [[nodiscard]] const GraphModel* model() const { return model_.get(); }
  [[nodiscard]] const GraphScene& scene() const { return scene_; }
  void setStale(bool stale);
  void setOpened(std::set<std::string> keys);
  [[nodiscard]] const std::set<std::string>& opened() const { return opened_; }
  [[nodiscard]] std::optional<std::size_t> hovered() const { return known(look_.hovered); }
  [[nodiscard]] std::optional<std::size_t> selected() const { return known(look_.selected); }
  void select(std::size_t node);  // and scroll to it
  void reveal(OperationId operation);
  void draw(QPainter& painter, const QSize& size) const;

  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] QPointF origin() const { return origin_; }  // of the scene, in the widget
  void place(double scale, const QPointF& origin);
  [[nodiscard]] QPointF pointOf(std::size_t node) const;  // its middle, in the widget

 public slots:
  void fit();

 signals:
  void hoveredChanged();
  void selectedChanged();
  void placeChanged();

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  [[nodiscard]] std::optional<std::size_t> known(std::size_t node) const;
  [[nodiscard]] std::size_t nodeAt(const QPointF& at) const;
  void arrange();
  void begin();
  void zoom(double factor, const QPointF& at);
  void move(const QPointF& by) { place(scale_, origin_ + by); }
  void hover(std::size_t node, const QPoint& global);
  void toggle(std::size_t node);
  void go(int nodes);

  std::shared_ptr<const GraphModel> model_;
  GraphScene scene_;
  GraphLook look_;
  std::set<std::string> opened_;
  double scale_ = 1;
  QPointF origin_;
  bool stale_ = false, begun_ = false;  // begun: somebody has placed the scene
  std::optional<QPointF> from_;         // of a drag
  QPointF origin_before_;
  bool moved_ = false;
};

}  // namespace sibyl::gui
