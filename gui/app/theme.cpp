#include "gui/app/theme.h"

#include <QPainter>
#include <QPalette>
#include <QProxyStyle>
#include <QStyleFactory>
#include <QStyleOption>
#include <QToolTip>

namespace sibyl::gui {
namespace {

struct Surfaces {
  QRgb window, base, alternate, button, text, weak, border, accent, onAccent, link;
};

constexpr Surfaces light_surfaces = {0xfff3f4f6, 0xffffffff, 0xfff7f8fa, 0xffe9ebee, 0xff1b1e23,
                                     0xff5f6672, 0xffc3c8d0, 0xff1f6fb5, 0xffffffff, 0xff1a5f9c};
constexpr Surfaces dark_surfaces = {0xff22252a, 0xff1a1c20, 0xff202329, 0xff31353c, 0xffe7e9ec,
                                    0xffa0a7b3, 0xff474d57, 0xff3d8fd6, 0xffffffff, 0xff7ab8ee};

QPalette paletteOf(const Surfaces& s) {
  QPalette p;
  const QColor text(s.text), weak(s.weak);
  p.setColor(QPalette::Window, QColor(s.window));
  p.setColor(QPalette::WindowText, text);
  p.setColor(QPalette::Base, QColor(s.base));
  p.setColor(QPalette::AlternateBase, QColor(s.alternate));
  p.setColor(QPalette::Text, text);
  p.setColor(QPalette::PlaceholderText, weak);
  p.setColor(QPalette::Button, QColor(s.button));
  p.setColor(QPalette::ButtonText, text);
  p.setColor(QPalette::BrightText, QColor(Qt::red));
  p.setColor(QPalette::ToolTipBase, QColor(s.base));
  p.setColor(QPalette::ToolTipText, text);
  p.setColor(QPalette::Highlight, QColor(s.accent));
  p.setColor(QPalette::HighlightedText, QColor(s.onAccent));
  p.setColor(QPalette::Link, QColor(s.link));
  p.setColor(QPalette::LinkVisited, QColor(s.link));
  p.setColor(QPalette::Light, QColor(s.button).lighter(115));
  p.setColor(QPalette::Midlight, QColor(s.button).lighter(107));
  p.setColor(QPalette::Mid, QColor(s.border));
  p.setColor(QPalette::Dark, QColor(s.border).darker(125));
  p.setColor(QPalette::Shadow, QColor(s.border).darker(180));
  for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    QColor faint = weak;
    faint.setAlphaF(0.65F);
    p.setColor(QPalette::Disabled, role, faint);
  }
  p.setColor(QPalette::Disabled, QPalette::Highlight, QColor(s.border));
  return p;
}

// Fusion draws outlines darker than the window: on a dark one a box that is not ticked, or a line to write in, is not
// to be seen.
class OutlinedStyle final : public QProxyStyle {
 public:
  using QProxyStyle::QProxyStyle;

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    const bool outlined = element == PE_IndicatorCheckBox || element == PE_FrameLineEdit;
    const bool lit = option->state.testFlag(State_HasFocus) && element == PE_FrameLineEdit;
    constexpr int dark = 128;
    if (!outlined || lit || option->palette.color(QPalette::Window).lightness() >= dark) return;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(option->palette.color(QPalette::Mid).lighter(125));
    painter->setBrush(Qt::NoBrush);
    painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2);
    painter->restore();
  }
};

}  // namespace

void applyTheme(QApplication& application, Theme theme) {
  application.setStyle(new OutlinedStyle(QStyleFactory::create(QStringLiteral("Fusion"))));
  // An empty one is the desktop's own, and follows it when that changes.
  application.setPalette(theme == Theme::light  ? paletteOf(light_surfaces)
                         : theme == Theme::dark ? paletteOf(dark_surfaces)
                                                : QPalette());
  QToolTip::setPalette(QApplication::palette());
}

}  // namespace sibyl::gui
