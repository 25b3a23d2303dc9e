// What backward wants of a program, step by step: bytes that a step's forward leaves for it, and what is alive while it
// runs. About what StepWalk (memory/step_walk.h) finds, without a walk: whichever of the steps are a stage.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "models/training/training.h"
#include "oracle/plan/plan.h"

namespace sibyl {

class BackwardMemory {
 public:
  // Stands for a storage: there is none.
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  // `program` must outlive it. `strategy`: any of those that share the program. `like`: by step, an earlier one that
  // runs the same, or itself; empty where that is not known. `workspace`: as of CutCosts.
  BackwardMemory(const Stage& program, const Strategy& strategy, Backend backend, const std::vector<std::size_t>& like,
                 const WorkspaceOf& workspace);

  // A storage that a step's backward wants, by its tensor, an activation or an input; `none`: something of the step's
  // own.
  struct Wanted {
    std::size_t storage = none;
    double bytes = 0;
  };
  [[nodiscard]] const Stage& program() const { return program_; }
  [[nodiscard]] const std::vector<Wanted>& wanted(std::size_t step) const { return wanted_[step]; }
  // While the step's backward runs: gradients of activations, and the kernel's workspace.
  [[nodiscard]] const std::vector<double>& working() const { return working_; }
  // By step: the gradient that came in, where that of a weight may be put off.
  [[nodiscard]] const std::vector<double>& later() const { return later_; }
  // The tensor whose memory a tensor shares; itself where it is no view.
  [[nodiscard]] LocalTensorId storage(LocalTensorId id) const { return LocalTensorId{storage_[id.index()]}; }
  [[nodiscard]] double bytes_of(LocalTensorId id) const;  // rounded up, as it is allocated
  [[nodiscard]] double rounded(double bytes) const;

 private:
  // Of one step, whichever it is of those that run the same.
  struct Facts {
    TrainingRule rule;
    double workspace = 0;              // of its backward
    std::uint32_t passed_through = 0;  // operands to which it hands the gradient that comes in
  };
  using AllFacts = std::vector<Facts>;
  [[nodiscard]] AllFacts facts_of_steps(const WorkspaceOf& workspace) const;
  [[nodiscard]] const Facts& of(const AllFacts& facts, std::size_t step) const {
    return facts[like_.empty() ? step : like_[step]];
  }
  void find_storages(const AllFacts& facts);
  void find_wanted(const AllFacts& facts, const Strategy& strategy);
  void find_working(const AllFacts& facts);
  void find_later();

  const Stage& program_;
  std::vector<std::size_t> like_;
  Backend backend_;
  double granularity_;
  std::vector<std::size_t> storage_;         // by tensor
  std::vector<std::vector<Wanted>> wanted_;  // by step
  std::vector<double> working_, later_;
};

}  // namespace sibyl
