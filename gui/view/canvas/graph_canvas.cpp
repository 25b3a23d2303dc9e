#include "gui/view/canvas/graph_canvas.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

namespace sibyl::gui {
namespace {

constexpr double least_scale = 0.02, most_scale = 4;
constexpr double readable = 0.7;  // below it names cannot be read
constexpr double key_factor = 1.3, wheel_factor = 1.15;
constexpr double border = 24;
constexpr double step = 80;  // pixels for one key or notch
constexpr std::size_t nobody = static_cast<std::size_t>(-1);

}  // namespace

GraphCanvas::GraphCanvas(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Graph of the model"));
  setAccessibleDescription(
      tr("Operations from top to bottom. Up and down go from node to node, Return opens a block, W and S zoom, F shows "
         "all."));
}

void GraphCanvas::setModel(std::shared_ptr<const GraphModel> model) {
  const auto chosen = selected();
  const OperationId operation =
      chosen && !scene_.nodes[*chosen].operations.empty() ? scene_.nodes[*chosen].operations.front() : OperationId();
  const std::string name = operation.valid() ? model_->name(operation) : std::string();
  model_ = std::move(model);
  arrange();
  if (!begun_) begin();
  const OperationId again = model_ && !name.empty() ? model_->find(name) : OperationId();
  look_.selected = again.valid() ? scene_.node_of(again) : nobody;
  emit selectedChanged();
  emit hoveredChanged();
}

void GraphCanvas::arrange() {
  scene_ = model_ ? model_->scene(opened_, QFontMetricsF(font()).height()) : GraphScene();
  look_ = {};
  update();
}

void GraphCanvas::setStale(bool stale) {
  stale_ = stale;
  update();
}

void GraphCanvas::setOpened(std::set<std::string> keys) {
  opened_ = std::move(keys);
  arrange();
  emit placeChanged();
}

std::optional<std::size_t> GraphCanvas::known(std::size_t node) const {
  if (node >= scene_.nodes.size()) return {};
  return node;
}

QPointF GraphCanvas::pointOf(std::size_t node) const {
  const LayoutBox& box = scene_.layout.boxes[node];
  return origin_ + scale_ * QPointF(box.middle(), box.y + box.height / 2);
}

std::size_t GraphCanvas::nodeAt(const QPointF& at) const {
  const QPointF inside = (at - origin_) / scale_;
  return scene_.node_at(inside.x(), inside.y());
}

void GraphCanvas::place(double scale, const QPointF& origin) {
  scale_ = std::clamp(scale, least_scale, most_scale);
  // Some of the graph stays in sight.
  const double wide = scene_.layout.width * scale_, high = scene_.layout.height * scale_;
  const double x_keeps = std::min(60.0, wide), y_keeps = std::min(60.0, high);
  origin_ = {std::clamp(origin.x(), x_keeps - wide, std::max(x_keeps - wide, width() - x_keeps)),
             std::clamp(origin.y(), y_keeps - high, std::max(y_keeps - high, height() - y_keeps))};
  begun_ = begun_ || model_;
  update();
  emit placeChanged();
}

// All that can be read at once, from the top.
void GraphCanvas::begin() {
  if (!model_ || width() < 2 * border) return;
  const double wide = scene_.layout.width, high = scene_.layout.height;
  const double all =
      std::min((width() - 2 * border) / std::max(1.0, wide), (height() - 3.5 * border) / std::max(1.0, high));
  const double scale = std::clamp(all, readable, 1.0);
  place(scale, {(width() - wide * scale) / 2, std::max(2.2 * border * scale, (height() - high * scale) / 2)});
  begun_ = false;
}

void GraphCanvas::fit() {
  if (!model_) return;
  const double wide = std::max(1.0, scene_.layout.width), high = std::max(1.0, scene_.layout.height);
  const double scale = std::min({(width() - 2 * border) / wide, (height() - 3 * border) / high, 1.5});
  const double used = std::clamp(scale, least_scale, most_scale);
  place(used, {(width() - wide * used) / 2, (height() - high * used) / 2});
}

void GraphCanvas::zoom(double factor, const QPointF& at) {
  const double scale = std::clamp(scale_ * factor, least_scale, most_scale);
  place(scale, at - (at - origin_) * (scale / scale_));
}

void GraphCanvas::select(std::size_t node) {
  look_.selected = node;
  const QPointF at = pointOf(node);
  const QRectF inner = QRectF(rect()).adjusted(60, 60, -60, -60);
  if (!inner.contains(at)) place(scale_, origin_ + QPointF(width() / 2.0, height() / 2.0) - at);
  emit selectedChanged();
  update();
}

void GraphCanvas::reveal(OperationId operation) {
  std::set<std::string> keys = opened_;
  keys.merge(model_->around(operation));
  if (keys != opened_) setOpened(std::move(keys));
  if (const std::size_t node = scene_.node_of(operation); node < scene_.nodes.size()) select(node);
}

void GraphCanvas::draw(QPainter& painter, const QSize& size) const {
  painter.fillRect(QRect(QPoint(0, 0), size), palette().color(QPalette::Base));
  if (!model_) return;
  const double wide = std::max(1.0, scene_.layout.width), high = std::max(1.0, scene_.layout.height);
  const double scale = std::min({(size.width() - 2 * border) / wide, (size.height() - 3 * border) / high, 1.5});
  painter.save();
  painter.translate((size.width() - wide * scale) / 2, (size.height() - high * scale) / 2);
  painter.scale(scale, scale);
  QFont pixels = font();
  pixels.setPixelSize(QFontInfo(font()).pixelSize());  // whatever the printer's resolution
  paintGraph(painter, *model_, scene_, {}, QRectF(-1e6, -1e6, 2e6, 2e6), palette(), pixels);
  painter.restore();
}

bool GraphCanvas::event(QEvent* event) {
  if (event->type() == QEvent::Leave) hover(nobody, {});
  return QWidget::event(event);
}

void GraphCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (!model_) return;
  painter.save();
  painter.translate(origin_);
  painter.scale(scale_, scale_);
  const QRectF seen((QPointF(0, 0) - origin_) / scale_, QSizeF(size()) / scale_);
  paintGraph(painter, *model_, scene_, look_, seen, palette(), font());
  painter.restore();
  if (!stale_) return;
  QColor veil = palette().color(QPalette::Base);
  veil.setAlphaF(0.55F);
  painter.fillRect(rect(), veil);
}

void GraphCanvas::resizeEvent(QResizeEvent*) {
  if (!begun_) begin();
}

void GraphCanvas::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) arrange();
  update();
}

void GraphCanvas::wheelEvent(QWheelEvent* event) {
  const double x = event->angleDelta().x() / 120.0, y = event->angleDelta().y() / 120.0;
  if (event->modifiers() & Qt::ControlModifier)
    zoom(std::pow(wheel_factor, y), event->position());
  else
    move(event->modifiers() & Qt::ShiftModifier ? QPointF(y + x, x) * step : QPointF(x, y) * step);
  event->accept();
}

void GraphCanvas::keyPressEvent(QKeyEvent* event) {
  if (event->modifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier)) return QWidget::keyPressEvent(event);
  const QPointF middle(width() / 2.0, height() / 2.0);
  switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus: return zoom(key_factor, middle);
    case Qt::Key_S:
    case Qt::Key_Minus: return zoom(1 / key_factor, middle);
    case Qt::Key_A:
    case Qt::Key_Left: return move({step, 0});
    case Qt::Key_D:
    case Qt::Key_Right: return move({-step, 0});
    case Qt::Key_Down: return go(1);
    case Qt::Key_Up: return go(-1);
    case Qt::Key_PageDown: return move({0, -0.8 * height()});
    case Qt::Key_PageUp: return move({0, 0.8 * height()});
    case Qt::Key_F:
    case Qt::Key_Home: return fit();
    case Qt::Key_Return:
    case Qt::Key_Enter: return toggle(look_.selected);
    case Qt::Key_Escape:
      look_.selected = nobody;
      emit selectedChanged();
      return update();
    default: QWidget::keyPressEvent(event);
  }
}

void GraphCanvas::go(int nodes) {
  if (scene_.nodes.empty()) return;
  const auto last = static_cast<int>(scene_.nodes.size()) - 1;
  const auto from = selected();
  select(static_cast<std::size_t>(from ? std::clamp(static_cast<int>(*from) + nodes, 0, last) : nodes > 0 ? 0 : last));
}

void GraphCanvas::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  from_ = event->position();
  origin_before_ = origin_;
  moved_ = false;
}

void GraphCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (!from_) return hover(nodeAt(event->position()), event->globalPosition().toPoint());
  const QPointF by = event->position() - *from_;
  if (!moved_ && by.manhattanLength() < QApplication::startDragDistance()) return;
  moved_ = true;
  setCursor(Qt::ClosedHandCursor);
  place(scale_, origin_before_ + by);
}

void GraphCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !from_) return;
  from_.reset();
  unsetCursor();
  if (moved_) return;
  look_.selected = nodeAt(event->position());
  emit selectedChanged();
  update();
}

void GraphCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) toggle(nodeAt(event->position()));
}

void GraphCanvas::hover(std::size_t node, const QPoint& global) {
  if (known(node) == known(look_.hovered)) return;
  look_.hovered = node;
  if (known(node))
    QToolTip::showText(global + QPoint(0, 6), model_->details(scene_.nodes[node]), this);
  else
    QToolTip::hideText();
  emit hoveredChanged();
  update();
}

// Where the node is stays where it is in the window: what it held unfolds around it.
void GraphCanvas::toggle(std::size_t node) {
  if (!known(node) || scene_.nodes[node].operations.empty()) return;
  const GraphNode& clicked = scene_.nodes[node];
  const OperationId first = clicked.operations.front();
  std::set<std::string> keys = opened_;
  if (clicked.opens()) {
    keys.insert(clicked.key);
  } else {
    std::set<std::string> around = model_->around(first);
    std::erase_if(around, [](const std::string& key) { return key.starts_with("run:"); });
    for (const std::string& key : around) keys.erase(key);
  }
  if (keys == opened_) return;
  const QPointF before = pointOf(node);
  setOpened(std::move(keys));
  const std::size_t now = scene_.node_of(first);
  if (now >= scene_.nodes.size()) return;
  move(before - pointOf(now));
  select(now);
}

}  // namespace sibyl::gui
