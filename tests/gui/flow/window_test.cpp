// How the window is: commands and keys, names and tooltips of all controls, colours; and pictures of all views.
#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QListWidget>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>

#include "gui/app/command_palette.h"
#include "gui/app/export_dialog.h"
#include "gui/app/shortcuts_dialog.h"
#include "tests/gui/flow/driven_window.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

namespace {

template <class... Kinds>
bool isOneOf(const QWidget* widget) {
  return ((qobject_cast<const Kinds*>(widget) != nullptr) || ...);
}

// What a person works with, and not what Qt makes it of.
bool isControl(const QWidget& widget) {
  if (widget.objectName().startsWith("qt_")) return false;
  if (isOneOf<QScrollBar, QHeaderView>(&widget)) return false;
  if (isOneOf<QAbstractSpinBox, QComboBox, QLineEdit, QTabBar, QAbstractItemView, QDialogButtonBox>(
          widget.parentWidget()))
    return false;
  return isOneOf<QAbstractSpinBox, QComboBox, QLineEdit, QAbstractButton, QAbstractSlider, QAbstractItemView>(&widget);
}

}  // namespace

class WindowLooksTest : public DrivenWindow {
  Q_OBJECT

 private slots:
  void initTestCase() { openWindow(); }

  // A scenario with something to be seen in every view: a split, a baseline, a difference.
  void somethingIsAsked() {
    openModel("gpt2-mini");
    document().change("split", [](Scenario& s) {
      s.set("--devices", "8");
      s.set("--parallel", "tensor=2");
      s.set_change("nic.background", "0.3");
    });
    document().pin(0);
    document().change("precision", [](Scenario& s) { s.set("--precision", "bf16"); });
    settle();
    QVERIFY(window_->answer()->report.has_value());
  }

  void commandsAreFoundAndRun() {
    keys(*window_, Qt::Key_K, Qt::ControlModifier);
    auto* palette = window_->findChild<CommandPalette*>();
    QVERIFY(palette != nullptr && palette->isVisible());
    auto* line = palette->findChild<QLineEdit*>();
    auto* list = palette->findChild<QListWidget*>();
    QTest::keyClicks(line, "res");
    QVERIFY(list->item(0)->text().startsWith("Restore default layout"));
    picture(*palette, "commands");
    line->clear();
    QTest::keyClicks(line, "keys");
    QTest::keyClick(line, Qt::Key_Return);
    auto* shortcuts = window_->findChild<ShortcutsDialog*>();
    QVERIFY(shortcuts != nullptr && shortcuts->isVisible());
    picture(*shortcuts, "keys");
    shortcuts->close();
    ExportDialog dialog(window_->views(), window_->views().front(), "export", window_.get());
    dialog.show();
    picture(dialog, "export");
  }

  void everyControlHasANameAndATooltip() {
    ExportDialog dialog(window_->views(), nullptr, "export", window_.get());
    int controls = 0;
    for (const QWidget* root : {static_cast<QWidget*>(window_.get()), static_cast<QWidget*>(&dialog)})
      for (QWidget* widget : root->findChildren<QWidget*>()) {
        if (widget->window() != root || !isControl(*widget)) continue;
        ++controls;
        const QString which = QStringLiteral("%1 '%2' in %3 '%4'")
                                  .arg(widget->metaObject()->className(), widget->objectName(),
                                       widget->parentWidget()->metaObject()->className(), widget->accessibleName());
        const QAccessibleInterface* told = QAccessible::queryAccessibleInterface(widget);
        QVERIFY2(told != nullptr && !told->text(QAccessible::Name).isEmpty(), qPrintable(which));
        if (!isOneOf<QAbstractItemView>(widget)) QVERIFY2(!widget->toolTip().isEmpty(), qPrintable(which));
      }
    QVERIFY2(controls > 100, qPrintable(QString::number(controls)));
  }

  // The desktop's own colours are not replaced by others, and so go on to follow it.
  void coloursOfTheDesktopAreItsOwn() {
    applyTheme(*qApp, Theme::dark);
    QVERIFY(QCoreApplication::testAttribute(Qt::AA_SetPalette));
    QVERIFY(QApplication::palette().color(QPalette::Window).lightnessF() < 0.5);
    applyTheme(*qApp, Theme::system);
    QVERIFY(!QCoreApplication::testAttribute(Qt::AA_SetPalette));
    applyTheme(*qApp, Theme::light);
  }

  void pictures() {
    const bool large = window_->devicePixelRatioF() > 1;  // letters of twice the size on the same screens
    const QSize small = large ? QSize(960, 540) : QSize(1280, 800), wide = large ? QSize(1280, 800) : QSize(1920, 1080);
    for (const auto& [theme, name] : {std::pair{Theme::light, "light"}, {Theme::dark, "dark"}}) {
      applyTheme(*qApp, theme);
      for (const QSize size : {small, wide}) {
        window_->resize(size);
        for (View* view : window_->views()) {
          window_->showView(view->key());
          view->prepare();
          settle();
          QTest::qWait(50);
          QCOMPARE(window_->size(), size);  // all of it has room
          picture(*window_, QStringLiteral("%1-%2-%3").arg(view->key(), name).arg(size.width()));
        }
      }
      picture(*window_->setup().findChild<QScrollArea*>()->widget(), QStringLiteral("setup-%1").arg(name));
    }
  }

  void cleanupTestCase() { window_.reset(); }
};

QTEST_MAIN(WindowLooksTest)
#include "window_test.moc"
