#include "gui/model/answers.h"

#include <QMetaMethod>
#include <exception>
#include <list>

#include "oracle/cli/options.h"
#include "oracle/predict.h"

namespace sibyl::gui {
namespace {

// Evaluators of the graphs and clusters that were used last: what their strategies have in common is worked out once.
class Evaluators {
 public:
  Evaluator& of(const Study& study) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
      if (entry->graph == study.graph && entry->cluster == study.cluster) {
        entries_.splice(entries_.begin(), entries_, entry);
        return *entries_.front().evaluator;
      }
    constexpr std::size_t most = 4;
    if (entries_.size() == most) entries_.pop_back();
    entries_.push_front({study.graph, study.cluster, std::make_unique<Evaluator>(*study.graph, *study.cluster)});
    return *entries_.front().evaluator;
  }

 private:
  struct Entry {
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const Cluster> cluster;
    std::unique_ptr<Evaluator> evaluator;
  };
  std::list<Entry> entries_;
};

// Exceptions are bugs; one of the library's must not end the window, and what is unsaved with it.
template <class Work>
auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& bug) {
    return Failure(errorOf(bug));
  }
}

}  // namespace

struct Answers::Worker {
  StudyReader reader;
  Evaluators evaluators;
  AnswerPointer baseline;  // the last one: it changes seldom

  AnswerPointer answer(const Scenario& scenario, const Cancelled& cancelled) {
    auto study = guarded([&] { return reader.read(scenario, cancelled); });
    Answer answer{scenario, nullptr, fail(""), reader.wrong(), reader.dimensions(), reader.unchanged_cluster()};
    if (!study) {
      answer.report = Failure(std::move(study).error());
      return std::make_shared<const Answer>(std::move(answer));
    }
    answer.study = *study;
    auto prediction = guarded([&] { return evaluators.of(**study).predict((*study)->strategy, cancelled); });
    if (prediction) {
      answer.report =
          PredictionReport{cli::model_name(scenario.model), (*study)->cluster->name, std::move(*prediction)};
    } else {
      answer.report = Failure(std::move(prediction).error());
      answer.wrong = Part::prediction;
    }
    return std::make_shared<const Answer>(std::move(answer));
  }

  AnswerPointer baseline_answer(const std::optional<Scenario>& scenario, const Cancelled& cancelled) {
    if (!scenario) return baseline = nullptr;
    if (baseline && baseline->scenario == *scenario) return baseline;
    AnswerPointer found = answer(*scenario, cancelled);
    if (!is_true(cancelled)) baseline = found;  // that it was given up is no answer
    return found;
  }
};

// By formula, on the graph and the cluster of one study.
struct Answers::Foresight {
  std::shared_ptr<const Study> study;
  std::unique_ptr<closed::FirstAnswers> formulas;

  std::optional<Foreseen> foresee(const std::shared_ptr<const Study>& on, const Scenario& scenario) {
    const auto strategy = strategy_on(*on, scenario);
    if (!strategy) return std::nullopt;
    if (!study || study->graph != on->graph || study->cluster != on->cluster) {
      formulas = std::make_unique<closed::FirstAnswers>(*on->graph, *on->cluster);
      study = on;
    }
    const auto answer = formulas->of(*strategy);
    return answer ? std::optional(Foreseen{scenario, *strategy, *answer}) : std::nullopt;
  }
};

Answers::Answers(QObject* parent)
    : QObject(parent),
      worker_(std::make_shared<Worker>()),
      work_(this, Urgency::soon),
      foresight_(std::make_shared<Foresight>()),
      first_(this, Urgency::first) {
  qRegisterMetaType<AnswerPointer>();
}

Answers::~Answers() = default;

// The formula first, by itself: the simulation would take half of the processors from it.
void Answers::ask(const Scenario& current, const std::optional<Scenario>& baseline) {
  setStale(true);
  waiting_ = Request{current, baseline};
  if (!foresee(current)) startWaiting();
}

void Answers::drop() {
  waiting_.reset();
  to_foresee_.reset();
  work_.cancel();
  first_.cancel();
  setStale(false);
}

void Answers::startWaiting() {
  if (!waiting_ || work_.busy()) return;
  const Request next = *std::exchange(waiting_, std::nullopt);
  start(next);
}

// What is at work is not given up for a newer one: figures would stand still while a slider does not.
bool Answers::foresee(const Scenario& scenario) {
  static const QMetaMethod told = QMetaMethod::fromSignal(&Answers::foreseen);
  if (!last_ || !isSignalConnected(told)) return false;
  if (first_.busy()) {
    to_foresee_ = scenario;
    return true;
  }
  const auto go_on = [this](const std::optional<Foreseen>& first) {
    if (first && stale_) emit foreseen(*first);
    startWaiting();
    if (to_foresee_) foresee(*std::exchange(to_foresee_, std::nullopt));
  };
  first_.ask(
      [foresight = foresight_, study = last_, scenario](const Ticket&) { return foresight->foresee(study, scenario); },
      go_on, [go_on](const Error&) { go_on(std::nullopt); });  // the exact answer tells what is wrong
  return true;
}

void Answers::start(const Request& request) {
  running_ = request;
  work_.ask(
      [worker = worker_, request](const Ticket& ticket) {
        const Cancelled cancelled = ticket.cancelled();
        // The baseline first: what it shares with the current scenario is then at hand.
        const AnswerPointer baseline = worker->baseline_answer(request.baseline, cancelled);
        return Pair{worker->answer(request.current, cancelled), baseline};
      },
      [this](const Pair& pair) { deliver(pair); },
      [this](const Error& error) {
        deliver({std::make_shared<const Answer>(Answer{running_.current, nullptr, Failure(error), Part::prediction}),
                 nullptr});
      });
}

void Answers::deliver(const Pair& pair) {
  const bool near = !waiting_ || (waiting_->current.model == running_.current.model &&
                                  waiting_->current.cluster == running_.current.cluster && pair.first->report);
  if (pair.first->study) last_ = pair.first->study;
  if (!waiting_) setStale(false);
  if (near) emit answered(pair.first, pair.second);
  startWaiting();  // who is told may have asked again
}

void Answers::setStale(bool stale) {
  if (std::exchange(stale_, stale) != stale) emit staleChanged(stale);
}

void Answers::forget() {
  // A job that is at work keeps its own.
  worker_ = std::make_shared<Worker>();
  last_.reset();
}

}  // namespace sibyl::gui
