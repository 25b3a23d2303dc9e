// What a person does, in a real window: open a model, change the strategy, drag a slider, pin, compare, undo, save,
// reopen, export. The command line that the window gives is run, and must answer the same. Screenshots: screenshots/ in
// the build folder.
#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QDir>
#include <QHeaderView>
#include <QJsonDocument>
#include <QJsonObject>
#include <QListWidget>
#include <QMimeData>
#include <QProcess>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QStandardPaths>
#include <QStyleOptionSlider>
#include <QTemporaryDir>
#include <QTest>

#include "base/quantity.h"
#include "gui/app/command_palette.h"
#include "gui/app/export_dialog.h"
#include "gui/app/exporter.h"
#include "gui/app/main_window.h"
#include "gui/app/shortcuts_dialog.h"
#include "gui/view/compare/compare_view.h"
#include "models/zoo/zoo.h"

using namespace sibyl;
using namespace sibyl::gui;

namespace {

constexpr int patience_ms = 300'000;

QPoint handleOf(const QSlider& slider) {
  QStyleOptionSlider option;
  option.initFrom(&slider);
  option.orientation = slider.orientation();
  option.minimum = slider.minimum();
  option.maximum = slider.maximum();
  option.sliderPosition = slider.sliderPosition();
  option.sliderValue = slider.value();
  return slider.style()->subControlRect(QStyle::CC_Slider, &option, QStyle::SC_SliderHandle, &slider).center();
}

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

void keys(QWidget& window, Qt::Key key, Qt::KeyboardModifiers modifiers) { QTest::keyClick(&window, key, modifiers); }

}  // namespace

class FlowTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
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
    QApplication::setActiveWindow(window_.get());  // where no window manager does, keys find it all the same
  }

  void openAModel() {
    const QString path = folder_.filePath("gpt2-mini.onnx");
    QVERIFY(write_zoo_model("gpt2-mini", path.toStdString()).has_value());
    QVERIFY(window_->open(path).has_value());
    settle();
    QVERIFY(window_->answer()->report.has_value());
    QCOMPARE(document().current().model, path.toStdString());
    QCOMPARE(document().current().cluster, std::string("dgx-a100"));
  }

  void aFileIsDropped() {
    const int steps = document().undoStack().index();
    const QString path = folder_.filePath("lenet.onnx");
    QVERIFY(write_zoo_model("lenet", path.toStdString()).has_value());
    QMimeData file;
    file.setUrls({QUrl::fromLocalFile(path)});
    QDragEnterEvent enter(QPoint(300, 300), Qt::CopyAction, &file, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_.get(), &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop(QPointF(300, 300), Qt::CopyAction, &file, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_.get(), &drop);
    QCOMPARE(document().current().model, path.toStdString());
    while (document().undoStack().index() > steps) document().undoStack().undo();
    settle();
  }

  void whatIsWrongIsSaidAndNothingIsLost() {
    const State before = document().state();
    const QString path = folder_.filePath("broken.json");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("{\"schema\": \"sibyl-session\", \"version\": 9}") > 0);
    file.close();
    const auto opened = window_->open(path);
    QVERIFY(!opened.has_value());
    QVERIFY(QString::fromStdString(opened.error().where).contains("$.version"));
    QVERIFY(document().state() == before);
  }

  void changeTheStrategy() {
    control<QSpinBox>("--devices").setValue(8);
    settle();
    auto& tensor = control<QSpinBox>("factor tensor");
    tensor.setFocus();
    QTest::keyClick(&tensor, Qt::Key_Up);
    QCOMPARE(tensor.value(), 2);
    settle();
    QCOMPARE(document().current().option("--parallel"), std::optional<std::string>("tensor=2"));
    QCOMPARE(window_->answer()->study->strategy.data, 4);
    QVERIFY(window_->answer()->report.has_value());
  }

  void aFactorThatDoesNotDivideIsSaid() {
    control<QSpinBox>("factor pipeline").setValue(3);
    settle();
    QVERIFY(!window_->answer()->report.has_value());
    QVERIFY(!window_->answerBar().sentence().isEmpty());
    keys(*window_, Qt::Key_Z, Qt::ControlModifier);
    settle();
    QVERIFY(window_->answer()->report.has_value());
  }

  void whatDoesNotFitIsOfferedASettingThatDoes() {
    const int steps = document().undoStack().index();
    document().change("Change batch", [](Scenario& scenario) { scenario.set("--batch", "16384/device"); });
    settle();
    QVERIFY(!window_->answer()->report->prediction.fits);
    auto& button = control<QPushButton>("smaller batch");
    QVERIFY(button.isVisible());
    QTest::mouseClick(&button, Qt::LeftButton);
    settle();
    QVERIFY(window_->answer()->report->prediction.fits);
    QVERIFY(!button.isVisible());
    while (document().undoStack().index() > steps) document().undoStack().undo();
    settle();
  }

  void dragASlider() {
    auto& slider = control<QSlider>("batch slider");
    const int steps = document().undoStack().index();
    const double before = window_->answer()->report->prediction.step_time.value();
    QPoint at = handleOf(slider);
    QTest::mousePress(&slider, Qt::LeftButton, {}, at);
    for (int i = 0; i < 10; ++i) {
      at += QPoint(slider.width() / 20, 0);
      QTest::mouseMove(&slider, at);
      QTest::qWait(20);
    }
    QTest::mouseRelease(&slider, Qt::LeftButton, {}, at);
    settle();
    QCOMPARE(document().undoStack().index(), steps + 1);
    QVERIFY(window_->answer()->report.has_value());
    QVERIFY(window_->answer()->report->prediction.step_time.value() > before);
  }

  void aFormulaIsShownUntilTheAnswerComes() {
    auto* answers = window_->findChild<Answers*>({}, Qt::FindDirectChildrenOnly);
    QStringList shown, said;
    const auto once = connect(answers, &Answers::foreseen, this, [&](const Foreseen& foreseen) {
      shown << window_->answerBar().stepTime();
      said << QString::fromStdString(to_string(foreseen.answer.step_time));
    });
    const int steps = document().undoStack().index();
    for (int batch = 100; batch < 120 && shown.isEmpty(); ++batch) {  // the answer may be the first
      document().change(
          "batch", [batch](Scenario& s) { s.set("--batch", std::to_string(2 * batch)); }, "slider");
      settle();
    }
    disconnect(once);
    QVERIFY(!shown.isEmpty());
    QCOMPARE(shown, said);
    QCOMPARE(window_->answerBar().stepTime(),
             QString::fromStdString(to_string(window_->answer()->report->prediction.step_time)));
    while (document().undoStack().index() > steps) document().undoStack().undo();
    settle();
  }

  void nodesOfOtherSizesAndDevices() {
    const int steps = document().undoStack().index();
    auto& each = control<QSpinBox>("--devices-per-node");
    QVERIFY2(each.text().startsWith("8 "), qPrintable(each.text()));  // what the cluster has
    each.setFocus();
    QTest::keyClick(&each, Qt::Key_Down);
    QCOMPARE(each.value(), 7);
    each.setValue(4);
    settle();
    QCOMPARE(document().undoStack().index(), steps + 1);
    QCOMPARE(window_->answer()->study->cluster->devices_per_node, 4);
    auto& kind = control<QComboBox>("--device-type");
    const double before = window_->answer()->report->prediction.step_time.value();
    kind.setCurrentIndex(kind.findText("h100-sxm"));
    emit kind.activated(kind.currentIndex());
    settle();
    QVERIFY(window_->answer()->report->prediction.step_time.value() < before);
    QVERIFY(QString::fromStdString(command_line(document().current())).contains("--device-type=h100-sxm"));
    window_->setCluster("dgx-h100");  // its own size, its own devices
    QVERIFY(!document().current().option("--device-type") && !document().current().option("--devices-per-node"));
    while (document().undoStack().index() > steps) document().undoStack().undo();
    settle();
    QCOMPARE(each.value(), 0);
    QCOMPARE(kind.currentIndex(), 0);
  }

  void stateThatLiesElsewhereIsSaid() {
    const int steps = document().undoStack().index();
    document().change("adam", [](Scenario& s) { s.set("--optimizer", "adam"); });
    auto& offload = control<QComboBox>("--offload");
    emit offload.textActivated("optimizer");
    settle();
    QCOMPARE(document().current().option("--offload"), std::optional<std::string>("optimizer"));
    QVERIFY(window_->answer()->report->prediction.host_memory.value() > 0);
    QStringList words;
    for (const QLabel* label : window_->answerBar().findChildren<QLabel*>()) words << label->text();
    QVERIFY2(words.join('\n').contains("of each host"), qPrintable(words.join('\n')));
    emit offload.textActivated("parameters");
    settle();
    words.clear();
    for (const QLabel* label : window_->setup().strategy().findChildren<QLabel*>())
      if (label->isVisible()) words << label->text();
    QVERIFY2(words.join('\n').contains("parameters do not lie outside"), qPrintable(words.join('\n')));
    emit offload.textActivated("nothing");
    QVERIFY(!document().current().option("--offload"));
    while (document().undoStack().index() > steps) document().undoStack().undo();
    settle();
  }

  void whatTakesLongIsStopped() {
    window_->showView("scaling");
    settle();
    View* scaling = nullptr;
    for (View* view : window_->views())
      if (view->key() == "scaling") scaling = view;
    bool stopped = false;
    // The views have begun when the window has shown the answer, and none has ended.
    const auto once = connect(window_.get(), &MainWindow::answered, this, [&] {
      if (std::exchange(stopped, true)) return;
      QVERIFY(scaling->busy());
      window_->findChild<QToolButton*>("stop")->click();
      QVERIFY(!scaling->busy());
    });
    const int steps = document().undoStack().index();
    document().change("batch", [](Scenario& s) { s.set("--batch", "24/device"); });
    settle();
    disconnect(once);
    QVERIFY(stopped);
    QStringList words;
    for (const QLabel* label : scaling->findChildren<QLabel*>()) words << label->text();
    QVERIFY2(words.join('\n').contains("Stopped"), qPrintable(words.join('\n')));
    while (document().undoStack().index() > steps) document().undoStack().undo();
    settle();
  }

  void pinAndCompare() {
    keys(*window_, Qt::Key_B, Qt::ControlModifier);
    QVERIFY(document().state().baseline.has_value());
    control<QComboBox>("--precision").setCurrentText("bf16");
    emit control<QComboBox>("--precision").textActivated("bf16");
    settle();
    QCOMPARE(document().current().option("--precision"), std::optional<std::string>("bf16"));
    keys(*window_, Qt::Key_M, Qt::ControlModifier);
    settle();
    const auto* compare = window_->findChild<CompareView*>();
    QVERIFY(compare->isVisible());
    QVERIFY2(compare->verdict().contains("faster"), qPrintable(compare->verdict()));
    QVERIFY(compare->table().has_value());
  }

  // The command line reproduces what the window shows, with a part of the cluster changed.
  void theCommandLineAnswersTheSame() {
    document().change("nic", [](Scenario& s) { s.changes = {"nic.bandwidth=2x", "device.memory=60GB"}; });
    settle();
    keys(*window_, Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
    const QString command = QApplication::clipboard()->text();
    QVERIFY2(command.startsWith("sibyl predict "), qPrintable(command));
    QProcess process;
    process.start("sh",
                  {"-c", QString(command).replace("sibyl predict ", SIBYL_BINARY_DIR "/bin/sibyl predict --json ")});
    QVERIFY(process.waitForFinished(patience_ms));
    const QJsonObject json = QJsonDocument::fromJson(process.readAllStandardOutput()).object();
    QVERIFY2(json.contains("step_time_s"), process.readAllStandardError().constData());
    QCOMPARE(json["step_time_s"].toDouble(), window_->answer()->report->prediction.step_time.value());
    keys(*window_, Qt::Key_Z, Qt::ControlModifier);
    settle();
  }

  void undoAndRedo() {
    const State now = document().state();
    keys(*window_, Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(!document().current().option("--precision"));
    keys(*window_, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(document().state() == now);
    settle();
  }

  void saveAndReopen() {
    const QString path = folder_.filePath("session.json");
    QVERIFY(window_->saveTo(path).has_value());
    QVERIFY(!window_->isWindowModified());
    MainWindow other;
    QVERIFY(other.open(path).has_value());
    QVERIFY(other.document().state() == document().state());
    QTRY_VERIFY_WITH_TIMEOUT(other.settled() && other.answer(), patience_ms);
    QCOMPARE(other.answer()->report->prediction.step_time.value(),
             window_->answer()->report->prediction.step_time.value());
  }

  void aWindowIsClosedWhileItWorks() {
    auto other = std::make_unique<MainWindow>();
    QSignalSpy answered(other.get(), &MainWindow::answered);
    QVERIFY(other->open(folder_.filePath("session.json")).has_value());
    other->showView("scaling");
    other->QWidget::show();
    QVERIFY(answered.wait(patience_ms));
    if (other->settled()) other->document().change("batch", [](Scenario& s) { s.set("--batch", "40/device"); });
    QVERIFY(!other->settled());
    other.reset();
    window_->activateWindow();  // no window manager does, and shortcuts are the active window's
    QVERIFY(QTest::qWaitForWindowActive(window_.get()));
  }

  void theBestIsFound() {
    document().change("fewer", [](Scenario& s) {
      s.set("--devices", "2");
      s.set("--batch", "16");
      s.clear("--parallel");
    });
    settle();
    window_->setup().strategy().findBest();
    QTRY_VERIFY_WITH_TIMEOUT(!window_->setup().strategy().searching(), patience_ms);
    settle();
    QVERIFY(document().current().option("--parallel").value_or("").starts_with("data="));
    QVERIFY(window_->answer()->report.has_value());
  }

  void exportEverything() {
    for (View* view : window_->views()) view->prepare();
    settle();
    ExportRequest request;
    request.folder = folder_.filePath("out");
    request.figures = {FigureFormat::png, FigureFormat::svg, FigureFormat::pdf};
    const auto written = exportAll(window_->views(), *window_->answer(), request);
    QVERIFY2(written.has_value(), written ? "" : to_string(written.error()).c_str());
    for (const QString& file : *written) QVERIFY2(QFileInfo(file).size() > 100, qPrintable(file));
    QVERIFY(written->contains(QDir(request.folder).filePath("report.html")));
    request.folder = "/proc/nowhere";
    QVERIFY(!exportAll(window_->views(), *window_->answer(), request).has_value());
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

 private:
  Document& document() { return window_->document(); }
  void settle() {
    QTest::qWait(1);
    QVERIFY(QTest::qWaitFor([this] { return window_->settled() && window_->answer(); }, patience_ms));
  }
  static QString pictureFolder() { return QStringLiteral(SIBYL_BINARY_DIR "/screenshots"); }
  void picture(QWidget& widget, const QString& name) {
    QVERIFY(QDir().mkpath(pictureFolder()));
    QTest::qWait(50);
    const QString twice = widget.devicePixelRatioF() > 1 ? QStringLiteral("-2x") : QString();
    QVERIFY(widget.grab().save(QStringLiteral("%1/%2%3.png").arg(pictureFolder(), name, twice)));
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

QTEST_MAIN(FlowTest)
#include "flow_test.moc"
