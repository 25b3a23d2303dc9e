// The timeline of a predicted step, and below each rank's the real one from a trace file: what to search for, the
// surface, what lies under the pointer, the totals of a selected area.
#pragma once

#include "base/cancelled.h"
#include "gui/model/latest.h"
#include "gui/view/canvas/timeline_canvas.h"
#include "gui/view/view.h"

class QLabel;
class QLineEdit;
class QToolButton;

namespace sibyl::gui {

class TimelineTotals;

class TimelineView : public View {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);

  [[nodiscard]] QString key() const override { return QStringLiteral("timeline"); }
  [[nodiscard]] QString title() const override { return tr("Timeline"); }
  void showAnswer(const AnswerPointer& current, const AnswerPointer& baseline) override;
  void setStale(bool stale) override;
  [[nodiscard]] bool busy() const override { return work_.busy(); }
  void stop() override;
  void forget() override;
  void prepare() override;
  void renderFigure(QPainter& painter, const QSize& size) override;
  [[nodiscard]] std::optional<Table> table() const override;  // a span a row
  [[nodiscard]] QJsonObject viewState() const override;
  void restoreViewState(const QJsonObject& state) override;

  // The real step of a file that `sibyl train --trace` wrote; an empty path shows none.
  void showMeasured(const QString& path);
  void search(const QString& text, bool regularExpression);
  void step(int matches);  // to the next match, or back
  [[nodiscard]] TimelineCanvas* canvas() const { return canvas_; }
  [[nodiscard]] QString message() const;  // what is shown in place of a timeline; empty where there is one

 public slots:
  void pointAtOperation(const QString& operation) override;

 protected:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // What a job finds out.
  struct Traces {
    Timeline::Processes predicted, measured;
    std::shared_ptr<const Timeline> timeline;
    QString failure, measured_failure;
  };
  static Traces trace(const AnswerPointer& answer, const QString& path, Traces known, const Cancelled& cancelled);

  static QString hintText();
  QWidget* makeTools();
  void work();
  void dim();
  void deliver(Traces traces);
  void chooseMeasured();
  void searchAgain();
  void light(const std::function<bool(const std::string&)>& wanted);
  void showMatch(std::size_t match);
  void showCount();
  void showLegend();
  void showSpan();

  AnswerPointer answer_;
  bool pending_ = false, stale_ = false;
  QString measured_path_;
  Traces traces_;
  std::size_t match_ = 0;
  std::optional<TimeWindow> restored_;  // a session's, until there is something to look at

  TimelineCanvas* canvas_ = nullptr;
  QLabel* message_ = nullptr;
  QLineEdit* search_ = nullptr;
  QToolButton* expression_ = nullptr;
  QToolButton* previous_ = nullptr;
  QToolButton* next_ = nullptr;
  QToolButton* critical_ = nullptr;
  QToolButton* select_ = nullptr;
  QToolButton* real_ = nullptr;
  QLabel* count_ = nullptr;
  QLabel* span_ = nullptr;
  QLabel* legend_ = nullptr;
  QLabel* warning_ = nullptr;
  TimelineTotals* totals_ = nullptr;
  Latest<Traces> work_;
};

}  // namespace sibyl::gui
