// Any two scenarios of the session side by side, with their differences: what `sibyl compare` says.
#pragma once

#include <QComboBox>
#include <QLabel>

#include "gui/model/answers.h"
#include "gui/model/document.h"
#include "gui/model/table_model.h"
#include "gui/view/view.h"
#include "gui/view/wide_table.h"

namespace sibyl::gui {

class CompareView : public View {
  Q_OBJECT

 public:
  CompareView(Document& document, QWidget* parent);

  [[nodiscard]] QString key() const override { return QStringLiteral("compare"); }
  [[nodiscard]] QString title() const override { return tr("Compare"); }
  void showAnswer(const AnswerPointer& current, const AnswerPointer& baseline) override;
  void setStale(bool stale) override;
  [[nodiscard]] bool busy() const override { return answers_.stale(); }
  void stop() override;
  void forget() override;
  void prepare() override;
  void renderFigure(QPainter& painter, const QSize& size) override;
  [[nodiscard]] QSize figureSize(const QSize& offered) const override;
  [[nodiscard]] std::optional<Table> table() const override;
  [[nodiscard]] QJsonObject viewState() const override;
  void restoreViewState(const QJsonObject& state) override;

  [[nodiscard]] QString verdict() const { return verdict_->text(); }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Figure;
  [[nodiscard]] Figure figureOf(int width) const;
  QComboBox* makeChoice(const QString& name, const QString& usual);
  void fill(QComboBox& choice) const;
  [[nodiscard]] const Scenario* chosen(const QComboBox& choice) const;
  void follow();
  void ask();
  void clear();
  [[nodiscard]] std::string titleOf(const QComboBox& choice, const Answer& answer) const;
  void display(const AnswerPointer& second, const AnswerPointer& first);

  Document& document_;
  QComboBox *first_, *second_;
  QLabel* verdict_;
  TableModel* model_;
  WideTable* table_;
  Answers answers_;
  bool waiting_ = true;  // to be shown
};

}  // namespace sibyl::gui
