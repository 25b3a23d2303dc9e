// One page of the window: shows the newest answer its own way. Views know each other only through the window.
#pragma once

#include <QJsonObject>
#include <QPainter>
#include <QWidget>
#include <optional>
#include <vector>

#include "base/table.h"
#include "gui/model/study.h"

namespace sibyl::gui {

class View : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;

  [[nodiscard]] virtual QString key() const = 0;    // "timeline": in sessions and names of exported files; no spaces
  [[nodiscard]] virtual QString title() const = 0;  // tr("Timeline")

  // The newest answer and that of the pinned baseline (null: nothing is pinned). Called on every change; a view that is
  // hidden may wait with its work until it is shown. Heavy work goes through a Latest.
  virtual void showAnswer(const AnswerPointer& current, const AnswerPointer& baseline) = 0;
  // The other scenarios of the session, for views that offer them. Called on every change, before it is answered.
  virtual void showOthers(const std::vector<Scenario>&) {}
  // One of the session has another name from now on.
  virtual void followRename(const QString& /*before*/, const QString& /*after*/) {}
  // A newer answer is on its way: what is shown is dimmed until it comes.
  virtual void setStale(bool stale) = 0;
  // Is a job of this view's still at work? settled() is emitted when none is any more.
  [[nodiscard]] virtual bool busy() const { return false; }
  // Gives up what is at work; the view says so, and works on when there is a newer answer.
  virtual void stop() {}
  // Files are to be read again, though their time of writing is the same; what hangs on them is asked anew.
  virtual void forget() {}
  // Does the work now that would be done when the view is shown (headless export).
  virtual void prepare() {}

  // For export. The figure is drawn into a rectangle of this size from the origin (logical pixels); table: what CSV
  // gets.
  virtual void renderFigure(QPainter& painter, const QSize& size) = 0;
  // What it takes for nothing to be cut off, where so much is offered: a table may be longer.
  [[nodiscard]] virtual QSize figureSize(const QSize& offered) const { return offered; }
  [[nodiscard]] virtual std::optional<Table> table() const { return {}; }

  // What a session keeps of how it is looked at (axes, zoom, sorted column). Unknown or missing keys are ignored.
  [[nodiscard]] virtual QJsonObject viewState() const { return {}; }
  virtual void restoreViewState(const QJsonObject&) {}

 protected:
  // What is said then.
  static QString stoppedText() { return tr("Stopped. The next change asks again, and so does reloading (F5)."); }

 signals:
  void settled();
  void busyChanged();
  // Something of viewState() was chosen (axes, curves, files): the session has changed.
  void viewStateChanged();
  // Only where one looks has changed (zoom, place, sorting, what is searched for): kept when the session is saved, but
  // nothing to ask about.
  void lookedElsewhere();
  // A click that asks for another question: the window makes it the current one, undoably. `why` names the change.
  void scenarioProposed(const sibyl::gui::Scenario& scenario, const QString& why);
  // Point at an operation by name (a click in the layer table, the graph, the timeline): others light it up.
  void operationPointedAt(const QString& operation);

 public slots:
  virtual void pointAtOperation(const QString&) {}
};

}  // namespace sibyl::gui
