// The model's graph under the plan: surface, and beside it what is known of the node that is pointed at.
#pragma once

#include "base/cancelled.h"
#include "gui/model/latest.h"
#include "gui/view/canvas/graph_canvas.h"
#include "gui/view/view.h"

class QLabel;
class QTextBrowser;
class QSplitter;

namespace sibyl::gui {

class GraphView : public View {
  Q_OBJECT

 public:
  explicit GraphView(QWidget* parent = nullptr);

  [[nodiscard]] QString key() const override { return QStringLiteral("graph"); }
  [[nodiscard]] QString title() const override { return tr("Graph"); }
  void showAnswer(const AnswerPointer& current, const AnswerPointer& baseline) override;
  void setStale(bool stale) override;
  [[nodiscard]] bool busy() const override { return work_.busy(); }
  void stop() override;
  void prepare() override;
  void renderFigure(QPainter& painter, const QSize& size) override;
  [[nodiscard]] std::optional<Table> table() const override;  // an operation a row
  [[nodiscard]] QJsonObject viewState() const override;
  void restoreViewState(const QJsonObject& state) override;

  [[nodiscard]] GraphCanvas* canvas() const { return canvas_; }
  [[nodiscard]] QString message() const;  // what is shown in place of a graph; empty where there is one

 public slots:
  void pointAtOperation(const QString& operation) override;

 protected:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // What a job finds out.
  struct Outcome {
    std::shared_ptr<const GraphModel> model;
    QString failure;
  };
  static Outcome study(const AnswerPointer& answer, const Cancelled& cancelled);
  void work();
  void dim();
  void deliver(const Outcome& outcome);
  void showNode();
  void showLegend();

  AnswerPointer answer_;
  bool pending_ = false, stale_ = false;
  std::optional<std::pair<double, QPointF>> restored_;  // a session's place, until there is something to look at

  GraphCanvas* canvas_ = nullptr;
  QLabel* message_ = nullptr;
  QSplitter* splitter_ = nullptr;
  QTextBrowser* details_ = nullptr;
  QLabel* legend_ = nullptr;
  Latest<Outcome> work_;
};

}  // namespace sibyl::gui
