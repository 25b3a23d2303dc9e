#include "oracle/closed/closed_form.h"

#include <algorithm>

#include "oracle/cost/framework.h"
#include "oracle/cost/plan_for.h"
#include "oracle/cost/price.h"
#include "oracle/interval.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/pipeline/stages.h"

namespace sibyl::closed {

bool has_closed_form(const Strategy& s) {
  return s.framework == Framework::sibyl && s.zero_ranks == 0 && s.clip == 0 && !takes_norms(s.optimizer) &&
         s.recompute != Recompute::operations && s.recompute_every == 1 && s.recompute_together == 1 &&
         s.stage_starts.empty() && s.data_source == DataSource::memory;
}

FormKey form_key(const Strategy& strategy, const Cluster& cluster) {
  FormKey key{program_key(strategy), {}};
  const Mesh mesh = mesh_of(strategy);
  for (const Mesh::Extent& extent : mesh.extents)
    if (extent.axis != MeshAxis::data && extent.axis != MeshAxis::pipeline)
      key.second.push_back(placement(mesh, extent.axis, cluster.devices_per_node));
  return key;
}

namespace {

Strategy keeping_everything(Strategy strategy) {
  strategy.recompute = Recompute::none;
  return strategy;
}

}  // namespace

Result<std::unique_ptr<ProgramForm>> ProgramForm::make(const Graph& graph, const Strategy& strategy,
                                                       KernelPrices& kernels) {
  SIBYL_TRY(Stage program, make_program(graph, strategy));
  return std::unique_ptr<ProgramForm>(new ProgramForm(graph, std::move(program), strategy, kernels));
}

ProgramForm::ProgramForm(const Graph& graph, Stage program, const Strategy& strategy, KernelPrices& kernels)
    : graph_(graph),
      kernels_(kernels),
      slowdown_(slowdown_of(strategy, kernels.cluster())),
      table_(std::move(program), strategy, kernels),
      memory_(table_, keeping_everything(strategy)) {}

std::size_t ProgramForm::HashStageKey::operator()(const StageKey& key) const {
  const std::size_t options = (key.length << 4U) + (static_cast<std::size_t>(key.recompute) << 2U) +
                              (key.split ? 2U : 0U) + (key.alone ? 1U : 0U);
  return key.content ^ (options * 0x9E3779B97F4A7C15ULL) ^ std::hash<const Group*>{}(key.group);
}

ProgramForm::Group& ProgramForm::group_of(const Strategy& s) {
  std::unique_ptr<Group>& group = groups_[{s.data, s.pipeline, s.order, s.zero, s.exchange, s.bucket.value()}];
  if (!group) group = std::make_unique<Group>(s, table_, memory_, slowdown_);
  return *group;
}

const StageForm& ProgramForm::stage(Group& group, Range range, Recompute recompute, bool split, bool alone) {
  const StageKey key{table_.content(range.begin, range.end), range.end - range.begin, &group, recompute, split, alone};
  const auto found = stages_.find(key);
  if (found != stages_.end()) return found->second;
  return stages_.emplace(key, group.formula.stage(range, recompute, split, alone)).first->second;
}

double ProgramForm::late(double alone_kernels, const Strategy& strategy) {
  const auto [latest, added] = latest_.try_emplace(strategy.devices(), 0.0);
  if (added) latest->second = expected_maximum(strategy.devices());
  const Composition& composition = kernels_.cluster().composition;
  return alone_kernels * composition.factor * composition.spread * latest->second;
}

Result<Form> ProgramForm::of(const Strategy& strategy) {
  SIBYL_CHECK(check_strategy(graph_, strategy));
  return strategy.stages() == 1 ? alone(strategy) : pipeline(strategy);
}

Result<Form> ProgramForm::alone(const Strategy& strategy) {
  Group& group = group_of(strategy);
  const Range all{0, table_.steps()};
  const StageForm& form = stage(group, all, strategy.recompute, false, true);
  const auto micro_batches = static_cast<double>(strategy.accumulation);
  const StageForm::Turns turns = group.formula.step(all, strategy.recompute, strategy.accumulation);
  const double time = std::max(turns.time, turns.messages) + form.tail;
  const double passes = strategy.accumulation == 1 ? form.pass_and_gradients : form.pass + form.gradients;
  const double memory =
      kernels_.cluster().kernels.device().framework_base.value() + memory_.inputs() + form.state + passes;
  return Form{Seconds{time + late(form.alone * micro_batches + form.alone_once, strategy)}, Bytes{memory}};
}

Result<const std::vector<std::size_t>*> ProgramForm::begins(const Strategy& strategy,
                                                            const std::vector<int>& in_flight) {
  const Cluster& cluster = kernels_.cluster();
  const bool same_node = stages_share_nodes(strategy, cluster);
  const auto [entry, added] = begins_.try_emplace({in_flight, same_node, strategy.chunks});
  if (!added) return &entry->second;
  std::unique_ptr<CutTable>& table = cut_tables_[same_node ? 1 : 0];
  const CutCosts costs = cut_costs(strategy, kernels_);
  if (!table) table = std::make_unique<CutTable>(table_.program(), strategy.optimizer, costs);
  auto found = balanced(*table, strategy, in_flight, costs.memory);
  if (!found) {
    begins_.erase(entry);
    return tl::unexpected(found.error());
  }
  entry->second = std::move(*found);
  return &entry->second;
}

// The stages that hold each parameter which several hold, and what exchanging them takes.
Result<void> ProgramForm::check_ties(const Strategy& strategy, const std::vector<std::size_t>& ends,
                                     std::vector<TiedMessage>& tied, Group& group) {
  const auto stage_of = [&](std::size_t step) {
    return static_cast<int>(std::upper_bound(ends.begin(), ends.end(), step) - ends.begin());
  };
  std::map<std::size_t, std::vector<int>> holders;  // by parameter
  for (const Use& use : table_.uses()) {
    const Parameter& parameter = table_.parameters()[use.parameter];
    if (parameter.first_use == parameter.last_use || stage_of(parameter.first_use) == stage_of(parameter.last_use))
      continue;
    std::vector<int>& stages = holders[use.parameter];
    const int stage = stage_of(use.step);
    if (stages.empty() || stages.back() != stage) stages.push_back(stage);
  }
  std::map<std::tuple<std::vector<MeshAxis>, std::vector<int>, DType>, double> bytes;
  Ties ties;
  for (auto& [index, stages] : holders) {
    const Parameter& parameter = table_.parameters()[index];
    std::reverse(stages.begin(), stages.end());
    ties[parameter.tensor] = stages;
    bytes[{group.replicas.axes(parameter.summed_over), stages, parameter.dtype}] += parameter.bytes();
  }
  SIBYL_CHECK(sibyl::check_ties(graph_, table_.program(), ties, strategy.pipeline));
  for (const auto& [where, size] : bytes)
    tied.push_back({std::get<1>(where), group.replicas.tied_seconds(size, std::get<0>(where), std::get<1>(where))});
  return {};
}

double ProgramForm::sent(Group& group, std::size_t position, int from, int to, bool forward, const Strategy& strategy) {
  const Cluster& cluster = kernels_.cluster();
  const std::pair<int, int> coordinates{from % strategy.pipeline, to % strategy.pipeline};
  const auto [entry, added] = group.pairs.try_emplace(coordinates);
  if (added) {
    const Pairs pairs =
        pairs_of(group.replicas.mesh(), coordinates.first, coordinates.second, cluster.devices_per_node);
    entry->second = {pairs.same_node, pairs.sharing};
  }
  double seconds = 0;
  const Crossed& crossed = table_.crossed(position);
  for (const double bytes : forward ? crossed.forward : crossed.backward)
    seconds += cluster.network.point_to_point(Bytes{bytes}, entry->second.first, entry->second.second).time.value();
  return seconds;
}

Result<Form> ProgramForm::pipeline(const Strategy& strategy) {
  SIBYL_CHECK(check_state(strategy));
  const ScheduleShape shape{strategy.schedule, strategy.pipeline, strategy.chunks,
                            static_cast<int>(strategy.accumulation)};
  SIBYL_CHECK(check_shape(strategy.schedule, {shape.coordinates, shape.chunks, shape.micro_batches}));
  const ScheduleForms::InFlight& in_flight = schedules_.in_flight(shape);
  SIBYL_TRY(const std::vector<std::size_t>* begins, this->begins(strategy, in_flight.all));
  std::vector<std::size_t> ends = *begins;
  ends.push_back(table_.steps());
  Group& group = group_of(strategy);
  std::vector<TiedMessage> tied;
  SIBYL_CHECK(check_ties(strategy, ends, tied, group));
  const bool split = strategy.schedule == PipelineSchedule::zero_bubble;
  const auto coordinates = static_cast<std::size_t>(strategy.pipeline);
  std::vector<StageInPipeline> stages(ends.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Range range{s == 0 ? 0 : ends[s - 1], ends[s]};
    const int own = static_cast<int>(s);
    stages[s].form = &stage(group, range, strategy.recompute, split, false);
    if (s + 1 < stages.size()) stages[s].send_forward = sent(group, range.end, own, own + 1, true, strategy);
    if (s > 0) stages[s].send_backward = sent(group, range.begin, own, own - 1, false, strategy);
  }
  const ScheduleForms::Ends end = schedules_.ends(shape, stages, tied);
  double alone = 0, memory = 0;
  for (std::size_t c = 0; c < coordinates; ++c) {
    double state = 0, kept = 0, pass = 0;
    for (std::size_t s = c; s < stages.size(); s += coordinates) {
      const StageForm& form = *stages[s].form;
      state += form.state + form.gradients;
      const double later = in_flight.later[s];
      kept += form.kept * (in_flight.all[s] - later) + form.later * later;
      pass = std::max(pass, form.pass - form.kept);
      if (c == end.slowest) alone += form.alone * static_cast<double>(strategy.accumulation) + form.alone_once;
    }
    memory = std::max(memory, state + kept + pass);
  }
  memory += kernels_.cluster().kernels.device().framework_base.value();
  return Form{Seconds{end.time + late(alone, strategy)}, Bytes{memory}};
}

}  // namespace sibyl::closed
