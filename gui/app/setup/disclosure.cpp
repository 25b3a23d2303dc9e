#include "gui/app/setup/disclosure.h"

namespace sibyl::gui {

Disclosure::Disclosure(const QString& title, QWidget* content, QWidget* parent)
    : QToolButton(parent), content_(content) {
  setText(title);
  setAccessibleName(title);
  setAutoRaise(true);
  setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(this, &QToolButton::clicked, this, [this] { setOpen(!open_); });
  setOpen(true);
}

void Disclosure::setOpen(bool open) {
  open_ = open;
  setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
  setToolTip(open ? tr("Fold this away") : tr("Unfold this"));
  content_->setVisible(open);
}

}  // namespace sibyl::gui
