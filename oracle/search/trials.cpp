#include "oracle/search/trials.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "oracle/memory/least_state.h"

namespace sibyl {
namespace {

// Calls visit(worker, i) for every i below `count`: each thread makes a worker of its own, and whoever is free takes
// the next.
template <class Make, class Visit>
void in_parallel(unsigned threads, std::size_t count, const Make& make, const Visit& visit) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](bool calling) {
    auto worker = make();
    for (std::size_t i = next++; i < count; i = next++) visit(*worker, i, calling);
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < threads && t < count; ++t) helpers.emplace_back(work, false);
  work(true);
  for (std::thread& helper : helpers) helper.join();
}

struct Worker {
  Worker(const Graph& graph, const Cluster& cluster) : kernels(cluster), evaluator(graph, cluster) {}
  KernelPrices kernels;
  Evaluator evaluator;
};

}  // namespace

Trials::Trials(const Graph& graph, const Cluster& cluster, const std::vector<Strategy>& all,
               const SearchOptions& options)
    : graph_(graph),
      cluster_(cluster),
      strategies_(all),
      options_(options),
      folding_(fold(graph)),
      parameters_(static_cast<double>(graph.parameter_count())),
      threads_(options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency())),
      trials_(all.size()) {
  const Bytes capacity = cluster.kernels.device().memory;
  memory_ =
      options.memory.value() > 0 && (capacity.value() <= 0 || options.memory < capacity) ? options.memory : capacity;
}

void Trials::by_formula() {
  std::map<closed::FormKey, std::vector<std::size_t>> by_program;
  for (std::size_t i = 0; i < strategies_.size(); ++i)
    by_program[closed::form_key(strategies_[i], cluster_)].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [key, group] : by_program) groups.push_back(std::move(group));
  std::atomic<std::size_t> done{0};
  in_parallel(
      threads_, groups.size(), [&] { return std::make_unique<Worker>(graph_, cluster_); },
      [&](Worker& worker, std::size_t g, bool calling) {
        by_formula(groups[g], worker.kernels, worker.evaluator, [&] {
          const std::size_t so_far = ++done;
          if (calling && options_.progress) options_.progress(so_far, strategies_.size());
        });
      });
  if (options_.progress) options_.progress(done, strategies_.size());
}

void Trials::by_formula(std::span<const std::size_t> group, KernelPrices& kernels, Evaluator& evaluator,
                        const std::function<void()>& tried) {
  Result<std::unique_ptr<closed::ProgramForm>> form{nullptr};
  for (const std::size_t i : group) {
    if (cancelled()) return;
    Trial& trial = trials_[i];
    const Strategy& strategy = strategies_[i];
    if (memory_.value() > 0 && least_state(parameters_, strategy) > memory_) {
      trial.too_large = true;
    } else if (options_.exhaustive || !closed::has_closed_form(strategy, cluster_) ||
               strategy.devices() > cluster_.devices()) {
      simulate(i, evaluator);
    } else {
      if (form && !*form) form = closed::ProgramForm::make(graph_, folding_ ? &*folding_ : nullptr, strategy, kernels);
      const Result<closed::Form> found = form ? (*form)->of(strategy) : tl::unexpected(form.error());
      if (found)
        trial.form = *found;
      else
        trial.why_not = found.error().message;
      trial.fits = found && !(memory_.value() > 0 && found->memory > memory_);
    }
    tried();
  }
}

void Trials::simulate(std::span<const std::size_t> which) {
  in_parallel(
      threads_, which.size(), [&] { return std::make_unique<Worker>(graph_, cluster_); },
      [&](Worker& worker, std::size_t i, bool) { simulate(which[i], worker.evaluator); });
}

void Trials::simulate(std::size_t index, Evaluator& evaluator) {
  Trial& trial = trials_[index];
  const Result<Evaluation> p = evaluator.evaluate(strategies_[index]);
  if (!p) {
    trial.why_not = p.error().message;
    trial.form.reset();
    return;
  }
  const Bytes needed = p->memory.needed();
  trial.fits = p->fits && !(memory_.value() > 0 && needed > memory_);
  trial.candidate = Candidate{strategies_[index],
                              p->step_time,
                              p->interval_low,
                              p->interval_high,
                              p->throughput,
                              needed,
                              p->breakdown,
                              p->error,
                              {},
                              false};
}

// Of what is given back alone: it takes as long as simulating a strategy several times.
void Trials::add_bottlenecks(std::span<const std::vector<Candidate*>> alike) const {
  in_parallel(
      threads_, alike.size(), [&] { return std::make_unique<Worker>(graph_, cluster_); },
      [&](Worker& worker, std::size_t i, bool) {
        const Bottleneck bottleneck = worker.evaluator.predict(alike[i].front()->strategy)->bottleneck;
        for (Candidate* candidate : alike[i]) candidate->bottleneck = bottleneck;
      });
}

}  // namespace sibyl
