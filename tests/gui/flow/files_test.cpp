// What becomes of files: what was not saved is found again after a crash, what views were given is kept, what is
// exported is all there, and where nobody sees a window it is not remembered.
#include <QAbstractButton>
#include <QListWidget>
#include <QMenu>
#include <QMessageBox>
#include <QTimer>

#include "gui/app/export_dialog.h"
#include "gui/app/headless.h"
#include "gui/model/recent_files.h"
#include "gui/view/charts/scaling_view.h"
#include "tests/gui/flow/driven_window.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

class FilesTest : public DrivenWindow {
  Q_OBJECT

  // Of the question that what follows asks.
  static void answerWith(QMessageBox::StandardButton button) {
    QTimer::singleShot(0, qApp, [button] {
      auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (question == nullptr) return QTest::qFail("nothing was asked", __FILE__, __LINE__);
      question->button(button)->click();
    });
  }

 private slots:
  void initTestCase() {
    openWindow();
    openModel("lenet");
    QVERIFY(window_->saveTo(folder_.filePath("session.json")).has_value());
  }

  // Who starts again with the same file has what was not saved of it; another file does not take its place.
  void whatACrashLeftIsKept() {
    const QString path = folder_.filePath("session.json");
    Session left{document().state(), {}};
    left.state.scenarios.front().name = "not saved";
    for (const QString& asked : {path, QStringLiteral("zoo:lenet"), QString()}) {
      const QTemporaryDir unsaved;
      {
        Autosave crashed(unsaved.path());
        crashed.touch([&] { return Leftover{left, path}; });
        crashed.flush();
        const QStringList files = QDir(unsaved.path()).entryList({"*.json"});
        QCOMPARE(files.size(), 1);
        QVERIFY(QFile::copy(QDir(unsaved.path()).filePath(files[0]), unsaved.filePath("left.json")));
      }
      MainWindow again;
      again.begin(unsaved.path(), asked);
      QCOMPARE(QString::fromStdString(again.document().state().scenarios.front().name), QStringLiteral("not saved"));
      QVERIFY(again.document().state() == left.state);
      QVERIFY(again.isWindowModified());
      QCOMPARE(again.path(), path);
    }
    const QTemporaryDir nothing;
    MainWindow fresh;
    fresh.begin(nothing.path(), path);
    QVERIFY(fresh.document().state() == document().state());
    QVERIFY(!fresh.isWindowModified());
    QCOMPARE(RecentFiles("recent/sessions").list(), QStringList{path});
  }

  void whatCannotBeReadOfACrashIsSaid() {
    const QTemporaryDir unsaved;
    const QString newer = unsaved.filePath("newer.json");
    QFile file(newer);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("{\"session\": {\"version\": 9}}") > 0);
    file.close();
    MainWindow window;
    window.begin(unsaved.path(), "zoo:lenet");
    QVERIFY2(window.notice().message().contains(newer), qPrintable(window.notice().message()));
    QCOMPARE(window.document().current().model, std::string("zoo:lenet"));  // asked for, and opened all the same
    QVERIFY(QFile::exists(newer));
  }

  // A file of runs, curves: nothing of it can be undone, but it is to be found again.
  void whatViewsWereGivenIsKept() {
    const QString path = folder_.filePath("session.json"), runs = folder_.filePath("runs.results.json");
    const QTemporaryDir unsaved;
    MainWindow window;
    window.begin(unsaved.path(), path);
    const auto scaling = [](const MainWindow& of) { return of.findChild<ScalingView*>(); };
    const auto shown = [&](const MainWindow& of) { return scaling(of)->viewState()["measured"].toString(); };
    QVERIFY(!window.isWindowModified());
    emit scaling(window)->lookedElsewhere();
    QVERIFY(!window.isWindowModified());  // nothing to ask about
    scaling(window)->loadMeasured(runs);
    QVERIFY(window.isWindowModified());
    QVERIFY(window.document().clean());
    const auto kept = [&] { return QDir(unsaved.path()).entryList({"*.json"}); };
    QTRY_COMPARE_WITH_TIMEOUT(kept().size(), 1, patience_ms);
    QVERIFY(QFile::rename(unsaved.filePath(kept().front()), unsaved.filePath("left.json")));
    MainWindow again;
    again.begin(unsaved.path(), {});
    QCOMPARE(shown(again), runs);
    QVERIFY(again.isWindowModified());
    const QString other = folder_.filePath("other.json");
    QVERIFY(again.saveTo(other).has_value());
    QVERIFY(!again.isWindowModified() && kept().isEmpty());
    MainWindow third;
    QVERIFY(third.open(other).has_value());
    QCOMPARE(shown(third), runs);
    QVERIFY(!third.isWindowModified());
  }

  void recentSessionsAreOpened() {
    const QTemporaryDir unsaved;
    const QString first = folder_.filePath("first.json"), second = folder_.filePath("second.json");
    MainWindow window;
    window.begin(unsaved.path(), {});
    for (const QString& path : {first, second}) {
      window.document().change("batch", [&](Scenario& s) { s.set("--batch", path == first ? "1" : "2"); });
      QVERIFY(window.saveTo(path).has_value());
    }
    QMenu* recent = nullptr;
    for (QMenu* menu : window.findChildren<QMenu*>())
      if (menu->title() == "Open &recent") recent = menu;
    QVERIFY(recent != nullptr);
    const auto offered = [recent] {
      emit recent->aboutToShow();
      QStringList names;
      for (const QAction* action : recent->actions()) names << action->text();
      return names;
    };
    QCOMPARE(offered().mid(0, 2), (QStringList{"second.json", "first.json"}));
    recent->actions()[1]->trigger();
    QCOMPARE(window.path(), first);
    QCOMPARE(window.document().current().option("--batch"), std::optional<std::string>("1"));
    QCOMPARE(offered().mid(0, 2), (QStringList{"first.json", "second.json"}));
    QVERIFY(QFile::remove(second));
    QVERIFY(!offered().contains("second.json"));
    // What is not saved is asked about first.
    window.document().change("batch", [](Scenario& s) { s.set("--batch", "3"); });
    emit recent->aboutToShow();
    answerWith(QMessageBox::Cancel);
    recent->actions()[0]->trigger();
    QCOMPARE(window.document().current().option("--batch"), std::optional<std::string>("3"));
    answerWith(QMessageBox::Discard);
    recent->actions()[0]->trigger();
    QCOMPARE(window.document().current().option("--batch"), std::optional<std::string>("1"));
    RecentFiles("recent/sessions").clear();
    QCOMPARE(offered(), QStringList{"None yet"});
    QVERIFY(!recent->actions()[0]->isEnabled());
  }

  void aSessionIsDropped() {
    const QString path = folder_.filePath("dropped.json");
    Session session;
    session.state.scenarios.resize(2);
    session.state.scenarios[0].name = "dropped";
    session.state.scenarios[1].name = "other";
    QVERIFY(writeSession(session, path).has_value());
    MainWindow window;
    window.document().change("batch", [](Scenario& s) { s.set("--batch", "3"); });
    answerWith(QMessageBox::Cancel);
    QVERIFY(dragAndDrop(window, path));
    QCOMPARE(window.document().count(), 1);
    answerWith(QMessageBox::Discard);
    QVERIFY(dragAndDrop(window, path));
    QVERIFY(window.document().state() == session.state);
    QCOMPARE(window.path(), path);
    QVERIFY(!window.isWindowModified());
    QVERIFY(dragAndDrop(window, folder_.filePath("nothing.json")));
    QVERIFY2(window.notice().message().contains("nothing.json"), qPrintable(window.notice().message()));
    QVERIFY(window.document().state() == session.state);
  }

  // What is done without anybody is nobody's to find among the recent ones.
  void anExportWithoutAWindowIsNotRemembered() {
    Session session;
    session.state.scenarios.front().model = folder_.filePath("lenet.onnx").toStdString();
    session.state.scenarios.front().cluster = "dgx-a100";
    session.state.scenarios.front().set("--devices", "2");
    const QString path = folder_.filePath("headless.json"), out = folder_.filePath("headless");
    QVERIFY(writeSession(session, path).has_value());
    const QStringList before = RecentFiles("recent/sessions").list();
    QVERIFY(exportHeadless(path, out).has_value());
    QVERIFY(QFile::exists(out + "/search.csv"));
    QVERIFY(exportHeadless(folder_.filePath("lenet.onnx"), out).has_value());
    QCOMPARE(RecentFiles("recent/sessions").list(), before);
    QVERIFY(RecentFiles("recent/models").list().isEmpty());
  }

  // Views that nobody has looked at are worked out first.
  void viewsAreExportedFromTheMenu() {
    activate();
    QTimer::singleShot(0, window_.get(), [this] {
      auto* dialog = window_->findChild<ExportDialog*>();
      auto* views = dialog->findChild<QListWidget*>();
      for (int row = 0; row < views->count(); ++row) views->item(row)->setCheckState(Qt::Checked);
      dialog->accept();
    });
    keys(*window_, Qt::Key_E, Qt::ControlModifier);
    QVERIFY2(window_->notice().message().contains("written to"), qPrintable(window_->notice().message()));
    const QDir out(folder_.filePath("export"));
    for (const View* view : window_->views())
      QVERIFY2(view->key() == "compare" || out.exists(view->key() + ".csv"), qPrintable(view->key()));
  }

  // What is in the folder is asked about by name; who keeps it can name another folder.
  void anExportAsksBeforeItReplaces() {
    const QDir out(folder_.filePath("asked"));
    ExportDialog dialog(window_->views(), window_->views().front(), out.path(), window_.get());
    const QString key = window_->views().front()->key();
    const auto accepted = [&] {
      dialog.setResult(QDialog::Rejected);
      dialog.accept();
      return dialog.result() == QDialog::Accepted;
    };
    QVERIFY(accepted());  // nothing is there, and nothing is asked
    QVERIFY(QDir().mkpath(out.path()));
    const QStringList names{key + ".csv", "other.csv"};
    for (const QString& name : names) {
      QFile file(out.filePath(name));
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write("mine") > 0);
    }
    QCOMPARE(filesInTheWay(dialog.views(), dialog.request()), QStringList{key + ".csv"});
    answerWith(QMessageBox::Cancel);
    QVERIFY(!accepted());
    answerWith(QMessageBox::Yes);
    QVERIFY(accepted());
  }

  void cleanupTestCase() { window_.reset(); }
};

QTEST_MAIN(FilesTest)
#include "files_test.moc"
