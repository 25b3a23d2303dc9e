#include "gui/app/notice.h"

#include <QHBoxLayout>
#include <QToolButton>

#include "gui/view/colours.h"

namespace sibyl::gui {

Notice::Notice(QWidget* parent) : QFrame(parent), label_(new QLabel(this)) {
  setAutoFillBackground(true);
  label_->setWordWrap(true);
  label_->setTextFormat(Qt::PlainText);
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label_->setAccessibleName(tr("Message"));
  auto* close = new QToolButton(this);
  close->setText(QStringLiteral("×"));
  close->setAutoRaise(true);
  close->setToolTip(tr("Close this message"));
  close->setAccessibleName(close->toolTip());
  connect(close, &QToolButton::clicked, this, &QWidget::hide);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(12, 4, 6, 4);
  layout->addWidget(label_, 1);
  layout->addWidget(close, 0, Qt::AlignTop);
  hide();
}

void Notice::say(const QString& message, bool wrong) {
  constexpr double tint = 0.25;
  constexpr int alarm = 1, calm = 0;
  const QPalette around = parentWidget()->palette();
  QPalette colours = around;
  colours.setColor(QPalette::Window,
                   mixed(around.color(QPalette::Base), seriesColour(wrong ? alarm : calm, around), tint));
  setPalette(colours);
  label_->setText(message);
  show();
}

}  // namespace sibyl::gui
