// The Document is all that a session is about: the scenarios, which of them is current, and the baseline they are held
// against. Whatever changes it goes through it, and can be undone; widgets only show it.
//
// How things are looked at (axes, zoom) is the views': undoing gives back what was asked, not where one looked. What a
// session that was loaded says of it is kept here, with whatever no view knows. Choosing the current scenario is no
// change either; undoing a change goes to the scenario it was made in.
#pragma once

#include <QJsonObject>
#include <QMap>
#include <QObject>
#include <QString>
#include <QTimer>
#include <QUndoStack>
#include <functional>
#include <optional>
#include <vector>

#include "gui/model/scenario.h"

namespace sibyl::gui {

struct State {
  std::vector<Scenario> scenarios = {Scenario{}};  // never empty
  int current = 0;
  std::optional<Scenario> baseline;  // as it was when it was pinned
  bool operator==(const State&) const = default;
};

class Document : public QObject {
  Q_OBJECT

 public:
  explicit Document(QObject* parent = nullptr);

  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] const Scenario& current() const { return state_.scenarios[static_cast<std::size_t>(state_.current)]; }
  [[nodiscard]] int count() const { return static_cast<int>(state_.scenarios.size()); }
  QUndoStack& undoStack() { return stack_; }
  [[nodiscard]] bool clean() const { return stack_.isClean(); }

  // Changes the current scenario; `why` names the step of undo. Changes with the same gesture, not empty, that follow
  // each other are one step: a slider that is dragged. No change, no step.
  void change(const QString& why, const std::function<void(Scenario&)>& edit, const QString& gesture = {});
  // What follows is a step of its own, whatever its gesture. So it is after a pause, but for a gesture that is held: a
  // slider whose handle rests under the finger.
  void endGesture();
  void holdGesture();
  void propose(const Scenario& scenario, const QString& why);  // in place of the current one; its name stays

  void add(const Scenario& scenario,
           const QString& why);  // becomes the current one; its name is made unlike all others
  void duplicate(int index);
  // The name is made unlike all others. A baseline that is pinned as the scenario is now is renamed with it.
  void rename(int index, const QString& name);
  void remove(int index);  // not the last one
  void select(int index);
  void pin(int index);
  void unpin();

  // In place of all there is, with nothing to undo.
  void load(State state, QMap<QString, QJsonObject> viewStates);
  [[nodiscard]] const QMap<QString, QJsonObject>& viewStates() const { return viewStates_; }

 signals:
  void changed();  // anything of state()
  void renamed(const QString& before, const QString& after);  // a scenario, also by undoing; changed() follows

 private:
  class Step;
  void edit(const QString& why, const std::function<void(State&)>& edit, const QString& gesture = {});
  void apply(const State& state);
  [[nodiscard]] bool has(int index) const { return index >= 0 && index < count(); }

  State state_;
  QMap<QString, QJsonObject> viewStates_;
  QUndoStack stack_;
  quint64 series_ = 0;  // of gestures
  bool held_ = false;   // the gesture lasts until it is ended
  QTimer pause_{this};
};

}  // namespace sibyl::gui
