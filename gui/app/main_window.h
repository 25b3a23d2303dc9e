// The window: puts the document, the answers, the docks and the views together.
//
//   document ─ changed ─► setup shows the scenario; answers are asked
//   answers ─ answered ─► answer bar, setup (what is wrong where), views
//   views ─ scenarioProposed ─► document
//
// Files are opened and saved in main_window_files.cpp, menus made in main_window_menus.cpp.
#pragma once

#include <QMainWindow>
#include <QMenu>
#include <QTabWidget>
#include <QTimer>
#include <QToolButton>
#include <memory>
#include <vector>

#include "gui/app/answer_bar.h"
#include "gui/app/exporter.h"
#include "gui/app/notice.h"
#include "gui/app/scenario_dock.h"
#include "gui/app/setup/setup_dock.h"
#include "gui/app/theme.h"
#include "gui/model/answers.h"
#include "gui/model/autosave.h"
#include "gui/model/document.h"
#include "gui/model/latest.h"
#include "gui/view/view.h"

namespace sibyl::gui {

inline constexpr int message_ms = 4000;  // how long the status bar shows one

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  MainWindow();
  ~MainWindow() override;

  Document& document() { return document_; }
  [[nodiscard]] const std::vector<View*>& views() const { return views_; }
  [[nodiscard]] const AnswerPointer& answer() const { return answer_; }
  AnswerBar& answerBar() { return *answer_bar_; }
  SetupDock& setup() { return *setup_; }
  Notice& notice() { return *notice_; }
  [[nodiscard]] QString path() const { return path_; }

  // A session, a model (a path or zoo:NAME) or a cluster, by what it is. What cannot be opened leaves all as it was.
  // From begin() on it is remembered among the recent ones: a window that only exports has none.
  Result<void> open(const QString& path);
  Result<void> saveTo(const QString& path);
  void setModel(const QString& model);      // of the current scenario
  void setCluster(const QString& cluster);  // likewise

  // What is unsaved is kept in that folder from now on; what a crash left there is taken up, and then `path` (as of
  // open(); it may be empty) is not opened in its place: nobody has saved it.
  void begin(const QString& folder, const QString& path);
  // Nothing is being worked out.
  [[nodiscard]] bool settled() const;
  // Writes these views (exporter.h), those that were never shown, too: what they show is worked out first, while the
  // window goes on. An Error with code interrupted where `cancelled` says so meanwhile; nothing is written then.
  Result<QStringList> exportTo(const std::vector<View*>& views, const ExportRequest& request,
                               const std::function<bool()>& cancelled);
  void showView(const QString& key);

 signals:
  void answered();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // main_window.cpp
  void makeViews();
  void follow();
  void ask();
  void rememberUnsaved();
  void display(const AnswerPointer& current, const AnswerPointer& baseline);
  void askWhatFits();
  void makeStop();
  void showWork();
  void stopWork();  // on the answer, of all views, and of the search for the best
  void stopAnswer();
  [[nodiscard]] bool working() const;  // on the answer, or in a view
  [[nodiscard]] View* currentView() const;

  // main_window_menus.cpp
  // `whole`: as it is called outside its menu (whole_name); empty: as in it.
  QAction* command(QMenu& menu, const QString& text, const QList<QKeySequence>& keys, const std::function<void()>& run,
                   const QString& whole = {});
  void makeFileMenu();
  void makeEditMenu();
  void makeScenarioMenu();
  void makeViewMenu();
  void makeHelpMenu();
  void makeToolBar();
  void makeThemes(QMenu& menu);
  void setTheme(Theme theme);
  void restoreLayout();
  void copyCommandLine();
  void copyTable();
  void showPalette();
  void showShortcuts();
  void showAbout();

  // main_window_files.cpp
  [[nodiscard]] Session session() const;
  Result<void> openSession(const QString& path);
  void load(Session session, const QString& path, bool unsaved);
  void restore(Leftover leftover);
  void remember(const QString& key, const QString& path) const;
  void newSession();
  void chooseFile();
  void chooseModel();
  void chooseCluster();
  bool save();
  bool saveAs();
  bool mayDiscard();
  void exportViews();
  void reload();
  void fillRecent();
  void tell(const Result<void>& result);
  void showTitle();
  [[nodiscard]] bool unsaved() const { return unsaved_ || views_changed_ || !document_.clean(); }

  Document document_;
  Answers answers_;
  AnswerPointer answer_, baseline_;
  Latest<NearestFit> fit_{this};
  std::vector<View*> views_;
  QTabWidget* tabs_;
  AnswerBar* answer_bar_;
  QToolButton* stop_ = nullptr;  // there while something takes long
  QTimer stop_soon_;
  bool stopped_ = false;  // what was asked last has no answer
  Notice* notice_;
  SetupDock* setup_ = nullptr;
  ScenarioDock* scenarios_ = nullptr;
  QMenu* recent_menu_ = nullptr;
  QList<QAction*> scenario_actions_, tools_;  // of the tool bar; null: a gap
  QByteArray usual_layout_;
  QString path_;          // of the session; empty: it has none yet
  bool unsaved_ = false;  // was restored after a crash
  bool views_changed_ = false;  // since it was saved: what they show, not where one looks
  std::unique_ptr<Autosave> autosave_;
};

}  // namespace sibyl::gui
