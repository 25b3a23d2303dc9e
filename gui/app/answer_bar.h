// What the library answers, in one look, always in sight: step time with its interval, throughput, an epoch's time and
// price, memory against what there is, what holds the step back, how much is only estimated; and how it differs from
// the pinned baseline. While a newer answer is on its way, this one is dimmed; and so it stays, with a word beside it,
// where that one was given up.
#pragma once

#include <QGraphicsOpacityEffect>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QWidget>

#include "gui/app/memory_bar.h"
#include "gui/model/answers.h"
#include "gui/model/study.h"
#include "oracle/nearest_fit.h"

namespace sibyl::gui {

// A caption, a number, and what is to be said of it.
class Figure : public QWidget {
  Q_OBJECT

 public:
  Figure(const QString& caption, const QString& meaning, QWidget* parent);
  void setCaption(const QString& caption);
  void display(const QString& value, const QString& note);
  // `ratio`: to the baseline; 1: none is shown. `lessIsBetter` decides the colour. Beside the value, and beside the
  // note.
  void showChange(double ratio, bool lessIsBetter) { mark(*change_, ratio, lessIsBetter); }
  void showNoteChange(double ratio, bool lessIsBetter) { mark(*note_change_, ratio, lessIsBetter); }
  void addBelow(QWidget* widget);
  [[nodiscard]] QString value() const { return value_->text(); }

 private:
  void mark(QLabel& change, double ratio, bool lessIsBetter) const;

  QString meaning_;
  QLabel *caption_, *value_, *note_, *change_, *note_change_;
};

class AnswerBar : public QWidget {
  Q_OBJECT

 public:
  explicit AnswerBar(QWidget* parent);

  void showAnswer(const AnswerPointer& current, const AnswerPointer& baseline);
  // What a formula says until the answer comes: its figures, and nothing of what holds the step back.
  void foresee(const Foreseen& foreseen);
  // What would fit, of an answer that does not.
  void offer(const NearestFit& fit, const Strategy& strategy);
  void setStale(bool stale);
  // Until something is asked again. `answered`: there was an answer before, which is shown.
  void showStopped(bool answered);

  [[nodiscard]] QString stepTime() const { return step_->value(); }
  [[nodiscard]] QString sentence() const { return sentence_->text(); }
  [[nodiscard]] QString stopped() const { return stopped_->isHidden() ? QString() : stopped_->text(); }

 signals:
  // An option of `sibyl predict` and its value, which would make it fit.
  void remedyChosen(const QString& option, const QString& value);

 private:
  void showPrediction(const Prediction& prediction);
  void showCost(const Scenario& scenario, const Evaluation& step, std::int64_t batch, int devices);
  void showMemory(Bytes needed, Bytes capacity, bool fits, const QString& elsewhere);
  void setForeseen(bool foreseen);
  void showRatios(const Ratios& against);
  // Null where nothing is pinned, or it cannot be predicted.
  [[nodiscard]] const Prediction* pinned() const;
  void showError(const Answer& answer);
  void offerOne(QPushButton* button, const QString& words, const QString& option, const QString& value);

  Figure *step_, *throughput_, *epoch_, *memory_;
  MemoryBar* memory_bar_;
  QLabel *sentence_, *provenance_;
  QPushButton *more_micro_batches_, *smaller_batch_;  // hidden where there is nothing to offer
  QWidget* content_;
  QLabel* stopped_;
  QGraphicsOpacityEffect* dimmed_;
  AnswerPointer baseline_;
  QTimer soon_;  // an answer that comes at once does not flicker
};

}  // namespace sibyl::gui
