// What becomes of files: what was not saved is found again after a crash, what views were given is kept, what is
// exported is all there, and where nobody sees a window it is not remembered.
#include <QListWidget>
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

  void cleanupTestCase() { window_.reset(); }
};

QTEST_MAIN(FilesTest)
#include "files_test.moc"
