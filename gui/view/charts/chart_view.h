// What the views made of charts and tables have in common: they work only while they are seen, say what is wrong with
// the question in their place, and lie under a veil while a newer answer is on its way.
#pragma once

#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

#include "gui/model/latest.h"
#include "gui/view/progress_line.h"
#include "gui/view/view.h"
#include "gui/view/wide_table.h"
#include "gui/view/words.h"

namespace sibyl::gui {

class ChartView : public View {
  Q_OBJECT

 public:
  explicit ChartView(QWidget* parent);

  void showAnswer(const AnswerPointer& current, const AnswerPointer& baseline) final;
  void setStale(bool stale) override;
  void prepare() override { refreshIfNeeded(); }
  void renderFigure(QPainter& painter, const QSize& size) final;
  [[nodiscard]] std::optional<Table> table() const final { return answered() ? chartTable() : std::nullopt; }

 protected:
  // Shows current() and baseline(), which has a prediction where it is not null.
  virtual void refresh() = 0;
  // Draws what is known already: after a change of colours or of what is looked at.
  virtual void redraw() = 0;
  virtual void renderCharts(QPainter& painter, const QSize& size) = 0;
  // Only asked where there is a prediction.
  [[nodiscard]] virtual std::optional<Table> chartTable() const = 0;

  // Where there is a prediction to show.
  [[nodiscard]] bool answered() const { return current_ && current_->study && current_->report.has_value(); }
  // Another question is asked by now than current() answers.
  [[nodiscard]] bool stale() const { return stale_; }
  [[nodiscard]] const Answer& current() const { return *current_; }
  [[nodiscard]] const Prediction& prediction() const { return current_->report->prediction; }
  // Of the pinned baseline, if there is one that could be predicted.
  [[nodiscard]] const Answer* baseline() const;
  [[nodiscard]] QVBoxLayout* body() const { return body_; }
  // The question has become another one: refreshes now, or when it is seen again.
  void refreshAgain();
  // While the view's own job is at work on a newer answer, too, what is shown is dimmed.
  void setWorking(bool working);

  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  class Veil;
  void refreshIfNeeded();

  AnswerPointer current_, baseline_;
  void makeRoom();

  QLabel* message_;
  QScrollArea* scroll_;  // where the window is too small for all of it
  QWidget* content_;
  QVBoxLayout* body_;
  Veil* veil_;
  void dim();
  bool needed_ = true, stale_ = false, working_ = false;
};

}  // namespace sibyl::gui
