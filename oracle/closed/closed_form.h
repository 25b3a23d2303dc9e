// What predict() answers of many strategies of one program, by formula: the step's time, and about how much memory it
// wants.
//
// Strategies whose form_key() is one share a ProgramForm. It
// prices their program once; stages with equal steps are worked out once for each way of exchanging their gradients.
// Not for several threads at once.
//
// Not every strategy has a closed form (has_closed_form()); those are simulated. docs/search.md tells how far the two
// are from each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/closed/least_time.h"
#include "oracle/closed/schedule_form.h"
#include "oracle/closed/stage_form.h"
#include "oracle/cost/framework.h"
#include "oracle/cost/price.h"
#include "oracle/plan/folding.h"
#include "oracle/plan/pipeline/balance.h"

namespace sibyl::closed {

struct Form {
  Seconds step_time;
  Bytes memory;        // of the fullest device, about; without what a caching allocator keeps
  bool walked = true;  // else the step takes this time at the least
};

bool has_closed_form(const Strategy& strategy, const Cluster& cluster);

// Strategies with equal ones share a ProgramForm. Of what hides exchanges: whether products do, and how far attention's
// kernels are slowed beside what goes round.
using FormKey = std::tuple<ProgramKey, std::vector<GroupPlacement>, bool, double>;
FormKey form_key(const Strategy& strategy, const Cluster& cluster);

class ProgramForm {
 public:
  // `strategy`: any of those that share it. `folding`: the graph's, null where it has none or is not to be folded. All
  // must outlive it.
  static Result<std::unique_ptr<ProgramForm>> make(const Graph& graph, const Folding* folding, const Strategy& strategy,
                                                   KernelPrices& kernels);
  // The same of a program that was made so before. `alike`: one of strategies with the same program_key(), or null;
  // what they share is found once. It must outlive this.
  static std::unique_ptr<ProgramForm> of(const Graph& graph, const Folding* folding, FoldedProgram program,
                                         const Strategy& strategy, KernelPrices& kernels, ProgramForm* alike = nullptr);

  // Asked once a strategy's stages are known, given no more than it takes: is it worth finding out more? And of a
  // pipeline again once all is known but how long its schedule takes.
  using Wanted = std::function<bool(const Form& at_least)>;

  // Fails as predict() does where the model cannot be split so. Where it is not wanted what was known is given back.
  Result<Form> of(
      const Strategy& strategy, const Wanted& wanted = [](const Form&) { return true; });

 private:
  ProgramForm(const Graph& graph, Program program, const Strategy& strategy, KernelPrices& kernels, ProgramForm* alike);

  // What sends between stages depend on: where the ranks of two neighbouring coordinates lie.
  struct Links {
    std::vector<Pairs> forward, backward;  // by coordinate that sends
    std::vector<Passage> forward_passages, backward_passages;
  };
  using MeshKey = std::tuple<int, int, std::vector<MeshAxis>>;  // of strategies that split operations alike
  // Strategies whose replicas exchange the same.
  struct Group {
    Group(const Strategy& strategy, ProgramTable& table, UpdatePrices& updates)
        : replicas(strategy, table.kernels()),
          formula(table, updates, replicas, slowdown_of(strategy, table.kernels().cluster())) {}

    Replicas replicas;
    StageFormula formula;
    const Links* links = nullptr;
    std::unordered_map<const StageWork*, StageForm> stages, gathering;  // as stage() and least_of_gathering() have them
  };
  using Tiers = std::tuple<Tier, Tier, Tier>;  // of optimizer state, parameters and activations
  using Zero = std::pair<int, int>;            // and its ranks
  using Reductions = std::pair<bool, bool>;    // of one micro-batch; of each
  using Compressed = std::pair<Compression::Kind, double>;
  using GroupKey = std::tuple<MeshKey, Zero, GradientExchange, double, Reductions, bool, Tiers,
                              Compressed>;  // the bool: gathers late
  // A program's stages.
  struct Cut {
    std::vector<std::size_t> ends;        // by stage
    std::vector<std::uint64_t> contents;  // likewise
    struct Tie {                          // of parameters that the same stages hold
      std::vector<int> stages;
      std::size_t summed = 0;  // as Parameter::summed
      double bytes = 0;
    };
    std::vector<Tie> ties;
  };
  // What a schedule lets be on its way: one for all schedules that let as many. Good as long as this.
  using ShapeKey = std::tuple<PipelineSchedule, int, int, int>;
  const InFlight& in_flight_of(const ScheduleShape& shape);
  // What where stages are cut depends on; and what a cut is.
  using CutKey = std::tuple<const InFlight*, bool, int, MemoryKey>;
  using Begins = std::pair<std::vector<std::size_t>, int>;
  // What crosses a position takes to be sent.
  struct Sent {
    Pairs pairs;
    double forward = 0, backward = 0;
    WireUse forward_wire, backward_wire;
  };

  // What strategies have in common that differ in buckets and in how ranks are laid out alone.
  using FamilyKey = std::tuple<const Result<Cut>*, RunsAgain, PipelineSchedule, int, int, Zero, int, Tier>;

  Group& group_of(const Strategy& strategy);
  const Links& links_of(const Strategy& strategy);
  bool share_nodes(const Strategy& strategy);  // neighbours in the pipeline
  StageForm& stage(Group& group, StageWork& work);
  const Result<Cut>& cut_of(const Strategy& strategy, const InFlight& in_flight);
  const Result<Cut>& find_cut(const Strategy& strategy, const InFlight& in_flight, bool share_nodes);
  [[nodiscard]] bool none_fits(CutTable& table, const Strategy& strategy, const InFlight& in_flight, Bytes memory);
  Result<Cut> cut(const Strategy& strategy, const std::vector<std::size_t>& begins);
  Result<void> find_ties(const Strategy& strategy, Cut& cut);
  const Sent& sent(std::size_t position, const Pairs& pairs);
  Bytes inputs_of(const Strategy& strategy);  // that a rank takes in for one micro-batch, at most
  Result<Form> alone(const Strategy& strategy, const Wanted& wanted);
  Result<Form> pipeline(const Strategy& strategy, const Wanted& wanted);
  using Works = std::vector<StageWork*>;                            // by stage
  const Works& works_of(const Cut& cut, const Strategy& strategy);  // good until other works of that cut are asked for
  // Makes `stages_` such of a StageForm each, which `form_of` has of its work and keeps.
  void set_forms(const Works& works, const auto& form_of);
  const Form& least(const Strategy& strategy, const ScheduleShape& shape, const Result<Cut>& cut);
  Form least_of_gathering(Group& group, const Strategy& strategy, const ScheduleShape& shape, const Cut& cut);
  [[nodiscard]] Bytes memory_of(const ScheduleShape& shape) const;  // of `stages_`
  double late(double alone_kernels, const Strategy& strategy);      // the slowest rank

  const Graph& graph_;
  KernelPrices& kernels_;
  ProgramTable table_;
  std::optional<MemoryTable> own_memory_;
  MemoryTable& memory_;
  UpdatePrices updates_;
  StageWorks works_;
  ScheduleForm schedule_;
  std::map<MeshKey, Links> links_;
  std::map<MeshKey, bool> share_nodes_;
  std::map<GroupKey, std::unique_ptr<Group>> groups_;
  Places places_;
  std::optional<StageMemories> own_memories_;
  StageMemories& stage_memories_;
  std::array<std::unique_ptr<CutTable>, 2> cut_tables_;  // by whether neighbours share a node
  std::map<Begins, Result<Cut>> cuts_;
  std::map<CutKey, const Result<Cut>*> cuts_of_;
  std::unordered_map<const Cut*, std::vector<std::pair<Asked, Works>>> works_of_;  // by what stages are asked
  std::map<std::pair<std::vector<int>, std::vector<int>>, InFlight> in_flights_;
  std::map<ShapeKey, const InFlight*> in_flight_of_;
  std::map<std::tuple<const InFlight*, int, MemoryKey>, bool> none_fits_;  // buckets apart
  std::map<FamilyKey, Form> least_;
  std::vector<std::vector<Sent>> sent_;  // by position
  std::map<int, double> latest_;         // by ranks
  std::vector<StageInPipeline> stages_;  // of the strategy at hand
};

}  // namespace sibyl::closed
