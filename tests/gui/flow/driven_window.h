// A window that tests drive as a person does: its controls by name, its answers when they have come. Screenshots:
// screenshots/ in the build folder.
#pragma once

#include <QApplication>
#include <QDir>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QMimeData>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "gui/app/main_window.h"
#include "models/zoo/zoo.h"

namespace sibyl::gui::test {

inline constexpr int patience_ms = 300'000;

inline void keys(QWidget& window, Qt::Key key, Qt::KeyboardModifiers modifiers) {
  QTest::keyClick(&window, key, modifiers);
}

// Is it taken?
inline bool dragAndDrop(QWidget& window, const QString& path) {
  QMimeData file;
  file.setUrls({QUrl::fromLocalFile(path)});
  const QPoint where(300, 300);
  QDragEnterEvent enter(where, Qt::CopyAction, &file, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &enter);
  QDropEvent drop(where, Qt::CopyAction, &file, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &drop);
  return enter.isAccepted();
}

class DrivenWindow : public QObject {
 protected:
  void openWindow() {
    QVERIFY(folder_.isValid());
    QStandardPaths::setTestModeEnabled(true);
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder_.path());
    QApplication::setOrganizationName("sibyl");
    QApplication::setApplicationName("sibyl-gui-test");
    applyTheme(*qApp, Theme::light);
    window_ = std::make_unique<MainWindow>();
    window_->resize(1280, 800);
    window_->QWidget::show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    activate();
  }
  // Where no window manager does: keys are the active window's.
  void activate() {
    window_->activateWindow();
    QApplication::setActiveWindow(window_.get());
    QVERIFY(QTest::qWaitForWindowActive(window_.get()));
  }
  // Of a model of the zoo, which is written into the folder.
  void openModel(const QString& name) {
    const QString path = folder_.filePath(name + ".onnx");
    QVERIFY(write_zoo_model(name.toStdString(), path.toStdString()).has_value());
    QVERIFY(window_->open(path).has_value());
    settle();
    QVERIFY(window_->answer()->report.has_value());
    QCOMPARE(document().current().model, path.toStdString());
  }
  Document& document() { return window_->document(); }
  void settle() {
    QTest::qWait(1);
    QVERIFY(QTest::qWaitFor([this] { return window_->settled() && window_->answer(); }, patience_ms));
  }
  void undoTo(int steps) {
    while (document().undoStack().index() > steps) document().undoStack().undo();
    settle();
  }
  static void picture(QWidget& widget, const QString& name) {
    const QString folder = QStringLiteral(SIBYL_BINARY_DIR "/screenshots");
    QVERIFY(QDir().mkpath(folder));
    QTest::qWait(50);
    const QString twice = widget.devicePixelRatioF() > 1 ? QStringLiteral("-2x") : QString();
    QVERIFY(widget.grab().save(QStringLiteral("%1/%2%3.png").arg(folder, name, twice)));
  }
  template <class Control>
  Control& control(const char* name) {
    auto* found = window_->findChild<Control*>(QString::fromLatin1(name));
    if (found == nullptr) qFatal("there is no control called %s", name);
    return *found;
  }

  QTemporaryDir folder_;
  std::unique_ptr<MainWindow> window_;
};

}  // namespace sibyl::gui::test
