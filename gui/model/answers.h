// Answers asks the library about scenarios in a thread of its own.
//
// Of requests that come faster than answers the newest counts: while one is at work, only the last of those behind it
// is kept. An answer of the same model and cluster that is on its way is shown when it comes, though a newer question
// waits: so that figures follow a slider that does not stand still. Before it comes a formula's, where there is one for
// a strategy on the graph and the cluster of the last answer: within a frame.
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <utility>

#include "gui/model/latest.h"
#include "gui/model/study.h"
#include "oracle/closed/first_answer.h"

namespace sibyl::gui {

// What an answer is about to be.
struct Foreseen {
  Scenario scenario;
  Strategy strategy;
  closed::FirstAnswer answer;
};

class Answers : public QObject {
  Q_OBJECT

 public:
  explicit Answers(QObject* parent = nullptr);
  ~Answers() override;

  void ask(const Scenario& current, const std::optional<Scenario>& baseline);
  // What was asked is not wanted any more: it is not answered, and work on it ends.
  void drop();
  // Is a newer answer on its way?
  [[nodiscard]] bool stale() const { return stale_; }
  // Files are read again, though their time of writing is the same (a calibration that a cluster file names).
  void forget();

 signals:
  void foreseen(const sibyl::gui::Foreseen& foreseen);
  void answered(const sibyl::gui::AnswerPointer& current, const sibyl::gui::AnswerPointer& baseline);
  void staleChanged(bool stale);

 private:
  struct Request {
    Scenario current;
    std::optional<Scenario> baseline;
    bool operator==(const Request&) const = default;
  };
  struct Worker;
  struct Foresight;
  using Pair = std::pair<AnswerPointer, AnswerPointer>;

  bool foresee(const Scenario& scenario);  // is a formula asked?
  void startWaiting();
  void start(const Request& request);
  void deliver(const Pair& pair);
  void setStale(bool stale);

  std::shared_ptr<Worker> worker_;  // used by one job at a time
  Request running_;
  std::optional<Request> waiting_;
  bool stale_ = false;
  Latest<Pair> work_;
  std::shared_ptr<Foresight> foresight_;  // used by one job at a time
  std::shared_ptr<const Study> last_;     // of the last answer that has one
  std::optional<Scenario> to_foresee_;    // while a formula is at work on another
  Latest<std::optional<Foreseen>> first_;
};

}  // namespace sibyl::gui
