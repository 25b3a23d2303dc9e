// Draws both views of three plans, light and dark, into the build folder's pictures/, to be looked at.
#include <QApplication>
#include <QDir>
#include <QPixmap>
#include <QStyle>
#include <QStyleFactory>
#include <fstream>

#include "gui/view/canvas/graph_view.h"
#include "gui/view/canvas/timeline_view.h"
#include "gui/view/canvas/views.h"
#include "oracle/trace/trace.h"
#include "tests/gui/canvas/answers.h"

namespace sibyl::gui {
namespace {

QPalette dark() {
  QPalette palette(QColor(45, 48, 52));
  palette.setColor(QPalette::Base, QColor(32, 34, 38));
  palette.setColor(QPalette::Text, QColor(230, 230, 230));
  palette.setColor(QPalette::WindowText, QColor(230, 230, 230));
  palette.setColor(QPalette::ButtonText, QColor(230, 230, 230));
  palette.setColor(QPalette::PlaceholderText, QColor(150, 150, 150));
  return palette;
}

struct Plan {
  const char* name;
  const char* model;
  std::map<std::string, std::string> options;
};

const std::vector<Plan>& plans() {
  static const std::vector<Plan> all = {
      {"data", "resnet50", {{"--devices", "64"}, {"--batch", "64/device"}}},
      {"pipeline",
       "gpt2-medium",
       {{"--devices", "8"},
        {"--parallel", "data=2,pipeline=4"},
        {"--batch", "32"},
        {"--micro-batches", "8"},
        {"--precision", "bf16"},
        {"--optimizer", "adam"}}},
      {"tensor",
       "gpt2",
       {{"--devices", "8"},
        {"--parallel", "data=2,tensor=4"},
        {"--batch", "16"},
        {"--precision", "bf16"},
        {"--optimizer", "adam"}}},
  };
  return all;
}

}  // namespace

class CanvasPicturesTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    QApplication::setStyle(QStyleFactory::create("Fusion"));
    QVERIFY(QDir().mkpath(folder()));
  }

  void pictures_data() {
    QTest::addColumn<int>("plan");
    QTest::addColumn<bool>("night");
    for (int i = 0; i < static_cast<int>(plans().size()); ++i)
      for (const bool night : {false, true})
        QTest::addRow("%s-%s", plans()[static_cast<std::size_t>(i)].name, night ? "dark" : "light") << i << night;
  }

  void pictures() {
    QFETCH(int, plan);
    QFETCH(bool, night);
    const Plan& drawn = plans()[static_cast<std::size_t>(plan)];
    static std::map<int, AnswerPointer> answers;
    AnswerPointer& answer = answers[plan];
    if (!answer) answer = test::answer(drawn.model, drawn.options);
    QVERIFY2(answer->report, answer->report ? "" : answer->report.error().message.c_str());
    QApplication::setPalette(night ? dark() : QApplication::style()->standardPalette());
    QWidget parent;
    parent.resize(1100, 700);
    parent.show();
    for (View* view : canvasViews(&parent)) {
      view->resize(1100, 700);
      view->show();
      test::settle(*view, answer);
      save(*view, drawn.name, night, "");
      if (auto* timeline = qobject_cast<TimelineView*>(view)) {
        compare(*timeline, *answer->study, drawn.name, night);
        touch(*timeline, drawn.name, night);
      }
      if (auto* graph = qobject_cast<GraphView*>(view)) touch(*graph, drawn.name, night);
      view->hide();
    }
    QApplication::setPalette(QApplication::style()->standardPalette());
  }

 private:
  static QString folder() { return QStringLiteral(SIBYL_BINARY_DIR) + "/pictures"; }

  static void save(View& view, const QString& plan, bool night, const QString& what) {
    QCoreApplication::processEvents();
    QVERIFY(
        view.grab().save(QString("%1/%2-%3%4-%5.png").arg(folder(), view.key(), plan, what, night ? "dark" : "light")));
  }

  // Beside a trace of a slower step, in which every span takes a tenth longer.
  static void compare(TimelineView& view, const Study& study, const QString& plan, bool night) {
    auto traced = trace_step(*study.graph, study.strategy, *study.cluster);
    std::vector<std::string> events;
    for (TraceProcess& process : traced->processes) {
      process.source = TraceSource::measured;
      process.name = "rank " + std::to_string(process.rank) + ", measured";
      for (TraceTrack& track : process.tracks)
        for (TraceSpan& span : track.spans) span.start *= 1.1, span.end *= 1.1;
      events.push_back(trace_events(process));
    }
    const QString path = folder() + "/real.json";
    std::ofstream(path.toStdString()) << trace_file(events, {});
    view.showMeasured(path);
    QTRY_VERIFY(!view.busy());
    save(view, plan, night, "-real");
    view.showMeasured({});
    QTRY_VERIFY(!view.busy());
  }

  // Zoomed in, an area selected, the critical path lit.
  static void touch(TimelineView& view, const QString& plan, bool night) {
    TimelineCanvas* canvas = view.canvas();
    const double end = canvas->timeline()->end();
    canvas->setCriticalLit(true);
    save(view, plan, night, "-critical");
    canvas->setCriticalLit(false);
    canvas->setWindow({0.40 * end, 0.52 * end});
    const int top = canvas->pointOf({0, 0}).y();
    QTest::mousePress(canvas->viewport(), Qt::LeftButton, Qt::ShiftModifier, {300, top});
    QMouseEvent move(QEvent::MouseMove, QPointF(800, top + 60), canvas->viewport()->mapToGlobal(QPointF(800, top + 60)),
                     Qt::NoButton, Qt::LeftButton, Qt::ShiftModifier);
    QApplication::sendEvent(canvas->viewport(), &move);
    QTest::mouseRelease(canvas->viewport(), Qt::LeftButton, Qt::ShiftModifier, {800, top + 60});
    view.search("conv|attn", true);
    save(view, plan, night, "-area");
  }

  // One block opened, one of its nodes selected; then everything.
  static void touch(GraphView& view, const QString& plan, bool night) {
    GraphCanvas* canvas = view.canvas();
    const std::size_t operations = canvas->model()->table().rows.size();
    view.pointAtOperation(QString::fromStdString(canvas->model()->name(OperationId{operations / 3})));
    save(view, plan, night, "-opened");
    canvas->fit();
    save(view, plan, night, "-all");
  }
};

}  // namespace sibyl::gui

QTEST_MAIN(sibyl::gui::CanvasPicturesTest)
#include "canvas_pictures_test.moc"
