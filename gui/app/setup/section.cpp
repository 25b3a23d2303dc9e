#include "gui/app/setup/section.h"

#include <QEvent>
#include <QFrame>

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
      content_(new QWidget(this)),
      heading_(new Disclosure(title, content_, this)),
      error_(new QLabel(this)),
      body_(new QVBoxLayout(content_)) {
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
  auto* line = new QFrame(this);
  line->setFrameShape(QFrame::HLine);
  line->setForegroundRole(QPalette::Mid);
  line->setFrameShadow(QFrame::Plain);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(heading_);
  layout->addWidget(error_);
  layout->addWidget(content_);
  layout->addWidget(line);
}

void Section::setError(const QString& message) {
  QPalette palette = error_->palette();
  palette.setColor(QPalette::WindowText, seriesColour(1, this->palette()));
  error_->setPalette(palette);
  error_->setText(message);
  error_->setVisible(!message.isEmpty());
}

}  // namespace sibyl::gui
