#include "oracle/search/trials.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>

#include "oracle/closed/least_time.h"
#include "oracle/memory/least_state.h"
#include "oracle/search/in_parallel.h"

namespace sibyl {
namespace {

constexpr Seconds not_known{std::numeric_limits<double>::infinity()};

}  // namespace

Trials::Trials(const Graph& graph, const Cluster& cluster, const std::vector<Strategy>& all,
               const SearchOptions& options)
    : graph_(graph),
      cluster_(cluster),
      strategies_(all),
      options_(options),
      folding_(fold(graph)),
      kernels_(cluster),
      parameters_(static_cast<double>(graph.parameter_count())),
      at_least_(all.size(), not_known),
      trials_(all.size()) {
  const Bytes capacity = cluster.kernels.device().memory;
  memory_ =
      options.memory.value() > 0 && (capacity.value() <= 0 || options.memory < capacity) ? options.memory : capacity;
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  for (unsigned t = 0; t < threads; ++t) evaluators_.push_back(std::make_unique<Evaluator>(graph_, kernels_));
}

namespace {

// Of one space: do they share all that form_key() reads?
bool shared_program(const Strategy& a, const Strategy& b) {
  const auto read = [](const Strategy& s) {
    return std::tie(s.accumulation, s.data, s.pipeline, s.tensor, s.sequence, s.filter, s.channel, s.depth, s.height,
                    s.width, s.context, s.context_exchange, s.expert, s.table, s.order, s.overlap_tensor);
  };
  return read(a) == read(b);
}

}  // namespace

// Neighbours in a space mostly share their program, or take turns with a few, by where ranks lie.
std::vector<Trials::Group> Trials::groups_of(std::span<const std::size_t> which) const {
  using Members = std::vector<std::size_t>;
  std::map<closed::FormKey, Members> by_program;
  std::array<Members*, 4> last{};  // that were looked for
  std::size_t oldest = 0;
  for (const std::size_t i : which) {
    auto own = std::ranges::find_if(last, [&](const Members* members) {
      return members && shared_program(strategies_[i], strategies_[members->back()]);
    });
    if (own == last.end()) {
      own = last.begin() + static_cast<std::ptrdiff_t>(oldest);
      *own = &by_program[closed::form_key(strategies_[i], cluster_)];
      oldest = (oldest + 1) % last.size();
    }
    (*own)->push_back(i);
  }
  std::vector<Group> groups;
  for (auto& [key, members] : by_program) groups.push_back({std::get<ProgramKey>(key), std::move(members)});
  return groups;
}

// Where the best may be is looked first: a fast strategy that is soon known rules out many. What is ruled out depends
// on the groups before, not on who is done first: twice as many are tried at a time, each knowing of those before.
void Trials::by_formula(double most) {
  std::vector<std::size_t> every(strategies_.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  std::vector<Group> groups = groups_of(every);
  find_least(groups);
  std::ranges::stable_sort(groups, {}, [&](const Group& group) { return at_least_[group.members.front()]; });
  std::atomic<std::size_t> done{0};
  const auto tried = [&](bool calling) {
    const std::size_t so_far = ++done;
    if (calling && options_.progress) options_.progress(so_far, strategies_.size());
  };
  Rivals rivals;
  const std::span<Group> all = groups;
  for (std::size_t begin = 0, at_once = 8; begin < all.size(); begin += at_once, at_once *= 2)
    for (const Rivals& found :
         by_formula(all.subspan(begin, std::min(at_once, all.size() - begin)), rivals, most, tried))
      rivals.note(found);
  if (options_.progress) options_.progress(done, strategies_.size());
}

void Trials::by_formula(std::span<const std::size_t> which) {
  std::vector<Group> groups = groups_of(which);
  by_formula(groups, {}, std::numeric_limits<double>::infinity(), [](bool) {});
}

std::vector<Trials::Alike> Trials::by_program(std::span<const Group> groups) {
  std::map<ProgramKey, std::size_t> at;
  std::vector<Alike> all;  // in the order of each one's first group
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto [known, added] = at.try_emplace(groups[g].key, all.size());
    if (added) all.emplace_back();
    all[known->second].groups.push_back(g);
  }
  return all;
}

std::vector<Rivals> Trials::by_formula(std::span<Group> groups, const Rivals& rivals, double most,
                                       const std::function<void(bool)>& tried) {
  std::vector<Alike> programs = by_program(groups);
  // The longest first: the other threads then wait for a short one.
  for (Alike& alike : programs)
    for (const std::size_t g : alike.groups)
      alike.priced += std::ranges::count(groups[g].members, false, [&](std::size_t i) { return trials_[i].too_large; });
  std::ranges::stable_sort(programs, std::greater{}, &Alike::priced);
  std::vector<Rivals> found(groups.size());
  in_parallel(evaluators_.size(), programs.size(), [&](std::size_t thread, std::size_t p) {
    for (const std::size_t g : programs[p].groups)
      found[g] = by_formula(groups[g], programs[p], *evaluators_[thread], rivals, most, [&] { tried(thread == 0); });
    programs[p].first.reset();
  });
  return found;
}

void Trials::find_least(std::span<Group> groups) {
  std::vector<Alike> programs = by_program(groups);
  in_parallel(evaluators_.size(), programs.size(), [&](std::size_t, std::size_t p) {
    std::optional<Result<closed::FoldedProgram>> made;
    for (const std::size_t g : programs[p].groups) find_least(groups[g], made);
  });
}

// What each takes at the least, where there is a formula; puts the group in that order, those without a formula behind
// the others. `made`: the program, once it was asked for.
void Trials::find_least(Group& group, std::optional<Result<closed::FoldedProgram>>& made) {
  std::optional<Result<closed::FoldedProgram>> program;
  std::optional<closed::LeastTime> least;
  for (const std::size_t i : group.members) {
    if (cancelled()) return;
    const Strategy& strategy = strategies_[i];
    trials_[i].too_large = memory_.value() > 0 && least_state(parameters_, strategy) > memory_;
    if (trials_[i].too_large || !has_formula(i)) continue;
    if (!program) {
      if (!made) made = closed::FoldedProgram::make(graph_, folding_ ? &*folding_ : nullptr, strategy);
      program.emplace(*made);
      if (*program) least.emplace(**program, strategy, kernels_);
    }
    if (least) at_least_[i] = least->of(strategy);
  }
  using Key = std::pair<bool, Seconds>;
  std::vector<std::pair<Key, std::size_t>> order;
  order.reserve(group.members.size());
  for (const std::size_t i : group.members) order.emplace_back(Key{!has_formula(i), at_least_[i]}, i);
  std::ranges::stable_sort(order, {}, &std::pair<Key, std::size_t>::first);
  std::ranges::transform(order, group.members.begin(), &std::pair<Key, std::size_t>::second);
  if (program && *program && (*program)->times > 0) group.program = std::move(**program);  // of a few layers alone
}

Rivals Trials::by_formula(Group& group, Alike& alike, Evaluator& evaluator, Rivals rivals, double most,
                          const std::function<void()>& tried) {
  Result<std::unique_ptr<closed::ProgramForm>> form{nullptr};
  for (const std::size_t i : group.members) {
    if (cancelled()) return rivals;
    Trial& trial = trials_[i];
    const Strategy& strategy = strategies_[i];
    const int devices = strategy.devices();
    const auto wanted = [&](const closed::Form& at_least) {
      if (most == std::numeric_limits<double>::infinity()) return true;
      return !rivals.too_slow(at_least.step_time, devices, most) && may_fit(at_least.memory) &&
             !rivals.beat({at_least.step_time, at_least.memory, devices});
    };
    if (at_least_[i] < not_known && rivals.too_slow(at_least_[i], devices, most)) {
      trial.at_least = at_least_[i];
    } else if (!trial.too_large && !has_formula(i)) {
      simulate(i, evaluator);
    } else if (!trial.too_large) {
      if (form && !*form) form = make_form(group, strategy, alike.first.get());
      price(i, form ? (*form)->of(strategy, wanted) : tl::unexpected(form.error()));
    }
    if (trial.fits && trial.timed()) rivals.note({trial.time(), trial.memory(), devices});
    tried();
  }
  if (form && *form && !alike.first) alike.first = std::move(*form);
  return rivals;
}

Result<std::unique_ptr<closed::ProgramForm>> Trials::make_form(Group& group, const Strategy& strategy,
                                                               closed::ProgramForm* alike) {
  const Folding* folding = folding_ ? &*folding_ : nullptr;
  if (!group.program) return closed::ProgramForm::make(graph_, folding, strategy, kernels_);
  auto form = closed::ProgramForm::of(graph_, folding, std::move(*group.program), strategy, kernels_, alike);
  group.program.reset();
  return form;
}

bool Trials::has_formula(std::size_t i) const {
  return !options_.exhaustive && closed::has_closed_form(strategies_[i], cluster_) &&
         strategies_[i].devices() <= cluster_.devices();
}

bool Trials::may_fit(Bytes by_formula) const {
  constexpr double slack = 0.2;  // no formula of more than some megabytes has a quarter too much (docs/search.md)
  return memory_.value() <= 0 || !(by_formula * (1 - slack) > memory_);
}

void Trials::price(std::size_t i, const Result<closed::Form>& found) {
  Trial& trial = trials_[i];
  if (found)
    trial.form = *found;
  else
    trial.why_not = std::make_unique<Error>(found.error());
  trial.fits = found && !(memory_.value() > 0 && found->memory > memory_);
}

void Trials::simulate(std::span<const std::size_t> which) {
  in_parallel(evaluators_.size(), which.size(),
              [&](std::size_t thread, std::size_t i) { simulate(which[i], *evaluators_[thread]); });
}

void Trials::simulate(std::size_t index, Evaluator& evaluator) {
  Trial& trial = trials_[index];
  const Result<Evaluation> p = evaluator.evaluate(strategies_[index]);
  if (!p) {
    trial.why_not = std::make_unique<Error>(p.error());
    trial.form.reset();
    return;
  }
  const Bytes needed = p->memory.needed();
  trial.fits = p->fits && !(memory_.value() > 0 && needed > memory_);
  trial.candidate = std::make_unique<Candidate>(Candidate{strategies_[index],
                                                          p->step_time,
                                                          p->interval_low,
                                                          p->interval_high,
                                                          p->throughput,
                                                          needed,
                                                          p->breakdown,
                                                          p->error,
                                                          {},
                                                          false});
}

// Of what is given back alone: it takes as long as simulating a strategy several times.
void Trials::add_bottlenecks(std::span<const std::vector<Candidate*>> alike) const {
  in_parallel(evaluators_.size(), alike.size(), [&](std::size_t thread, std::size_t i) {
    if (cancelled()) return;
    const Bottleneck bottleneck = evaluators_[thread]->predict(alike[i].front()->strategy)->bottleneck;
    for (Candidate* candidate : alike[i]) candidate->bottleneck = bottleneck;
  });
}

}  // namespace sibyl
