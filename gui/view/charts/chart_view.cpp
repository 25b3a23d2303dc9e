#include "gui/view/charts/chart_view.h"

#include <QEvent>
#include <QTimer>
#include <algorithm>

#include "gui/view/charts/plot.h"

namespace sibyl::gui {

// Dims what lies under it, and lets clicks through.
class ChartView::Veil : public QWidget {
 public:
  explicit Veil(QWidget* parent) : QWidget(parent) {
    setAttribute(Qt::WA_TransparentForMouseEvents);
    hide();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QColor colour = palette().color(QPalette::Window);
    colour.setAlpha(150);
    QPainter(this).fillRect(rect(), colour);
  }
};

ChartView::ChartView(QWidget* parent)
    : View(parent),
      message_(new QLabel(this)),
      scroll_(new QScrollArea(this)),
      content_(new QWidget(this)),
      body_(new QVBoxLayout(content_)),
      veil_(new Veil(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(message_, 1);
  layout->addWidget(scroll_, 1);
  scroll_->setWidget(content_);
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll_->setFocusPolicy(Qt::NoFocus);
  content_->installEventFilter(this);
  body_->setContentsMargins(8, 8, 8, 8);
  message_->setAlignment(Qt::AlignCenter);
  message_->setWordWrap(true);
  message_->setTextFormat(Qt::PlainText);
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  message_->setMargin(24);
  message_->setText(tr("No model is open yet."));
  scroll_->hide();
}

const Answer* ChartView::baseline() const { return baseline_ && baseline_->report ? baseline_.get() : nullptr; }

void ChartView::showAnswer(const AnswerPointer& current, const AnswerPointer& baseline) {
  current_ = current;
  baseline_ = baseline;
  refreshAgain();
}

void ChartView::refreshAgain() {
  needed_ = true;
  if (isVisible()) refreshIfNeeded();
}

void ChartView::refreshIfNeeded() {
  if (!needed_) return;
  needed_ = false;
  scroll_->setVisible(answered());
  message_->setVisible(!answered());
  if (answered())
    refresh();
  else
    message_->setText(current_ && !current_->report ? sentence(current_->report.error()) : tr("No model is open yet."));
}

void ChartView::setStale(bool stale) {
  stale_ = stale;
  dim();
}

void ChartView::setWorking(bool working) {
  working_ = working;
  dim();
}

void ChartView::dim() {
  veil_->setGeometry(rect());
  veil_->raise();
  veil_->setVisible(stale_ || working_);
}

void ChartView::renderFigure(QPainter& painter, const QSize& size) {
  refreshIfNeeded();
  painter.fillRect(QRect(QPoint(), size), palette().color(QPalette::Base));
  if (answered()) {
    renderCharts(painter, size);
    return;
  }
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(QRect(QPoint(), size).adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                   message_->text());
}

void ChartView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  refreshIfNeeded();
}

void ChartView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  // The plots, which are children, get theirs after this event.
  QTimer::singleShot(0, this, [this] {
    for (Plot* plot : findChildren<Plot*>()) plot->restyle();
    if (!needed_ && answered()) redraw();
  });
}

void ChartView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  veil_->setGeometry(rect());
  makeRoom();
}

// Controls that go on in a further line need more height, of which the layout tells nobody.
void ChartView::makeRoom() {
  const int width = scroll_->viewport()->width();
  scroll_->setMinimumWidth(content_->minimumSizeHint().width());
  content_->setMinimumHeight(std::max(0, content_->layout()->totalMinimumHeightForWidth(width)));
}

bool ChartView::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::LayoutRequest) makeRoom();
  return View::eventFilter(object, event);
}

}  // namespace sibyl::gui
