#include "gui/model/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sibyl::gui {
namespace {

constexpr int pause_ms = 1000;  // between two changes of one gesture at most

std::string unusedName(const std::string& name, const std::vector<Scenario>& others) {
  const auto used = [&](const std::string& candidate) {
    return std::ranges::any_of(others, [&](const Scenario& s) { return s.name == candidate; });
  };
  if (!name.empty() && !used(name)) return name;
  std::string stem =
      name.empty() ? Document::tr("Scenario").toStdString() : name.substr(0, name.find_last_not_of("0123456789 ") + 1);
  if (stem.empty()) stem = name;  // "8"
  for (std::size_t n = others.size() + (name.empty() ? 0 : 1);; ++n)
    if (std::string candidate = fmt::format("{} {}", stem, n); !used(candidate)) return candidate;
}

}  // namespace

class Document::Step : public QUndoCommand {
 public:
  Step(Document& document, State before, State after, const QString& why, QString gesture)
      : QUndoCommand(why),
        document_(document),
        before_(std::move(before)),
        after_(std::move(after)),
        gesture_(std::move(gesture)) {}

  void undo() override { document_.apply(before_); }
  void redo() override { document_.apply(after_); }
  [[nodiscard]] int id() const override { return 1; }
  bool mergeWith(const QUndoCommand* other) override {
    const auto* next = static_cast<const Step*>(other);
    if (gesture_.isEmpty() || gesture_ != next->gesture_) return false;
    after_ = next->after_;
    setObsolete(before_ == after_);
    return true;
  }

 private:
  Document& document_;
  State before_, after_;
  QString gesture_;
};

Document::Document(QObject* parent) : QObject(parent) {
  pause_.setSingleShot(true);
  pause_.setInterval(pause_ms);
  connect(&pause_, &QTimer::timeout, this, &Document::endGesture);
  constexpr int most_steps = 500;
  stack_.setUndoLimit(most_steps);
  load({}, {});
}

// As many scenarios with another name at one place: nothing but rename() makes that.
void Document::apply(const State& state) {
  const State before = std::exchange(state_, state);
  const auto name = [](const State& of, std::size_t i) { return QString::fromStdString(of.scenarios[i].name); };
  for (std::size_t i = 0; before.scenarios.size() == state.scenarios.size() && i < state.scenarios.size(); ++i)
    if (name(before, i) != name(state, i)) emit renamed(name(before, i), name(state, i));
  emit changed();
}

void Document::edit(const QString& why, const std::function<void(State&)>& edit, const QString& gesture) {
  State after = state_;
  edit(after);
  if (after == state_) return;
  stack_.push(new Step(*this, state_, std::move(after), why,
                       gesture.isEmpty() ? QString() : QStringLiteral("%1#%2").arg(gesture).arg(series_)));
  if (!held_) pause_.start();
}

void Document::endGesture() {
  ++series_;
  held_ = false;
  pause_.stop();
}

void Document::holdGesture() {
  endGesture();
  held_ = true;
}

void Document::change(const QString& why, const std::function<void(Scenario&)>& make, const QString& gesture) {
  edit(
      why, [&](State& state) { make(state.scenarios[static_cast<std::size_t>(state.current)]); }, gesture);
}

void Document::propose(const Scenario& scenario, const QString& why) {
  change(why, [&](Scenario& current) {
    const std::string name = std::exchange(current, scenario).name;
    current.name = name;
  });
}

void Document::add(const Scenario& scenario, const QString& why) {
  edit(why, [&](State& state) {
    const std::string name = unusedName(scenario.name, state.scenarios);
    state.scenarios.push_back(scenario);
    state.scenarios.back().name = name;
    state.current = static_cast<int>(state.scenarios.size()) - 1;
  });
}

void Document::duplicate(int index) {
  if (has(index)) add(state_.scenarios[static_cast<std::size_t>(index)], tr("Duplicate scenario"));
}

void Document::rename(int index, const QString& name) {
  if (!has(index) || name.trimmed().isEmpty()) return;
  edit(tr("Rename scenario"), [&](State& state) {
    std::vector<Scenario> others = state.scenarios;
    others.erase(others.begin() + index);
    Scenario& scenario = state.scenarios[static_cast<std::size_t>(index)];
    const bool pinned = state.baseline == scenario;
    scenario.name = unusedName(name.trimmed().toStdString(), others);
    if (pinned) state.baseline = scenario;
  });
}

void Document::remove(int index) {
  if (!has(index) || count() == 1) return;
  edit(tr("Delete scenario"), [&](State& state) {
    state.scenarios.erase(state.scenarios.begin() + index);
    if (state.current > index || state.current == static_cast<int>(state.scenarios.size())) --state.current;
  });
}

void Document::select(int index) {
  if (!has(index) || index == state_.current) return;
  endGesture();
  state_.current = index;
  emit changed();
}

void Document::pin(int index) {
  if (has(index))
    edit(tr("Pin baseline"), [&](State& state) { state.baseline = state.scenarios[static_cast<std::size_t>(index)]; });
}

void Document::unpin() {
  edit(tr("Unpin baseline"), [](State& state) { state.baseline.reset(); });
}

void Document::load(State state, QMap<QString, QJsonObject> viewStates) {
  stack_.clear();
  viewStates_ = std::move(viewStates);
  std::vector<Scenario> named;  // a file written by hand may call two of them the same
  for (std::size_t i = 0; i < state.scenarios.size(); ++i) {
    Scenario& scenario = state.scenarios[i];
    if (scenario.name.empty()) scenario.name = tr("Scenario %1").arg(i + 1).toStdString();
    scenario.name = unusedName(scenario.name, named);
    named.push_back(scenario);
  }
  state_ = std::move(state);
  emit changed();
}

}  // namespace sibyl::gui
