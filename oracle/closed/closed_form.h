// What predict() answers of many strategies of one program, by formula: the step's time, and about how much memory it
// wants.
//
// Strategies whose program_key() is one, and whose ranks of one replica lie on nodes alike, share a ProgramForm. It
// prices their program once; stages with equal steps are worked out once for each way of exchanging their gradients.
// Not for several threads at once.
//
// Not every strategy has a closed form (has_closed_form()); those are simulated. docs/search.md tells how far the two
// are from each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/closed/schedule_form.h"
#include "oracle/closed/stage_form.h"
#include "oracle/plan/pipeline/balance.h"

namespace sibyl::closed {

struct Form {
  Seconds step_time;
  Bytes memory;  // of the fullest device, about; without what a caching allocator keeps
};

bool has_closed_form(const Strategy& strategy);

// Strategies with equal ones share a ProgramForm.
using FormKey = std::pair<ProgramKey, std::vector<GroupPlacement>>;
FormKey form_key(const Strategy& strategy, const Cluster& cluster);

class ProgramForm {
 public:
  // `strategy`: any of those that share it. Graph and prices must outlive it.
  static Result<std::unique_ptr<ProgramForm>> make(const Graph& graph, const Strategy& strategy, KernelPrices& kernels);

  // Fails as predict() does where the model cannot be split so.
  Result<Form> of(const Strategy& strategy);

 private:
  ProgramForm(const Graph& graph, Stage program, const Strategy& strategy, KernelPrices& kernels);

  // Of strategies that have the mesh and what else their messages depend on in common.
  using ReplicasKey = std::tuple<int, int, std::vector<MeshAxis>, int, GradientExchange, double>;
  struct Group {
    Group(const Strategy& strategy, ProgramTable& table, MemoryTable& memory, Slowdown slowdown)
        : replicas(strategy, table.kernels().cluster()), formula(table, memory, replicas, slowdown) {}

    Replicas replicas;
    StageFormula formula;
    std::map<std::pair<int, int>, std::pair<bool, int>> pairs;  // coordinates: on one node, and how many at once
  };
  struct StageKey {
    std::uint64_t content = 0;
    std::size_t length = 0;
    const Group* group = nullptr;
    Recompute recompute = Recompute::none;
    bool split = false, alone = false;
    bool operator==(const StageKey&) const = default;
  };
  struct HashStageKey {
    std::size_t operator()(const StageKey& key) const;
  };

  Group& group_of(const Strategy& strategy);
  const StageForm& stage(Group& group, Range range, Recompute recompute, bool split, bool alone);
  Result<const std::vector<std::size_t>*> begins(const Strategy& strategy, const std::vector<int>& in_flight);
  Result<void> check_ties(const Strategy& strategy, const std::vector<std::size_t>& ends,
                          std::vector<TiedMessage>& tied, Group& group);
  double sent(Group& group, std::size_t position, int from, int to, bool forward, const Strategy& strategy);
  Result<Form> alone(const Strategy& strategy);
  Result<Form> pipeline(const Strategy& strategy);
  double late(double alone_kernels, const Strategy& strategy);  // the slowest rank

  const Graph& graph_;
  KernelPrices& kernels_;
  Slowdown slowdown_;
  ProgramTable table_;
  MemoryTable memory_;
  ScheduleForms schedules_;
  std::map<ReplicasKey, std::unique_ptr<Group>> groups_;
  std::unordered_map<StageKey, StageForm, HashStageKey> stages_;
  std::array<std::unique_ptr<CutTable>, 2> cut_tables_;  // by whether neighbours share a node
  std::map<std::tuple<std::vector<int>, bool, int>, std::vector<std::size_t>> begins_;
  std::map<int, double> latest_;  // by ranks
};

}  // namespace sibyl::closed
