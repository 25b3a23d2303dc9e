// How the window is: commands and keys, names and tooltips of all controls, colours; and pictures of all views.
#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QDialogButtonBox>
#include <QDockWidget>
#include <QHeaderView>
#include <QListView>
#include <QListWidget>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>
#include <QTableWidget>

#include "gui/app/command_palette.h"
#include "gui/app/export_dialog.h"
#include "gui/app/shortcuts_dialog.h"
#include "gui/view/charts/search_view.h"
#include "tests/gui/flow/driven_window.h"
#ifdef SIBYL_XCB
#include "tests/gui/flow/keyboard.h"
#endif

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
    QTest::keyClicks(line, "rest");
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

  void aQuestionMarkListsTheKeys() {
    const auto shown = [this] {
      const auto* dialog = window_->findChild<ShortcutsDialog*>();
      return dialog != nullptr && dialog->isVisible();
    };
    QTRY_VERIFY(!shown());  // the one before is gone
    activate();
    QTest::keyClick(window_.get(), Qt::Key_Question);
    QVERIFY(shown());
    QStringList words;
    const auto* table = window_->findChild<ShortcutsDialog*>()->findChild<QTableWidget*>();
    for (int row = 0; row < table->rowCount(); ++row)
      words << table->item(row, 0)->text() + ": " + table->item(row, 1)->text();
    QVERIFY2(words.contains("Ctrl+B: Pin as the baseline") && words.contains("? or F1: Keys") &&
                 words.contains("Ctrl+Shift+Z or Ctrl+Y: Redo"),
             qPrintable(words.join('\n')));
    window_->findChild<ShortcutsDialog*>()->close();
    QTRY_VERIFY(!shown());
  }

  // The key that a person presses for it: the X server says that it is a question mark.
  void theKeyOfAQuestionMarkListsTheKeys() {
#ifdef SIBYL_XCB
    if (QGuiApplication::platformName() != "xcb") QSKIP("keys are pressed on an X server");
    const auto shown = [this] { return window_->findChild<ShortcutsDialog*>() != nullptr; };
    QTRY_VERIFY(!shown());
    activate();
    Keyboard keyboard;
    QVERIFY(keyboard.pressWithShift('?'));
    QTRY_VERIFY(shown());
    window_->findChild<ShortcutsDialog*>()->close();
    QTRY_VERIFY(!shown());
#else
    QSKIP("libxcb is not here");
#endif
  }

  void aScenarioIsRenamed() {
    activate();
    auto& list = control<QListView>("scenario list");
    const int steps = document().undoStack().index();
    const auto type = [&](const QString& name, Qt::Key end) {
      keys(*window_, Qt::Key_F2, Qt::NoModifier);
      auto* editor = list.findChild<QLineEdit*>();
      QVERIFY(editor != nullptr && editor->isVisible());
      QTest::keyClicks(editor, name);
      QTest::keyClick(editor, end);
      QTRY_VERIFY(list.findChild<QLineEdit*>() == nullptr);
    };
    const std::string before = document().current().name;
    type("half precision", Qt::Key_Return);
    QCOMPARE(document().current().name, std::string("half precision"));
    type("nothing", Qt::Key_Escape);
    QCOMPARE(document().current().name, std::string("half precision"));
    keys(*window_, Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(document().current().name, before);
    QCOMPARE(document().undoStack().index(), steps);
    settle();
  }

  // As it was left when the program starts again; by the menu, as it was at first.
  void theLayoutIsKeptAndRestored() {
    const auto dock = [](const MainWindow& window, const char* name) {
      return window.findChild<QDockWidget*>(QLatin1String(name));
    };
    const auto as_left = [&](const MainWindow& window) {
      return window.dockWidgetArea(dock(window, "setup")) == Qt::RightDockWidgetArea &&
             dock(window, "scenarios")->isHidden();
    };
    const auto as_usual = [&](const MainWindow& window) {
      return window.dockWidgetArea(dock(window, "setup")) == Qt::LeftDockWidgetArea &&
             !dock(window, "scenarios")->isHidden() && !dock(window, "setup")->isHidden();
    };
    const auto restore = [](const MainWindow& window) {
      for (QAction* action : window.findChildren<QAction*>())
        if (plainText(*action) == "Restore default layout") action->trigger();
    };
    {
      MainWindow window;
      window.QWidget::show();
      QVERIFY(as_usual(window));
      window.addDockWidget(Qt::RightDockWidgetArea, dock(window, "setup"));
      dock(window, "scenarios")->hide();
      QVERIFY(as_left(window));
      restore(window);
      QVERIFY(as_usual(window));
      window.addDockWidget(Qt::RightDockWidgetArea, dock(window, "setup"));
      dock(window, "scenarios")->hide();
      QVERIFY(window.close());
    }
    {
      MainWindow again;
      again.QWidget::show();
      QVERIFY(as_left(again));
      dock(again, "setup")->hide();
      restore(again);
      QVERIFY(as_usual(again));
    }
    QSettings().remove("window");
    activate();
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

  // The search's figures, on the smallest screen.
  void whatASearchIsForIsInSight() {
    window_->resize(1280, 800);
    window_->showView("search");
    auto* view = window_->findChild<SearchView*>();
    view->prepare();
    settle();
    QTest::qWait(50);
    const auto* table = view->findChild<WideTable*>();
    QVERIFY(table->isVisible());
    const QAbstractItemModel& model = *table->model();
    QStringList whole;
    for (int column = 0; column < model.columnCount(); ++column)
      if (table->columnViewportPosition(column) + table->columnWidth(column) <= table->viewport()->width())
        whole << model.headerData(column, Qt::Horizontal).toString();
    for (const char* title : {"Strategy", "Step time", "Memory", "Samples/s", "Loses by"})
      QVERIFY2(whole.contains(title), qPrintable(whole.join(", ")));
  }

  void cleanupTestCase() { window_.reset(); }
};

QTEST_MAIN(WindowLooksTest)
#include "window_test.moc"
