// The strategies of a search, tried in three ways: by what a step takes at the least, which rules out those that are
// too slow in any case; the others by formula (both oracle/closed); and the few that matter by simulation, as predict()
// does it. On all processors; what is found does not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/closed/closed_form.h"
#include "oracle/plan/folding.h"
#include "oracle/predict.h"
#include "oracle/search/rivals.h"
#include "oracle/search/search.h"

namespace sibyl {

struct Trial {
  Seconds at_least;                      // its step takes, where it was ruled out for that; 0: it was not
  std::optional<closed::Form> form;      // by formula, where there is one; not walked where others beat it
  std::unique_ptr<Candidate> candidate;  // simulated
  bool fits = false;                     // of a simulated one; else as far as the formula tells
  bool too_large = false;                // its state alone is more than a device holds
  std::unique_ptr<Error> why_not;        // it cannot be planned

  // A step's time is known.
  [[nodiscard]] bool timed() const { return candidate || (form && form->walked); }
  [[nodiscard]] bool ruled_out() const { return at_least.value() > 0 && !form && !candidate && !why_not; }
  [[nodiscard]] bool tried() const { return form || candidate || too_large || ruled_out() || why_not; }
  // As far as is known: of what was ruled out no more than there is.
  [[nodiscard]] Seconds time() const { return candidate ? candidate->step_time : form ? form->step_time : at_least; }
  [[nodiscard]] Bytes memory() const { return candidate ? candidate->memory : form ? form->memory : Bytes{}; }
};

class Trials {
 public:
  // All must outlive it.
  Trials(const Graph& graph, const Cluster& cluster, const std::vector<Strategy>& all, const SearchOptions& options);

  // Each strategy once, until it is cancelled. Those are ruled out that are known to take more than `most` times the
  // device time of the fastest that fits; of the others those without a closed form are simulated, and of those with
  // one that others beat no more is found than that.
  void by_formula(double most);
  // These, whatever they are ruled out by.
  void by_formula(std::span<const std::size_t> which);
  void simulate(std::span<const std::size_t> which);
  // Each entry: candidates of one strategy.
  void add_bottlenecks(std::span<const std::vector<Candidate*>> alike) const;

  [[nodiscard]] bool cancelled() const { return options_.cancelled && options_.cancelled(); }
  [[nodiscard]] const std::vector<Trial>& all() const { return trials_; }
  [[nodiscard]] const Strategy& strategy(std::size_t i) const { return strategies_[i]; }
  [[nodiscard]] int devices(std::size_t i) const { return strategies_[i].devices(); }
  [[nodiscard]] bool has_formula(std::size_t i) const;
  [[nodiscard]] Bytes memory() const { return memory_; }  // of a device; 0: not known
  [[nodiscard]] bool may_fit(Bytes by_formula) const;     // what this is the memory of, by formula
  [[nodiscard]] Bytes framework() const { return cluster_.kernels.device().framework_base; }  // of that

 private:
  // Strategies that share a ProgramForm; their program, where it was made already and is small.
  struct Group {
    ProgramKey key;
    std::vector<std::size_t> members;
    std::optional<closed::FoldedProgram> program = {};
  };
  std::vector<Group> groups_of(std::span<const std::size_t> which) const;
  void find_least(std::span<Group> groups);
  void find_least(Group& group, std::optional<Result<closed::FoldedProgram>>& made);
  // Groups of one program, the first of which has the form that others share what they can with.
  struct Alike {
    std::vector<std::size_t> groups;
    std::ptrdiff_t priced = 0;  // strategies, at most
    std::unique_ptr<closed::ProgramForm> first = {};
  };
  static std::vector<Alike> by_program(std::span<const Group> groups);
  // Each of these, given what was tried before; with what is known then. `most` infinite: all strategies.
  std::vector<Rivals> by_formula(std::span<Group> groups, const Rivals& rivals, double most,
                                 const std::function<void(bool calling)>& tried);
  Rivals by_formula(Group& group, Alike& alike, Evaluator& evaluator, Rivals rivals, double most,
                    const std::function<void()>& tried);
  Result<std::unique_ptr<closed::ProgramForm>> make_form(Group& group, const Strategy& strategy,
                                                         closed::ProgramForm* alike);
  void price(std::size_t index, const Result<closed::Form>& found);
  void simulate(std::size_t index, Evaluator& evaluator);

  const Graph& graph_;
  const Cluster& cluster_;
  const std::vector<Strategy>& strategies_;
  const SearchOptions& options_;
  Bytes memory_;
  std::optional<Folding> folding_;
  KernelPrices kernels_;
  double parameters_;                                   // of the model
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // by thread
  std::vector<Seconds> at_least_;                       // that a step takes; infinite: not known
  std::vector<Trial> trials_;
};

}  // namespace sibyl
