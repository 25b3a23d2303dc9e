#include "oracle/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "oracle/plan/folding.h"
#include "oracle/search/trials.h"

namespace sibyl {
namespace {

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

// What is asked for may change nothing: selective recomputing where there is no attention.
bool alike(const Candidate& a, const Candidate& b) {
  return a.step_time == b.step_time && a.memory == b.memory && a.strategy.devices() == b.strategy.devices();
}

bool at_least_as_good(const Point& a, const Point& b) {
  return a.time <= b.time && a.memory <= (1.0 + negligible_memory) * b.memory && a.devices <= b.devices;
}

// Of what is ascending in time, that which nothing before it is as good as.
template <class T, class PointOf>
std::vector<T> front_of(const std::vector<T>& ascending, const PointOf& point_of) {
  std::vector<T> front;
  for (const T& one : ascending)
    if (std::ranges::none_of(front, [&](const T& better) { return at_least_as_good(point_of(better), point_of(one)); }))
      front.push_back(one);
  return front;
}

bool equally_fast(const Candidate& candidate, const Candidate& fastest) {
  return !told_apart(candidate.step_time, candidate.error, fastest.step_time, fastest.error);
}

// For its simplicity, which is worth little: what is expected to take a fifth longer is no good choice, however unsure
// it is that it does.
bool as_good(const Candidate& candidate, const Candidate& fastest) {
  return equally_fast(candidate, fastest) && candidate.step_time <= fastest.step_time * (1.0 + worth_of_simplicity);
}

void add_bottlenecks(const Trials& trials, SearchResult& result) {
  std::map<std::pair<int, std::string>, std::vector<Candidate*>> alike;  // by strategy
  const auto add = [&](Candidate& c) { alike[{c.strategy.devices(), strategy_words(c.strategy)}].push_back(&c); };
  std::ranges::for_each(result.best, add);
  std::ranges::for_each(result.front, add);
  add(result.recommended);
  std::vector<std::vector<Candidate*>> all;
  for (auto& [strategy, candidates] : alike) all.push_back(std::move(candidates));
  trials.add_bottlenecks(all);
}

// Formula and simulation are not further apart than this where it matters (docs/search.md).
constexpr double slack = 0.02;
constexpr std::size_t at_once =
    32;  // are simulated before it is looked again which are next: whatever the number of processors

// May it turn out to fit, and as what is asked for?
bool may_fit(const Trials& trials, std::size_t i) {
  const Trial& trial = trials.all()[i];
  if (trial.candidate) return trial.fits;
  return trial.form ? trials.may_fit(trial.form->memory) : trial.ruled_out();
}

void sort_by_time(const Trials& trials, std::vector<std::size_t>& which) {
  std::ranges::stable_sort(which, {}, [&](std::size_t i) { return trials.all()[i].time(); });
}

// Times what was ruled out and yet may come among the first to be simulated, as far as `next`, which is in order,
// tells; some at a time. Was there any?
bool time_first(Trials& trials, std::vector<std::size_t>& next) {
  constexpr std::size_t most = 1024;
  std::vector<std::size_t> ruled_out;
  std::size_t timed = 0;
  for (const std::size_t i : next) {
    if (timed == at_once || ruled_out.size() == most) break;
    if (trials.all()[i].timed())
      ++timed;
    else
      ruled_out.push_back(i);
  }
  if (ruled_out.empty()) return false;
  trials.by_formula(ruled_out);
  std::erase_if(next, [&](std::size_t i) { return !may_fit(trials, i); });
  sort_by_time(trials, next);
  return true;
}

// Simulates the fastest by formula in their order, until nothing that is left can be among the `keep` fastest. From
// then on only what is simpler than all that are as good as the fastest can change the answer, by being as good, too:
// of these, until none of the last ones was. Once cancelled the first of them are enough.
void simulate_fastest(Trials& trials, std::size_t keep) {
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i < trials.all().size(); ++i)
    if (!trials.all()[i].candidate && may_fit(trials, i)) next.push_back(i);
  std::vector<const Candidate*> known;  // that fit, ascending in time
  const auto note = [&](const Trial& trial) {
    if (!trial.candidate || !trial.fits) return;
    known.insert(std::ranges::upper_bound(known, trial.candidate->step_time, {}, &Candidate::step_time),
                 &*trial.candidate);
  };
  const auto may_be_recommended = [&](const Candidate* candidate) { return as_good(*candidate, *known.front()); };
  const auto simplest = [&] {
    int least = std::numeric_limits<int>::max();
    for (const Candidate* candidate : known)
      if (may_be_recommended(candidate)) least = std::min(least, complexity(candidate->strategy));
    return least;
  };
  // Have the `keep` fastest been found, those that come out the same taken as one?
  const auto all_faster_than = [&](Seconds time) {
    std::size_t found = 0;
    for (std::size_t k = 0; k < known.size() && known[k]->step_time < time && found < keep; ++k)
      if (k == 0 || !alike(*known[k - 1], *known[k])) ++found;
    return found >= keep;
  };
  for (const Trial& trial : trials.all()) note(trial);
  bool fastest_known = false;
  std::vector<std::size_t> last;
  sort_by_time(trials, next);
  while (!next.empty()) {
    if (!last.empty() && trials.cancelled()) return;
    fastest_known = fastest_known || all_faster_than(trials.all()[next.front()].time() * (1 - slack));
    if (fastest_known) {
      const auto good = [&](std::size_t i) {
        const Trial& trial = trials.all()[i];
        return trial.candidate && trial.fits && may_be_recommended(&*trial.candidate);
      };
      if (!last.empty() && std::ranges::none_of(last, good)) return;
      std::erase_if(next, [&, least = simplest()](std::size_t i) { return complexity(trials.strategy(i)) >= least; });
    }
    if (!trials.cancelled() && time_first(trials, next)) continue;
    const auto end = next.begin() + static_cast<std::ptrdiff_t>(std::min(at_once, next.size()));
    last.assign(next.begin(), end);
    next.erase(next.begin(), end);
    trials.simulate(last);
    for (const std::size_t i : last) note(trials.all()[i]);
  }
}

// "spatial" means all axes of images. Those of flat ones have no depth to split: no such strategy is tried.
bool has_volumes(const Graph& graph) {
  constexpr std::size_t volume = 5;  // samples, channels, depth, height, width
  return std::ranges::any_of(graph.tensors(), [](const Tensor& tensor) {
    return tensor.kind == TensorKind::input && is_floating(tensor.dtype) && tensor.shape.size() >= volume;
  });
}

SearchSpace suited_to(const Graph& graph, SearchSpace space) {
  if (!has_volumes(graph)) std::erase(space.axes, MeshAxis::depth);
  space.layers = repeated_layers(graph);
  return space;
}

// What is not simulated may turn out better than the formula has it. What the framework takes by itself both know.
Point hopeful_point(const Trial& trial, int devices, Bytes framework) {
  constexpr double time = 0.005, memory = 0.01;  // most are not further apart than this
  if (trial.candidate) return {trial.time(), trial.memory(), devices};
  return {trial.time() * (1.0 - time), framework + (trial.memory() - framework) * (1.0 - memory), devices};
}

// Simulates what is on the front as far as is known, until all of it is, or it is cancelled. What was ruled out and is
// not that slow after all is timed first.
void simulate_front(Trials& trials) {
  const std::vector<Trial>& all = trials.all();
  while (!trials.cancelled()) {
    Rivals known;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].candidate && all[i].fits) known.note({all[i].time(), all[i].memory(), trials.devices(i)});
    const auto point_of = [&](std::size_t i) { return hopeful_point(all[i], trials.devices(i), trials.framework()); };
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (may_fit(trials, i) && !known.too_slow(point_of(i).time, trials.devices(i), most_device_time))
        order.push_back(i);
    sort_by_time(trials, order);
    std::vector<std::size_t> front = front_of(order, point_of);
    std::erase_if(front, [&](std::size_t i) { return all[i].candidate != nullptr; });
    if (front.empty()) return;
    std::vector<std::size_t> ruled_out;
    std::ranges::copy_if(front, std::back_inserter(ruled_out), [&](std::size_t i) { return !all[i].timed(); });
    if (ruled_out.empty())
      trials.simulate(front);
    else
      trials.by_formula(ruled_out);
  }
}

}  // namespace

Result<SearchResult> search(const Graph& graph, const SearchSpace& space, const Cluster& cluster,
                            const SearchOptions& options) {
  const std::vector<Strategy> all = strategies(suited_to(graph, space));
  if (all.empty())
    return fail(
        ErrorCode::infeasible,
        fmt::format("no strategy is to be tried: the axes leave no way to share the devices among replicas that "
                    "divide a batch of {}",
                    space.fixed.global_batch),
        "--axes", "allow data, tensor, sequence or pipeline, or say other --devices or another --batch");
  Trials trials(graph, cluster, all, options);
  trials.by_formula(most_device_time);
  simulate_fastest(trials, options.keep);
  simulate_front(trials);

  SearchResult result;
  result.size = all.size();
  result.cancelled = trials.cancelled();
  std::vector<Candidate> fitting;
  struct Reason {
    LeftOut first;
    std::set<std::string> words;
  };
  std::map<std::string, Reason> reasons;
  for (const Trial& trial : trials.all()) {
    if (!trial.tried()) continue;
    ++result.tried;
    if (trial.candidate)
      ++result.simulated;
    else if (trial.form)
      ++result.by_formula;
    if (trial.why_not) {
      const Error& error = *trial.why_not;
      Reason& reason = reasons[without_numbers(error.message)];
      if (reason.words.empty()) reason.first.why = error.message, reason.first.hint = error.hint;
      ++reason.first.count;
      reason.words.insert(error.message);
    } else if (trial.ruled_out())
      ++result.too_slow;
    else if (trial.too_large || !trial.fits)
      ++result.too_large;
    else
      ++result.fitting;
    if (trial.candidate && trial.fits) fitting.push_back(*trial.candidate);
  }
  for (auto& [pattern, reason] : reasons) {
    reason.first.alike = reason.words.size() - 1;
    result.left_out.push_back(std::move(reason.first));
  }
  std::ranges::stable_sort(result.left_out, std::greater{}, &LeftOut::count);
  if (fitting.empty()) return result;

  std::ranges::stable_sort(fitting, faster);
  fitting.erase(std::unique(fitting.begin(), fitting.end(), alike), fitting.end());
  for (Candidate& candidate : fitting) candidate.equal = equally_fast(candidate, fitting.front());
  const auto equals = [](const Candidate& candidate) { return candidate.equal; };
  result.equal = static_cast<std::size_t>(std::ranges::count_if(fitting, equals));
  result.recommended = fitting.front();
  for (const Candidate& candidate : fitting)
    if (as_good(candidate, fitting.front()) && simpler(candidate, result.recommended)) result.recommended = candidate;
  const auto point_of = [](const Candidate& c) { return Point{c.step_time, c.memory, c.strategy.devices()}; };
  result.front = front_of(fitting, point_of);
  Rivals fastest;
  fastest.note(point_of(fitting.front()));
  std::erase_if(result.front, [&](const Candidate& c) {
    return fastest.too_slow(c.step_time, c.strategy.devices(), most_device_time);
  });
  fitting.resize(std::min(fitting.size(), options.keep));
  result.best = std::move(fitting);
  add_bottlenecks(trials, result);
  result.cancelled = trials.cancelled();
  return result;
}

Excess excess_over(const Candidate& candidate, const Candidate& other) {
  const TimeBreakdown &a = candidate.breakdown, &b = other.breakdown;
  const Excess parts[] = {{"compute", a.forward + a.backward - b.forward - b.backward},
                          {"exposed communication", a.communication_exposed - b.communication_exposed},
                          {"bubble", a.bubble - b.bubble},
                          {"updates", a.optimizer - b.optimizer},
                          {"host dispatch", a.host - b.host},
                          {"data", a.io - b.io},
                          {"offloading", a.offload_exposed - b.offload_exposed}};
  Excess most;
  for (const Excess& part : parts)
    if (part.time > most.time) most = part;
  return most;
}

}  // namespace sibyl
