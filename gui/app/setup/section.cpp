#include "gui/app/setup/section.h"

#include <QEvent>

#include "gui/view/colours.h"

namespace sibyl::gui {
namespace {

class WheelGuard : public QObject {
 public:
  using QObject::QObject;
  bool eventFilter(QObject* object, QEvent* event) override {
    const auto* widget = qobject_cast<QWidget*>(object);
    if (event->type() != QEvent::Wheel || widget == nullptr || widget->hasFocus()) return false;
    event->ignore();
    return true;
  }
};

}  // namespace

void guardWheel(QWidget* control) {
  control->setFocusPolicy(Qt::StrongFocus);
  control->installEventFilter(new WheelGuard(control));
}

Section::Section(const QString& title, QWidget* parent)
    : QWidget(parent),
      heading_(new QToolButton(this)),
      error_(new QLabel(this)),
      content_(new QWidget(this)),
      body_(new QVBoxLayout(content_)) {
  heading_->setText(title);
  heading_->setCheckable(true);
  heading_->setChecked(true);
  heading_->setAutoRaise(true);
  heading_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  heading_->setArrowType(Qt::DownArrow);
  heading_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  heading_->setAccessibleName(title);
  heading_->setToolTip(tr("Show or hide this part"));
  QFont font = heading_->font();
  font.setBold(true);
  heading_->setFont(font);
  error_->setWordWrap(true);
  error_->setTextFormat(Qt::PlainText);
  error_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  error_->setContentsMargins(6, 2, 6, 4);
  error_->hide();
  body_->setContentsMargins(6, 2, 6, 8);
  body_->setSpacing(6);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(heading_);
  layout->addWidget(error_);
  layout->addWidget(content_);
  connect(heading_, &QToolButton::toggled, this, &Section::setExpanded);
}

void Section::setExpanded(bool expanded) {
  heading_->setChecked(expanded);
  heading_->setArrowType(expanded ? Qt::DownArrow : Qt::RightArrow);
  content_->setVisible(expanded);
}

void Section::setError(const QString& message) {
  QPalette palette = error_->palette();
  palette.setColor(QPalette::WindowText, seriesColour(1, this->palette()));
  error_->setPalette(palette);
  error_->setText(message);
  error_->setVisible(!message.isEmpty());
}

}  // namespace sibyl::gui
