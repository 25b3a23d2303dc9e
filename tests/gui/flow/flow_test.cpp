// What a person does, in a real window: open a model, change the strategy, drag a slider, pin, compare, undo, save,
// reopen, export. The command line that the window gives is run, and must answer the same. Screenshots: screenshots/ in
// the build folder.
#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QStandardPaths>
#include <QStyleOptionSlider>
#include <QTemporaryDir>
#include <QTest>

#include "gui/app/exporter.h"
#include "gui/app/main_window.h"
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

  void pictures() {
    const QString folder = QStringLiteral(SIBYL_BINARY_DIR "/screenshots");
    QVERIFY(QDir().mkpath(folder));
    for (const auto& [theme, name] : {std::pair{Theme::light, "light"}, {Theme::dark, "dark"}}) {
      applyTheme(*qApp, theme);
      for (const QSize size : {QSize(1280, 800), QSize(1920, 1080)}) {
        window_->resize(size);
        for (View* view : window_->views()) {
          window_->showView(view->key());
          settle();
          QTest::qWait(50);
          QVERIFY(
              window_->grab().save(QStringLiteral("%1/%2-%3-%4.png").arg(folder, view->key(), name).arg(size.width())));
        }
      }
      QWidget* setup = window_->setup().findChild<QScrollArea*>()->widget();
      QVERIFY(setup->grab().save(QStringLiteral("%1/setup-%2.png").arg(folder, name)));
    }
  }

  void cleanupTestCase() { window_.reset(); }

 private:
  Document& document() { return window_->document(); }
  void settle() {
    QTest::qWait(1);
    QVERIFY(QTest::qWaitFor([this] { return window_->settled() && window_->answer(); }, patience_ms));
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
