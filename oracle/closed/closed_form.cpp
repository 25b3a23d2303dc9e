#include "oracle/closed/closed_form.h"

#include <algorithm>
#include <set>

#include "oracle/closed/pipeline_memory.h"
#include "oracle/cost/cached.h"
#include "oracle/cost/plan_for.h"
#include "oracle/cost/price.h"
#include "oracle/cost/shared_memory.h"
#include "oracle/expected_maximum.h"
#include "oracle/plan/pipeline/stages.h"
#include "oracle/plan/regathered.h"
#include "oracle/reading.h"

namespace sibyl::closed {

// Where ranks share memory, what a stage takes depends on the others.
bool has_closed_form(const Strategy& s, const Cluster& cluster) {
  if (stages_share_memory(s, cluster) || knows_caches(cluster)) return false;
  // Rows of operations that run again end where parameters are gathered anew.
  if (s.recompute == Recompute::operations && s.zero == 3) return false;
  return s.framework == Framework::sibyl && s.stage_starts.empty() && s.split_until.empty();
}

// Replicas exchange something between operations where they normalise together.
FormKey form_key(const Strategy& strategy, const Cluster& cluster) {
  FormKey key{program_key(strategy), {}, strategy.overlap_tensor, 1.0};
  if (goes_round(strategy)) std::get<double>(key) = slowdown_of(strategy, cluster).compute;
  const Mesh mesh = mesh_of(strategy);
  const bool replicas = strategy.batch_norm == BatchNorm::synchronised;
  for (const Mesh::Extent& extent : mesh.extents)
    if (extent.axis != MeshAxis::pipeline && (replicas || extent.axis != MeshAxis::data))
      std::get<1>(key).push_back(placement(mesh, extent.axis, cluster.devices_per_node));
  return key;
}

namespace {

RunsAgain runs_again(const Strategy& s) {
  return {s.recompute, {s.recompute_every, s.recompute_together}, s.recompute_kinds};
}

Strategy keeping_everything(Strategy strategy) {
  strategy.recompute = Recompute::none;
  return strategy;
}

}  // namespace

Result<std::unique_ptr<ProgramForm>> ProgramForm::make(const Graph& graph, const Folding* folding,
                                                       const Strategy& strategy, KernelPrices& kernels) {
  SIBYL_TRY(FoldedProgram program, FoldedProgram::make(graph, folding, strategy));
  return of(graph, folding, std::move(program), strategy, kernels);
}

std::unique_ptr<ProgramForm> ProgramForm::of(const Graph& graph, const Folding* folding, FoldedProgram program,
                                             const Strategy& strategy, KernelPrices& kernels, ProgramForm* alike) {
  Program whole;
  whole.rows = std::move(program.rows);
  const bool folded = program.times > 0;
  if (alike) {
    whole.whole = alike->table_.shared_program();
    whole.like = alike->table_.like();
  } else if (folded) {
    Unfolded unfolded = *unfold(*folding, program.steps);
    whole.whole = std::make_shared<const Stage>(std::move(unfolded.program));
    whole.like = std::move(unfolded.like);
  } else {
    whole.whole = std::make_shared<const Stage>(std::move(program.steps));
  }
  if (folded) whole.folded = std::move(program.steps);
  return std::unique_ptr<ProgramForm>(
      new ProgramForm(folded ? folding->graph : graph, std::move(whole), strategy, kernels, alike));
}

ProgramForm::ProgramForm(const Graph& graph, Program program, const Strategy& strategy, KernelPrices& kernels,
                         ProgramForm* alike)
    : graph_(graph),
      kernels_(kernels),
      table_(std::move(program), strategy, kernels, alike ? &alike->table_ : nullptr),
      memory_(alike ? alike->memory_ : own_memory_.emplace(table_, keeping_everything(strategy))),
      updates_(kernels, strategy),
      works_(table_, memory_),
      places_(table_.program()),
      stage_memories_(alike ? alike->stage_memories_
                            : own_memories_.emplace(memory_.backward(), places_, table_.like())),
      sent_(table_.steps() + 1) {}

const ProgramForm::Links& ProgramForm::links_of(const Strategy& s) {
  const auto [entry, added] = links_.try_emplace({s.data, s.pipeline, s.order});
  Links& links = entry->second;
  if (!added) return links;
  const Mesh mesh = mesh_of(s);
  const Cluster& cluster = kernels_.cluster();
  for (int c = 0; c < s.pipeline; ++c) {
    const int next = (c + 1) % s.pipeline, before = (c + s.pipeline - 1) % s.pipeline;
    links.forward.push_back(pairs_of(mesh, c, next, cluster.devices_per_node));
    links.backward.push_back(pairs_of(mesh, c, before, cluster.devices_per_node));
    links.forward_passages.push_back(passage_of(mesh, c, next, links.forward.back(), cluster));
    links.backward_passages.push_back(passage_of(mesh, c, before, links.backward.back(), cluster));
  }
  return links;
}

bool ProgramForm::share_nodes(const Strategy& s) {
  const auto [known, added] = share_nodes_.try_emplace({s.data, s.pipeline, s.order});
  if (added) known->second = stages_share_nodes(s, kernels_.cluster());
  return known->second;
}

ProgramForm::Group& ProgramForm::group_of(const Strategy& s) {
  std::unique_ptr<Group>& group = groups_[{{s.data, s.pipeline, s.order},
                                           {s.zero, s.zero_ranks},
                                           s.exchange,
                                           s.bucket.value(),
                                           {s.accumulation == 1, s.reduces_each()},
                                           s.gather_late && s.zero == 3,
                                           {s.optimizer_tier, s.parameter_tier, s.activation_tier},
                                           {s.compression.kind, s.compression.share}}];
  if (group) return *group;
  group = std::make_unique<Group>(s, table_, updates_);
  group->links = &links_of(s);
  return *group;
}

StageForm& ProgramForm::stage(Group& group, StageWork& work) {
  const auto [entry, added] = group.stages.try_emplace(&work);
  if (added) entry->second = group.formula.stage(work);
  return entry->second;
}

double ProgramForm::late(double alone_kernels, const Strategy& strategy) {
  const auto [latest, added] = latest_.try_emplace(strategy.devices(), 0.0);
  if (added) latest->second = expected_maximum(strategy.devices());
  const Composition& composition = kernels_.cluster().composition;
  return alone_kernels * composition.factor * composition.spread * latest->second;
}

Result<Form> ProgramForm::of(const Strategy& strategy, const Wanted& wanted) {
  SIBYL_CHECK(check_strategy(graph_, strategy));
  SIBYL_TRY(Form form, strategy.stages() == 1 ? alone(strategy, wanted) : pipeline(strategy, wanted));
  if (!form.walked || strategy.data_source == DataSource::memory) return form;
  SIBYL_TRY(const Seconds reading, reading_time(inputs_of(strategy), strategy, kernels_.cluster()));
  form.step_time = std::max(form.step_time, reading);
  return form;
}

// Of the stage that takes in most: all, where there is one; else what its steps read, and those that it makes again.
Bytes ProgramForm::inputs_of(const Strategy& strategy) {
  const Stage& program = table_.program();
  Bytes largest;
  if (strategy.stages() == 1) {
    for (const LocalTensor& tensor : program.tensors) largest += input_bytes(tensor);
    return largest;
  }
  const ScheduleShape shape{strategy.schedule, strategy.pipeline, strategy.chunks,
                            static_cast<int>(strategy.accumulation)};
  std::size_t begin = 0;
  for (const std::size_t end : cut_of(strategy, in_flight_of(shape))->ends) {
    std::set<LocalTensorId> read;
    const auto add = [&](std::size_t step) {
      for (const LocalTensorId in : sibyl::inputs_of(program.steps[step]))
        if (in.valid() && program[in].kind == TensorKind::input) read.insert(in);
    };
    for (std::size_t i = begin; i < end; ++i)
      if (table_.made_again().runs(i, end)) add(i);
    for (const MadeAgain::Repeated& again : table_.made_again().of(begin, end)) add(again.step);
    Bytes bytes;
    for (const LocalTensorId id : read) bytes += input_bytes(program[id]);
    largest = std::max(largest, bytes);
    begin = end;
  }
  return largest;
}

Result<Form> ProgramForm::alone(const Strategy& strategy, const Wanted& wanted) {
  Group& group = group_of(strategy);
  const Range all{0, table_.steps()};
  SIBYL_TRY(const bool each, group.formula.reduces_each());
  StageWork& work = works_.of(table_.content(all.begin, all.end), all,
                              {runs_again(strategy), false, true, strategy.data > 1,
                               strategy.activation_tier != Tier::device, gradients_in_buckets(strategy), each});
  const double without = kernels_.cluster().kernels.device().framework_base.value() + memory_.inputs();
  const StageForm least = group.formula.least(work);
  const bool all_at_once = (strategy.accumulation > 1 && !each) || gradients_in_buckets(strategy);
  const Form at_least{Seconds{group.formula.least_step(work, strategy.accumulation)},
                      Bytes{without + least.state + least.pass + (all_at_once ? least.gradients : 0.0)}, false};
  if (!wanted(at_least)) return at_least;
  const StageForm& form = stage(group, work);
  const auto micro_batches = static_cast<double>(strategy.accumulation);
  const StageForm::Turns turns = group.formula.step(work, strategy.accumulation);
  const double time = std::max(turns.time, turns.messages) + form.tail + group.formula.clip_norm().value_or(0.0);
  const double passes = all_at_once ? std::max(form.pass, form.update) + form.gradients : form.pass_and_gradients;
  return Form{Seconds{time + late(form.alone * micro_batches + form.alone_once, strategy)},
              Bytes{without + form.state + passes}};
}

const InFlight& ProgramForm::in_flight_of(const ScheduleShape& shape) {
  const InFlight*& known = in_flight_of_[{shape.schedule, shape.coordinates, shape.chunks, shape.micro_batches}];
  if (known) return *known;
  InFlight made = closed::in_flight(shape);
  std::pair key{made.all, made.later};
  return *(known = &in_flights_.try_emplace(std::move(key), std::move(made)).first->second);
}

const Result<ProgramForm::Cut>& ProgramForm::cut_of(const Strategy& strategy, const InFlight& in_flight) {
  const bool share_nodes = this->share_nodes(strategy);
  const Result<Cut>*& known = cuts_of_[{&in_flight, share_nodes, strategy.chunks, memory_key(strategy)}];
  if (!known) known = &find_cut(strategy, in_flight, share_nodes);
  return *known;
}

// Few cuts serve many strategies.
const Result<ProgramForm::Cut>& ProgramForm::find_cut(const Strategy& strategy, const InFlight& in_flight,
                                                      bool share_nodes) {
  std::unique_ptr<CutTable>& table = cut_tables_[share_nodes ? 1 : 0];
  if (!table)
    table = std::make_unique<CutTable>(table_.program(), places_, table_.crossing(), cut_costs(strategy, kernels_),
                                       table_.like());
  const Bytes all = memory_for_stages(kernels_.cluster().kernels.device());
  const Bytes memory = none_fits(*table, strategy, in_flight, all) ? Bytes{} : all;
  Result<std::vector<std::size_t>> begins = balanced(*table, stage_memories_, strategy, in_flight, memory);
  // Where there is none, so many stages are all there is to tell.
  Begins key{begins ? *begins : std::vector<std::size_t>{in_flight.all.size()},
             begins ? strategy.pipeline : -strategy.chunks};
  const auto known = cuts_.find(key);
  if (known != cuts_.end()) return known->second;
  Result<Cut> made = begins ? cut(strategy, *begins) : Result<Cut>(tl::unexpected(begins.error()));
  return cuts_.emplace(std::move(key), std::move(made)).first->second;
}

// Most strategies that fit nowhere, however they are cut, do not for what they hold whatever their buckets.
bool ProgramForm::none_fits(CutTable& table, const Strategy& strategy, const InFlight& in_flight, Bytes memory) {
  if (memory.value() <= 0) return false;
  const auto [known, added] =
      none_fits_.try_emplace({&in_flight, strategy.chunks, memory_key_without_buckets(strategy)}, false);
  if (added) known->second = !possible(table, stage_memories_.without_buckets(strategy), strategy, in_flight, memory);
  return known->second;
}

Result<ProgramForm::Cut> ProgramForm::cut(const Strategy& strategy, const std::vector<std::size_t>& begins) {
  Cut cut;
  cut.ends = begins;
  cut.ends.push_back(table_.steps());
  std::size_t begin = 0;
  for (const std::size_t end : cut.ends) {
    cut.contents.push_back(table_.content(begin, end));
    begin = end;
  }
  SIBYL_CHECK(find_ties(strategy, cut));
  return cut;
}

// The stages that hold each parameter which several hold.
Result<void> ProgramForm::find_ties(const Strategy& strategy, Cut& cut) {
  const auto stage_of = [&](std::size_t step) {
    return static_cast<int>(std::upper_bound(cut.ends.begin(), cut.ends.end(), step) - cut.ends.begin());
  };
  std::map<std::size_t, std::vector<int>> holders;  // by parameter
  for (const std::size_t index : table_.shared_uses()) {
    const Use& use = table_.uses()[index];
    const Parameter& parameter = table_.parameters()[use.parameter];
    if (stage_of(parameter.first_use) == stage_of(parameter.last_use)) continue;
    std::vector<int>& stages = holders[use.parameter];
    const int stage = stage_of(use.step);
    if (stages.empty() || stages.back() != stage) stages.push_back(stage);
  }
  std::map<std::tuple<std::size_t, std::vector<int>, DType>, double> bytes;
  Ties ties;
  for (auto& [index, stages] : holders) {
    const Parameter& parameter = table_.parameters()[index];
    std::reverse(stages.begin(), stages.end());
    ties[parameter.tensor] = stages;
    bytes[{parameter.summed, stages, parameter.dtype}] += parameter.gradient_bytes();
  }
  SIBYL_CHECK(check_ties(graph_, table_.program(), ties, strategy.pipeline));
  for (const auto& [where, size] : bytes) cut.ties.push_back({std::get<1>(where), std::get<0>(where), size});
  return {};
}

const ProgramForm::Sent& ProgramForm::sent(std::size_t position, const Pairs& pairs) {
  std::vector<Sent>& known = sent_[position];
  const auto found = std::ranges::find(known, pairs, &Sent::pairs);
  if (found != known.end()) return *found;
  const auto seconds = [&](const std::vector<double>& tensors) {
    double sum = 0;
    for (const double bytes : tensors)
      sum += kernels_.cluster().network.point_to_point(Bytes{bytes}, pairs.same_node, pairs.sharing).time.value();
    return sum;
  };
  const Crossed& crossed = table_.crossed(position);
  Sent sent{pairs, seconds(crossed.forward), seconds(crossed.backward), {}, {}};
  sent.forward_wire = wire_use(pairs, sent.forward, crossed.forward.size(), kernels_.cluster().network);
  sent.backward_wire = wire_use(pairs, sent.backward, crossed.backward.size(), kernels_.cluster().network);
  return known.emplace_back(sent);
}

// Most strategies have a cut in common with others that ask the same of its stages.
const ProgramForm::Works& ProgramForm::works_of(const Cut& cut, const Strategy& strategy) {
  const Asked asked{
      runs_again(strategy), strategy.schedule == PipelineSchedule::zero_bubble, false,
      strategy.data > 1,    strategy.activation_tier != Tier::device,           gradients_in_buckets(strategy)};
  std::vector<std::pair<Asked, Works>>& all = works_of_[&cut];
  const auto known = std::ranges::find(all, asked, &std::pair<Asked, Works>::first);
  if (known != all.end()) return known->second;
  Works works;
  for (std::size_t s = 0; s < cut.ends.size(); ++s)
    works.push_back(&works_.of(cut.contents[s], {s == 0 ? 0 : cut.ends[s - 1], cut.ends[s]}, asked));
  return all.emplace_back(asked, std::move(works)).second;
}

// Neighbours are mostly alike.
void ProgramForm::set_forms(const Works& works, const auto& form_of) {
  stages_.assign(works.size(), {});
  for (std::size_t s = 0; s < works.size(); ++s) {
    const bool like_before = s > 0 && works[s] == works[s - 1];
    stages_[s].form = like_before ? stages_[s - 1].form : &form_of(*works[s]);
  }
}

Bytes ProgramForm::memory_of(const ScheduleShape& shape) const {
  return Bytes{pipeline_memory(shape, stages_)} + kernels_.cluster().kernels.device().framework_base;
}

// Stages of equal content are one.
const Form& ProgramForm::least(const Strategy& strategy, const ScheduleShape& shape, const Result<Cut>& cut) {
  const auto [known, added] = least_.try_emplace({&cut,
                                                  runs_again(strategy),
                                                  strategy.schedule,
                                                  strategy.pipeline,
                                                  strategy.data,
                                                  {strategy.zero, strategy.zero_ranks},
                                                  shape.micro_batches,
                                                  strategy.optimizer_tier});
  Form& form = known->second;
  if (!added) return form;
  const StageFormula& formula = group_of(strategy).formula;
  std::unordered_map<const StageWork*, StageForm> forms;
  set_forms(works_of(*cut, strategy), [&](const StageWork& work) -> const StageForm& {
    const auto [entry, is_new] = forms.try_emplace(&work);
    if (is_new) entry->second = formula.least(work);
    return entry->second;
  });
  form = {Seconds{ScheduleForm::at_least(shape, stages_)}, memory_of(shape), false};
  return form;
}

Form ProgramForm::least_of_gathering(Group& group, const Strategy& strategy, const ScheduleShape& shape,
                                     const Cut& cut) {
  set_forms(works_of(cut, strategy), [&](const StageWork& work) -> const StageForm& {
    const auto [entry, added] = group.gathering.try_emplace(&work);
    if (added) entry->second = group.formula.least_of_gathering(work);
    return entry->second;
  });
  return {Seconds{ScheduleForm::at_least(shape, stages_)}, memory_of(shape), false};
}

Result<Form> ProgramForm::pipeline(const Strategy& strategy, const Wanted& wanted) {
  const ScheduleShape shape{strategy.schedule, strategy.pipeline, strategy.chunks,
                            static_cast<int>(strategy.accumulation)};
  SIBYL_CHECK(check_shape(strategy.schedule, {shape.coordinates, shape.chunks, shape.micro_batches}));
  const InFlight& in_flight = in_flight_of(shape);
  const Result<Cut>& cut = cut_of(strategy, in_flight);
  if (!cut) return tl::unexpected(cut.error());
  if (const Form& least = this->least(strategy, shape, cut); !wanted(least)) return least;
  Group& group = group_of(strategy);
  if (group.formula.gathers())
    if (const Form least = least_of_gathering(group, strategy, shape, *cut); !wanted(least)) return least;
  const auto coordinates = static_cast<std::size_t>(strategy.pipeline);
  set_forms(works_of(*cut, strategy), [&](StageWork& work) -> const StageForm& { return stage(group, work); });
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    StageInPipeline& own = stages_[s];
    if (s + 1 < stages_.size()) {
      const Sent& sent = this->sent(cut->ends[s], group.links->forward[s % coordinates]);
      own.send_forward = sent.forward, own.forward_wire = sent.forward_wire;
      own.forward_passage = group.links->forward_passages[s % coordinates];
      own.arrives_backward = table_.crossed(cut->ends[s]).backward_bytes();
    }
    if (s > 0) {
      const Sent& sent = this->sent(cut->ends[s - 1], group.links->backward[s % coordinates]);
      own.send_backward = sent.backward, own.backward_wire = sent.backward_wire;
      own.backward_passage = group.links->backward_passages[s % coordinates];
      own.arrives_forward = table_.crossed(cut->ends[s - 1]).forward_bytes();
    }
  }
  const Bytes memory = memory_of(shape);
  const Form at_least{Seconds{ScheduleForm::at_least(shape, stages_)}, memory, false};
  if (!wanted(at_least)) return at_least;
  LastMessages last{{}, group.formula.clip_norm()};
  for (const Cut::Tie& tie : cut->ties)
    last.tied.push_back(
        {tie.stages,
         group.replicas.tied_seconds(tie.bytes, group.replicas.axes(table_.summed_over()[tie.summed]), tie.stages)});
  const ScheduleForm::Ends end = schedule_.ends(shape, stages_, last, [&](double seconds) {
    return wanted({Seconds{seconds}, memory, false});
  });
  if (!end.walked) return Form{Seconds{end.time}, memory, false};
  double alone = 0;
  for (std::size_t s = end.slowest; s < stages_.size(); s += coordinates) {
    const StageForm& form = *stages_[s].form;
    alone += form.alone * static_cast<double>(strategy.accumulation) + form.alone_once;
  }
  return Form{Seconds{end.time + late(alone, strategy)}, memory};
}

}  // namespace sibyl::closed
