// The strategies of a search, tried in two ways: all of them by formula (oracle/closed), and the few that matter by
// simulation, as predict() does it. On all processors; what is found does not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/closed/closed_form.h"
#include "oracle/plan/folding.h"
#include "oracle/predict.h"
#include "oracle/search/search.h"

namespace sibyl {

struct Trial {
  std::optional<closed::Form> form;    // by formula, where there is one
  std::optional<Candidate> candidate;  // simulated
  bool fits = false;                   // of a simulated one; else as far as the formula tells
  bool too_large = false;              // its state alone is more than a device holds
  std::string why_not;                 // it cannot be planned

  [[nodiscard]] bool tried() const { return form || candidate || too_large || !why_not.empty(); }
  // As far as is known.
  [[nodiscard]] Seconds time() const { return candidate ? candidate->step_time : form->step_time; }
  [[nodiscard]] Bytes memory() const { return candidate ? candidate->memory : form->memory; }
};

class Trials {
 public:
  // All must outlive it.
  Trials(const Graph& graph, const Cluster& cluster, const std::vector<Strategy>& all, const SearchOptions& options);

  // Each strategy once; those without a closed form are simulated. Until it is cancelled.
  void by_formula();
  void simulate(std::span<const std::size_t> which);
  // Each entry: candidates of one strategy.
  void add_bottlenecks(std::span<const std::vector<Candidate*>> alike) const;

  [[nodiscard]] bool cancelled() const { return options_.cancelled && options_.cancelled(); }
  [[nodiscard]] const std::vector<Trial>& all() const { return trials_; }
  [[nodiscard]] const Strategy& strategy(std::size_t i) const { return strategies_[i]; }
  [[nodiscard]] int devices(std::size_t i) const { return strategies_[i].devices(); }
  [[nodiscard]] Bytes memory() const { return memory_; }  // of a device; 0: not known
  [[nodiscard]] Bytes framework() const { return cluster_.kernels.device().framework_base; }  // of that

 private:
  void by_formula(std::span<const std::size_t> group, KernelPrices& kernels, Evaluator& evaluator,
                  const std::function<void()>& tried);
  void simulate(std::size_t index, Evaluator& evaluator);

  const Graph& graph_;
  const Cluster& cluster_;
  const std::vector<Strategy>& strategies_;
  const SearchOptions& options_;
  Bytes memory_;
  std::optional<Folding> folding_;
  double parameters_;  // of the model
  unsigned threads_;
  std::vector<Trial> trials_;
};

}  // namespace sibyl
