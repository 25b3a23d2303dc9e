// Sessions: what is written is read back, paths travel with the folder, and a bad file says where it is bad.
#include <QFile>
#include <QJsonDocument>
#include <QTemporaryDir>
#include <QTest>

#include "gui/model/autosave.h"
#include "gui/model/session.h"
#include "tests/gui/model/tests.h"

using namespace sibyl;
using namespace sibyl::gui;

namespace {

Session example(const QString& folder) {
  Scenario first;
  first.name = "one";
  first.model = (folder + "/models/m.onnx").toStdString();
  first.cluster = "dgx-a100";
  first.options = {{"--batch", {"64/device"}}, {"--dim", {"seq=128", "width=3"}}, {"--no-overlap", {""}}};
  first.changes = {"nic.bandwidth=2x", "link.background=0.3"};
  first.device_hour_price = 2.5;
  first.epoch_samples = 1'281'167;
  Scenario second;
  second.name = "zwei, ä";
  second.model = "zoo:resnet50";
  second.cluster = (folder + "/c.yaml").toStdString();
  Session session;
  session.state.scenarios = {first, second};
  session.state.current = 1;
  session.state.baseline = first;
  session.viewStates["scaling"] = {{"log", true}, {"measured", folder + "/runs/a.results.json"}};
  session.viewStates["timeline"] = {{"measured", ""}};
  return session;
}

// As a program does that ended without being asked: its file lies there, and nobody holds it.
QString leave(const QTemporaryDir& folder, const Session& session) {
  const QString left = folder.filePath("left.json");
  Autosave crashed(folder.path());
  crashed.touch([&] { return Leftover{session, "/data/s.json"}; });
  crashed.flush();
  if (Autosave(folder.path()).takeLeftovers().newest) qFatal("it runs yet");
  const QStringList files = QDir(folder.path()).entryList({"*.json"});
  if (files.size() != 1 || !QFile::copy(folder.filePath(files[0]), left)) qFatal("nothing was left");
  return left;
}

QByteArray valid() { return sessionBytes(example("/data"), "/data"); }

}  // namespace

class SessionTest : public QObject {
  Q_OBJECT

 private slots:
  void whatIsWrittenIsReadBack() {
    const QTemporaryDir folder;
    const Session session = example(folder.path());
    const QString path = folder.filePath("s.json");
    QVERIFY(writeSession(session, path).has_value());
    const auto read = readSession(path);
    QVERIFY2(read.has_value(), read ? "" : to_string(read.error()).c_str());
    QVERIFY(read->state == session.state);
    QCOMPARE(read->viewStates, session.viewStates);
  }

  void pathsAreRelativeToTheFile() {
    const QByteArray bytes = valid();
    QVERIFY(bytes.contains("\"models/m.onnx\""));
    QVERIFY(!bytes.contains("/data"));
    const auto moved = parseSession(bytes, "/elsewhere", "s.json");
    QCOMPARE(moved->state.scenarios[0].model, std::string("/elsewhere/models/m.onnx"));
    QCOMPARE(moved->state.scenarios[0].cluster, std::string("dgx-a100"));
    QCOMPARE(moved->state.scenarios[1].model, std::string("zoo:resnet50"));
    QCOMPARE(moved->state.scenarios[1].cluster, std::string("/elsewhere/c.yaml"));
    QCOMPARE(moved->viewStates["scaling"]["measured"].toString(), QString("/elsewhere/runs/a.results.json"));
    QCOMPARE(moved->viewStates["timeline"]["measured"].toString(), QString());
  }

  void aBadFileSaysWhere_data() {
    QTest::addColumn<QByteArray>("from");
    QTest::addColumn<QByteArray>("to");
    QTest::addColumn<QString>("where");
    QTest::newRow("newer") << QByteArray("\"version\": 1") << QByteArray("\"version\": 2") << "$.version";
    QTest::newRow("other file") << QByteArray("sibyl-session") << QByteArray("sibyl-scale") << "$.schema";
    QTest::newRow("name") << QByteArray("\"name\": \"zwei") << QByteArray("\"nam\": \"zwei") << "$.scenarios[1].name";
    QTest::newRow("option") << QByteArray("\"64/device\"") << QByteArray("64") << "$.baseline.options.--batch[0]";
    QTest::newRow("current") << QByteArray("\"current\": 1") << QByteArray("\"current\": 2") << "$.current";
    QTest::newRow("price") << QByteArray("2.5") << QByteArray("-1") << "device_hour_price";
    QTest::newRow("syntax") << QByteArray("\"views\": {") << QByteArray("\"views\": [") << "line ";
  }
  void aBadFileSaysWhere() {
    QFETCH(QByteArray, from);
    QFETCH(QByteArray, to);
    QFETCH(QString, where);
    QByteArray bytes = valid();
    QVERIFY(bytes.contains(from));
    bytes.replace(from, to);
    const auto read = parseSession(bytes, {}, "s.json");
    QVERIFY(!read.has_value());
    QVERIFY(read.error().code == ErrorCode::bad_input);
    const QString place = QString::fromStdString(read.error().where);
    QVERIFY2(place.startsWith("s.json: "), qPrintable(place));
    // "64/device" and the price stand in the first scenario and in the baseline; either may be met first.
    if (where.startsWith("$.baseline"))
      QVERIFY2(place.endsWith("options.--batch[0]"), qPrintable(place));
    else
      QVERIFY2(place.contains(where), qPrintable(place));
  }

  // A hundred files with a byte changed: an answer or an Error, never a crash.
  void brokenFilesAreRefused() {
    const QByteArray bytes = valid();
    for (qsizetype i = 0; i < bytes.size(); i += bytes.size() / 100) {
      QByteArray broken = bytes;
      broken[i] = broken[i] == '{' ? '[' : '{';
      (void)parseSession(broken, {}, "s.json");
      (void)parseSession(bytes.left(i), {}, "s.json");
    }
  }

  void aFileThatCannotBeWrittenIsAnError() {
    const auto written = writeSession(example("/data"), "/nonexistent/folder/s.json");
    QVERIFY(!written.has_value());
    QVERIFY(!readSession("/nonexistent/s.json").has_value());
  }

  void whatACrashLeftIsFound() {
    const QTemporaryDir folder;
    const Session session = example("/data");
    const QString left = leave(folder, session);
    Autosave next(folder.path());
    const auto found = next.takeLeftovers();
    QVERIFY(found.newest.has_value() && found.unreadable.empty());
    QVERIFY(found.newest->session.state == session.state);
    QCOMPARE(found.newest->path, QString("/data/s.json"));
    QVERIFY(!Autosave(folder.path()).takeLeftovers().newest);  // once
    // It is there until it is written anew, by whoever took it.
    QVERIFY(QFile::exists(left));
    next.touch([&] { return *found.newest; });
    QVERIFY(QFile::exists(left));
    next.flush();
    QVERIFY(!QFile::exists(left));
    QCOMPARE(QDir(folder.path()).entryList({"*.json"}).size(), 1);
  }

  void whatIsFoundStaysUntilItIsSafe() {
    const QTemporaryDir folder;
    const QString left = leave(folder, example("/data"));
    {
      Autosave next(folder.path());
      const QString own = QFileInfo(QDir(folder.path()).entryList({"*.lock"}).value(0)).completeBaseName();
      QVERIFY(QDir(folder.path()).mkpath(own + ".json/in the way"));
      const auto found = next.takeLeftovers();
      QVERIFY(found.newest.has_value());
      next.touch([&] { return *found.newest; });
      next.flush();  // cannot be written
      QVERIFY(QFile::exists(left));
    }
    QVERIFY(QFile::exists(left));
    Autosave after(folder.path());
    QVERIFY(after.takeLeftovers().newest.has_value());
    after.clear();  // nobody wants it
    QVERIFY(!QFile::exists(left));
  }

  void whatCannotBeReadStays() {
    const QTemporaryDir folder;
    const QString newer = leave(folder, example("/data")), broken = folder.filePath("broken.json");
    QFile file(newer);
    QVERIFY(file.open(QIODevice::ReadWrite));
    const QByteArray bytes = file.readAll().replace("\"version\": 1", "\"version\": 2");
    QVERIFY(file.seek(0) && file.write(bytes) == bytes.size());
    file.close();
    QFile half(broken);
    QVERIFY(half.open(QIODevice::WriteOnly) && half.write(bytes.left(100)) == 100);
    half.close();
    Autosave next(folder.path());
    const auto found = next.takeLeftovers();
    QVERIFY(!found.newest);
    QCOMPARE(found.unreadable.size(), std::size_t{2});
    QStringList where;
    for (const Error& error : found.unreadable) where << QString::fromStdString(error.where);
    QVERIFY2(where.join('\n').contains(newer) && where.join('\n').contains(broken), qPrintable(where.join('\n')));
    next.touch([] { return Leftover{example("/data"), {}}; });
    next.flush();
    next.clear();
    QVERIFY(QFile::exists(newer) && QFile::exists(broken));
  }
};

std::unique_ptr<QObject> sessionTest() { return std::make_unique<SessionTest>(); }

#include "session_test.moc"
