#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QMenuBar>
#include <QMessageBox>
#include <QSettings>
#include <QStatusBar>
#include <QToolBar>

#include "gui/app/command_palette.h"
#include "gui/app/main_window.h"
#include "gui/app/shortcuts_dialog.h"
#include "gui/app/text.h"

namespace sibyl::gui {
namespace {

const QString theme_key = QStringLiteral("window/theme");

}  // namespace

QAction* MainWindow::command(QMenu& menu, const QString& text, const QList<QKeySequence>& keys,
                             const std::function<void()>& run, const QString& whole) {
  auto* action = new QAction(text, this);
  action->setShortcuts(keys);
  action->setProperty(whole_name, whole);
  action->setProperty("command", true);  // the palette finds it
  action->setToolTip(keys.isEmpty() ? plainText(*action)
                                    : QStringLiteral("%1 (%2)").arg(plainText(*action),
                                                                    keys.first().toString(QKeySequence::NativeText)));
  connect(action, &QAction::triggered, this, run);
  menu.addAction(action);
  return action;
}

void MainWindow::makeFileMenu() {
  QMenu& menu = *menuBar()->addMenu(tr("&File"));
  command(menu, tr("&New session"), {QKeySequence::New}, [this] { newSession(); });
  QAction* open = command(menu, tr("&Open…"), {QKeySequence::Open}, [this] { chooseFile(); });
  recent_menu_ = menu.addMenu(tr("Open &recent"));
  connect(recent_menu_, &QMenu::aboutToShow, this, &MainWindow::fillRecent);
  command(menu, tr("Open &model…"), {QKeySequence(tr("Ctrl+Shift+O"))}, [this] { chooseModel(); });
  command(menu, tr("Open &cluster…"), {}, [this] { chooseCluster(); });
  command(menu, tr("Re&load files"), {QKeySequence(Qt::Key_F5)}, [this] { reload(); });
  menu.addSeparator();
  QAction* keep = command(menu, tr("&Save"), {QKeySequence::Save}, [this] { save(); });
  command(menu, tr("Save &as…"), {QKeySequence(tr("Ctrl+Shift+S"))}, [this] { saveAs(); });
  QAction* hand_out = command(menu, tr("&Export…"), {QKeySequence(tr("Ctrl+E"))}, [this] { exportViews(); });
  tools_ = {open, keep, hand_out, nullptr};
  menu.addSeparator();
  command(menu, tr("&Quit"), {QKeySequence(tr("Ctrl+Q"))}, [this] { close(); });
}

void MainWindow::makeEditMenu() {
  QMenu& menu = *menuBar()->addMenu(tr("&Edit"));
  QUndoStack& stack = document_.undoStack();
  QAction* undo = stack.createUndoAction(this, tr("Undo"));
  undo->setShortcut(QKeySequence(tr("Ctrl+Z")));
  QAction* redo = stack.createRedoAction(this, tr("Redo"));
  redo->setShortcuts({QKeySequence(tr("Ctrl+Shift+Z")), QKeySequence(tr("Ctrl+Y"))});
  for (QAction* action : {undo, redo}) {
    action->setProperty("command", true);
    menu.addAction(action);
  }
  // What would be undone is said in the menu; the tool bar does not move.
  undo->setIconText(tr("Undo"));
  redo->setIconText(tr("Redo"));
  menu.addSeparator();
  QAction* copy =
      command(menu, tr("Copy as &command line"), {QKeySequence(tr("Ctrl+Shift+C"))}, [this] { copyCommandLine(); });
  tools_.append({undo, redo, nullptr, copy});
  command(menu, tr("Copy view as &table"), {QKeySequence(tr("Ctrl+Shift+T"))}, [this] { copyTable(); });
}

void MainWindow::makeScenarioMenu() {
  QMenu& menu = *menuBar()->addMenu(tr("&Scenario"));
  const auto current = [this] { return document_.state().current; };
  QAction* fresh = command(
      menu, tr("&New"), {QKeySequence(tr("Ctrl+Shift+N"))}, [this] { document_.add({}, tr("New scenario")); },
      tr("New scenario"));
  QAction* duplicate = command(
      menu, tr("D&uplicate"), {QKeySequence(tr("Ctrl+D"))}, [this, current] { document_.duplicate(current()); },
      tr("Duplicate scenario"));
  QAction* rename = command(
      menu, tr("&Rename"), {QKeySequence(Qt::Key_F2)}, [this] { scenarios_->rename(); }, tr("Rename scenario"));
  QAction* remove = command(
      menu, tr("D&elete"), {QKeySequence(tr("Ctrl+Delete"))}, [this, current] { document_.remove(current()); },
      tr("Delete scenario"));
  menu.addSeparator();
  QAction* pin = command(
      menu, tr("&Pin"), {QKeySequence(tr("Ctrl+B"))}, [this, current] { document_.pin(current()); },
      tr("Pin as the baseline"));
  pin->setToolTip(tr("Make this scenario, as it is now, the baseline that all are held against (Ctrl+B)"));
  QAction* unpin = command(
      menu, tr("Unp&in"), {QKeySequence(tr("Ctrl+Shift+B"))}, [this] { document_.unpin(); }, tr("Unpin the baseline"));
  QAction* compare = command(
      menu, tr("&Compare"), {QKeySequence(tr("Ctrl+M"))}, [this] { showView(QStringLiteral("compare")); },
      tr("Compare scenarios"));
  tools_.append({nullptr, pin, compare});
  menu.addSeparator();
  command(
      menu, tr("Next"), {QKeySequence(tr("Ctrl+PgDown"))}, [this, current] { document_.select(current() + 1); },
      tr("Next scenario"));
  command(
      menu, tr("Previous"), {QKeySequence(tr("Ctrl+PgUp"))}, [this, current] { document_.select(current() - 1); },
      tr("Previous scenario"));
  menu.addSeparator();
  command(menu, tr("&Find the best strategy"), {QKeySequence(tr("Ctrl+Shift+F"))},
          [this] { setup_->strategy().findBest(); });
  scenario_actions_ = {fresh, duplicate, remove, pin, unpin, rename};
  const auto enable = [this, remove, unpin] {
    remove->setEnabled(document_.count() > 1);
    unpin->setEnabled(document_.state().baseline.has_value());
  };
  connect(&document_, &Document::changed, this, enable);
  enable();
}

void MainWindow::makeViewMenu() {
  QMenu& menu = *menuBar()->addMenu(tr("&View"));
  constexpr int keys = 9;
  for (int i = 0; i < static_cast<int>(views_.size()); ++i) {
    const QKeySequence key(QStringLiteral("Ctrl+%1").arg(i + 1));
    command(menu, views_[static_cast<std::size_t>(i)]->title(),
            i < keys ? QList<QKeySequence>{key} : QList<QKeySequence>{}, [this, i] { tabs_->setCurrentIndex(i); });
  }
  menu.addSeparator();
  for (QDockWidget* dock : {static_cast<QDockWidget*>(setup_), static_cast<QDockWidget*>(scenarios_)}) {
    QAction* toggle = dock->toggleViewAction();
    toggle->setProperty("command", true);
    menu.addAction(toggle);
  }
  command(menu, tr("Restore &default layout"), {}, [this] { restoreLayout(); });
  menu.addSeparator();
  makeThemes(*menu.addMenu(tr("&Colours")));
  command(menu, tr("&Stop what is being worked out"), {QKeySequence(tr("Ctrl+."))}, [this] { stopWork(); });
  command(menu, tr("&Full screen"), {QKeySequence(Qt::Key_F11)},
          [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
}

void MainWindow::makeThemes(QMenu& menu) {
  auto* group = new QActionGroup(this);
  const QList<std::pair<QString, Theme>> themes = {
      {tr("Colours of the desktop"), Theme::system}, {tr("Light"), Theme::light}, {tr("Dark"), Theme::dark}};
  const int chosen = QSettings().value(theme_key, 0).toInt();
  for (const auto& [name, theme] : themes) {
    QAction* action = command(menu, name, {}, [this, theme = theme] { setTheme(theme); });
    action->setCheckable(true);
    action->setChecked(static_cast<int>(theme) == chosen);
    group->addAction(action);
  }
}

void MainWindow::setTheme(Theme theme) {
  QSettings().setValue(theme_key, static_cast<int>(theme));
  applyTheme(*qApp, theme);
}

void MainWindow::makeHelpMenu() {
  QMenu& menu = *menuBar()->addMenu(tr("&Help"));
  command(menu, tr("&Commands…"), {QKeySequence(tr("Ctrl+K")), QKeySequence(tr("Ctrl+Shift+P"))},
          [this] { showPalette(); });
  command(menu, tr("&Keys"), {QKeySequence(tr("?")), QKeySequence(Qt::Key_F1)}, [this] { showShortcuts(); });
  command(menu, tr("&About Sibyl"), {}, [this] { showAbout(); });
}

void MainWindow::makeToolBar() {
  auto* bar = addToolBar(tr("Tools"));
  bar->setObjectName(QStringLiteral("tools"));
  bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
  for (QAction* action : tools_) {
    if (action != nullptr)
      bar->addAction(action);
    else
      bar->addSeparator();
  }
}

void MainWindow::restoreLayout() {
  restoreState(usual_layout_);
  for (QDockWidget* dock : {static_cast<QDockWidget*>(setup_), static_cast<QDockWidget*>(scenarios_)}) dock->show();
}

void MainWindow::copyCommandLine() {
  QApplication::clipboard()->setText(text(command_line(document_.current())));
  statusBar()->showMessage(tr("Copied: %1").arg(QApplication::clipboard()->text()), message_ms);
}

void MainWindow::copyTable() {
  const View* view = currentView();
  const auto table = view == nullptr ? std::nullopt : view->table();
  if (!table) return statusBar()->showMessage(tr("This view has no table"), message_ms);
  QApplication::clipboard()->setText(text(markdown(*table)));
  statusBar()->showMessage(tr("Copied as a table"), message_ms);
}

void MainWindow::showPalette() {
  auto* palette = new CommandPalette(*this);
  palette->setAttribute(Qt::WA_DeleteOnClose);
  palette->open();
}

void MainWindow::showShortcuts() {
  auto* keys = new ShortcutsDialog(*this);
  keys->setAttribute(Qt::WA_DeleteOnClose);
  keys->open();
}

void MainWindow::showAbout() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Sibyl"),
                              tr("Sibyl %1\n\nHow fast will this model train on that cluster, does it fit, what holds "
                                 "it back, and what would help?")
                                  .arg(QApplication::applicationVersion()),
                              QMessageBox::Close, this);
  box->setInformativeText(
      tr("Sibyl's sources are under Apache-2.0. This program draws its charts with QCustomPlot, which is under GPL-3: "
         "as a "
         "whole it may be passed on under GPL-3."));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

}  // namespace sibyl::gui
