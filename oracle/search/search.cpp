#include "oracle/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "oracle/memory/state.h"
#include "oracle/plan/precision.h"
#include "oracle/predict.h"

namespace sibyl {
namespace {

struct Outcome {
  std::optional<Candidate> candidate;
  bool fits = false;
  std::string why_not;  // where there is no candidate
  bool tried = false;
};

// What the fullest device holds at the least, whatever is run: a step's share of weights, gradients and optimizer state.
Bytes least_state(const Graph& graph, const Strategy& s) {
  const double replica = static_cast<double>(s.devices_per_replica()) / (s.depth * s.height * s.width);
  const double parameters = static_cast<double>(graph.parameter_count()) / replica;
  const bool half = has_half_weights(s);
  const double weight = half ? 2 : 4, state = 4.0 * optimizer_states(s.optimizer) + (half ? 4 : 0);
  const double share = 1.0 / (s.zero_ranks > 0 ? s.zero_ranks : s.data);
  return Bytes{parameters * (weight * (s.zero > 2 ? share : 1.0) + weight * (s.zero > 1 ? share : 1.0) +
                             state * (s.zero > 0 ? share : 1.0))};
}

constexpr std::string_view too_large = "weights, gradients and optimizer state alone are more than a device holds";

// Calls visit(evaluator, i) for every i below `count`, on all processors: each has an evaluator of its own, and whoever is free takes the
// next. Goes on until `cancelled`; `report` is told how many are done, by the calling thread.
class Processors {
 public:
  Processors(const Graph& graph, const Cluster& cluster, unsigned threads)
      : graph_(graph), cluster_(cluster), threads_(threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency())) {}

  void each(std::size_t count, const std::function<void(Evaluator&, std::size_t)>& visit,
            const std::function<bool()>& cancelled = {}, const std::function<void(std::size_t)>& report = {}) const {
    std::atomic<std::size_t> next{0}, done{0};
    const auto work = [&](bool reports) {
      Evaluator evaluator(graph_, cluster_);
      while (!(cancelled && cancelled())) {
        const std::size_t i = next++;
        if (i >= count) return;
        visit(evaluator, i);
        const std::size_t so_far = ++done;
        if (reports && report) report(so_far);
      }
    };
    std::vector<std::thread> helpers;
    for (unsigned t = 1; t < threads_ && t < count; ++t) helpers.emplace_back(work, false);
    work(true);
    for (std::thread& helper : helpers) helper.join();
    if (report) report(done);
  }

 private:
  const Graph& graph_;
  const Cluster& cluster_;
  unsigned threads_;
};

class Searcher {
 public:
  Searcher(const Graph& graph, const Cluster& cluster, const SearchOptions& options)
      : graph_(graph), cluster_(cluster), options_(options) {
    const Bytes capacity = cluster.kernels.device().memory;
    memory_ = options.memory.value() > 0 && (capacity.value() <= 0 || options.memory < capacity) ? options.memory : capacity;
  }

  std::vector<Outcome> run(const std::vector<Strategy>& all) {
    std::vector<Outcome> outcomes(all.size());
    Processors(graph_, cluster_, options_.threads)
        .each(
            all.size(), [&](Evaluator& evaluator, std::size_t i) { outcomes[i] = outcome_of(all[i], evaluator); },
            options_.cancelled, [&](std::size_t done) {
              if (options_.progress) options_.progress(done, all.size());
            });
    return outcomes;
  }

 private:
  [[nodiscard]] bool known() const { return memory_.value() > 0; }

  [[nodiscard]] Outcome outcome_of(const Strategy& strategy, Evaluator& evaluator) const {
    Outcome outcome;
    outcome.tried = true;
    if (known() && least_state(graph_, strategy) > memory_) {
      outcome.why_not = too_large;
      return outcome;
    }
    const Result<Evaluation> p = evaluator.evaluate(strategy);
    if (!p) {
      outcome.why_not = p.error().message;
      return outcome;
    }
    const Bytes needed = p->memory.needed();
    outcome.fits = p->fits && !(known() && needed > memory_);
    outcome.candidate = Candidate{strategy, p->step_time,  p->interval_low, p->interval_high, p->throughput,
                                  needed,   p->breakdown, p->error,        {},               false};
    return outcome;
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  Bytes memory_;
};

// Numbers differ from one strategy to the next where the reason is the same.
std::string without_numbers(const std::string& message) {
  std::string text;
  for (const char c : message) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      text += c;
    else if (text.empty() || text.back() != 'N')
      text += 'N';
  }
  return text;
}

bool faster(const Candidate& a, const Candidate& b) {
  const auto order = [](const Candidate& c) {
    return std::tuple(c.step_time, c.strategy.devices(), c.memory, complexity(c.strategy));
  };
  return order(a) < order(b);
}

bool simpler(const Candidate& a, const Candidate& b) {
  const auto order = [](const Candidate& c) { return std::tuple(complexity(c.strategy), c.step_time); };
  return order(a) < order(b);
}

bool at_least_as_good(const Candidate& a, const Candidate& b) {
  return a.step_time <= b.step_time && a.memory <= (1.0 + negligible_memory) * b.memory && a.strategy.devices() <= b.strategy.devices();
}

// What is asked for may change nothing: selective recomputing where there is no attention.
bool alike(const Candidate& a, const Candidate& b) {
  return a.step_time == b.step_time && a.memory == b.memory && a.strategy.devices() == b.strategy.devices();
}

// `fitting` is ascending in time.
std::vector<Candidate> front_of(const std::vector<Candidate>& fitting) {
  std::vector<Candidate> front;
  for (const Candidate& candidate : fitting)
    if (std::ranges::none_of(front, [&](const Candidate& better) { return at_least_as_good(better, candidate); }))
      front.push_back(candidate);
  return front;
}

bool equally_fast(const Candidate& candidate, const Candidate& fastest) {
  return candidate.step_time - fastest.step_time <=
         deviation_of_difference(candidate.error, fastest.error) * ninety_percent;
}

// Of what is given back alone: it takes as long as pricing a strategy several times.
void add_bottlenecks(const Processors& processors, SearchResult& result) {
  std::map<std::pair<int, std::string>, std::vector<Candidate*>> alike;  // by strategy
  const auto add = [&](Candidate& c) { alike[{c.strategy.devices(), strategy_words(c.strategy)}].push_back(&c); };
  std::ranges::for_each(result.best, add);
  std::ranges::for_each(result.front, add);
  add(result.recommended);
  std::vector<std::vector<Candidate*>> all;
  for (auto& [strategy, candidates] : alike) all.push_back(std::move(candidates));
  processors.each(all.size(), [&](Evaluator& evaluator, std::size_t i) {
    const Bottleneck bottleneck = evaluator.predict(all[i].front()->strategy)->bottleneck;
    for (Candidate* candidate : all[i]) candidate->bottleneck = bottleneck;
  });
}

}  // namespace

Result<SearchResult> search(const Graph& graph, const SearchSpace& space, const Cluster& cluster,
                            const SearchOptions& options) {
  const std::vector<Strategy> all = strategies(space);
  if (all.empty())
    return fail(ErrorCode::infeasible, "no strategy is to be tried", "--axes", "allow data, tensor, sequence or pipeline");
  SearchResult result;
  result.size = all.size();
  std::vector<Candidate> fitting;
  std::map<std::string, std::size_t> reasons;
  for (Outcome& outcome : Searcher(graph, cluster, options).run(all)) {
    if (!outcome.tried) continue;
    ++result.tried;
    if (outcome.why_not == too_large || (outcome.candidate && !outcome.fits))
      ++result.too_large;
    else if (!outcome.candidate)
      ++reasons[without_numbers(outcome.why_not)];
    else
      fitting.push_back(std::move(*outcome.candidate));
  }
  result.fitting = fitting.size();
  for (const auto& [why, count] : reasons) result.left_out.push_back({why, count});
  std::ranges::stable_sort(result.left_out, std::greater{}, &LeftOut::count);
  if (fitting.empty()) return result;

  std::ranges::stable_sort(fitting, faster);
  fitting.erase(std::unique(fitting.begin(), fitting.end(), alike), fitting.end());
  for (Candidate& candidate : fitting) candidate.equal = equally_fast(candidate, fitting.front());
  const auto equals = [](const Candidate& candidate) { return candidate.equal; };
  result.equal = static_cast<std::size_t>(std::ranges::count_if(fitting, equals));
  result.recommended = fitting.front();
  for (const Candidate& candidate : fitting)
    if (candidate.equal && simpler(candidate, result.recommended)) result.recommended = candidate;
  result.front = front_of(fitting);
  fitting.resize(std::min(fitting.size(), options.keep));
  result.best = std::move(fitting);
  add_bottlenecks(Processors(graph, cluster, options.threads), result);
  return result;
}

Excess excess_over(const Candidate& candidate, const Candidate& other) {
  const TimeBreakdown &a = candidate.breakdown, &b = other.breakdown;
  const Excess parts[] = {{"compute", a.forward + a.backward - b.forward - b.backward},
                          {"exposed communication", a.communication_exposed - b.communication_exposed},
                          {"bubble", a.bubble - b.bubble},
                          {"updates", a.optimizer - b.optimizer},
                          {"host dispatch", a.host - b.host},
                          {"data", a.io - b.io}};
  Excess most;
  for (const Excess& part : parts)
    if (part.time > most.time) most = part;
  return most;
}

}  // namespace sibyl
