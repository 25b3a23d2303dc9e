#include "oracle/memory/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "oracle/cost/framework.h"
#include "oracle/cost/plan_for.h"
#include "oracle/cost/price.h"
#include "oracle/plan/names.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/step.h"

namespace sibyl {
namespace {

// A plan with its prices, and who walks it.
struct Walked {
  const Graph& graph;
  const Plan& plan;
  const std::vector<PricedStage>& priced;
  const Cluster& cluster;
  const Cancelled& cancelled;

  [[nodiscard]] bool pipelined() const { return plan.stages.size() > 1; }
  [[nodiscard]] const Device& device() const { return cluster.kernels.device(); }
  [[nodiscard]] std::size_t index_of(const Stage* stage) const {
    return static_cast<std::size_t>(stage - plan.stages.data());
  }
  Footprint walk(std::size_t coordinate, MicroBatches which, MemoryRecorder* recorder) const {
    if (!pipelined()) return footprint(plan.stages.front(), priced.front(), plan.strategy, device(), which, recorder);
    return footprint(plan, priced, static_cast<int>(coordinate), device(), which, recorder);
  }
};

// When each pass of a coordinate over each of its steps runs; cancelled: of some of them.
class Clock {
 public:
  Clock(const Walked& walked, std::size_t coordinate) {
    const Slowdown slowdown = slowdown_of(walked.plan.strategy, walked.cluster);
    if (walked.pipelined())
      read_pipeline(walked, coordinate, slowdown);
    else
      read_step(walked, slowdown);
  }

  // Nothing where nothing runs there: a view, an exchange in place.
  [[nodiscard]] std::optional<Span> of(std::size_t stage, const StepPlace& place) const {
    const auto found = spans_.find({stage, place.kind, place.micro_batch, place.step});
    return found == spans_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] Seconds busy() const { return busy_; }  // until the last pass has ended
  [[nodiscard]] Seconds end() const { return end_; }

 private:
  using Kind = NamedSpan::Kind;

  static bool is_forward(Kind kind) { return kind == Kind::forward || kind == Kind::exchange_forward; }
  static bool is_backward(Kind kind) { return kind == Kind::backward || kind == Kind::exchange_backward; }

  // What backward runs again is part of the backward pass that it is for: the first forward span of a step is its pass.
  void add(std::size_t stage, Turn::Kind turn, int micro_batch, std::size_t step, Span span) {
    spans_.try_emplace({stage, turn, micro_batch, step}, span);
    busy_ = std::max(busy_, span.end);
  }

  void read_step(const Walked& walked, Slowdown slowdown) {
    for (const NamedSpan& span :
         timeline(walked.graph, walked.plan.stages.front(), walked.priced.front(), slowdown, walked.cancelled)) {
      if (is_forward(span.kind)) add(0, Turn::Kind::forward, span.micro_batch, span.index, span.span);
      if (is_backward(span.kind)) add(0, Turn::Kind::backward, span.micro_batch, span.index, span.span);
      end_ = std::max(end_, span.span.end);
    }
  }

  void read_pipeline(const Walked& walked, std::size_t coordinate, Slowdown slowdown) {
    const SimulatedPipeline pipeline = simulate_pipeline(walked.plan, walked.priced, slowdown, {}, walked.cancelled);
    const CoordinateTimes& own = pipeline.coordinates[coordinate];
    for (const TimedTurn& timed : own.turns) {
      if (is_true(walked.cancelled)) return;
      const auto s = static_cast<std::size_t>(timed.turn.stage);
      const bool forward = timed.turn.kind == Turn::Kind::forward;
      for (const NamedSpan& span :
           turn_timeline(walked.graph, walked.plan.stages[s], walked.priced[s], slowdown, timed.turn, timed.place))
        if (forward ? is_forward(span.kind) : is_backward(span.kind)) {
          const Span at = in_step(timed, span);
          add(s, timed.turn.kind, timed.turn.micro_batch, span.index, {at.start - own.begin, at.end - own.begin});
        }
    }
    end_ = std::max(busy_, own.step.total);
  }

  std::map<std::tuple<std::size_t, Turn::Kind, int, std::size_t>, Span> spans_;
  Seconds busy_, end_;
};

MemoryBreakdown breakdown_of(const MemoryRecorder::Most& most) {
  using enum MemoryKind;
  const auto b = [&](MemoryKind kind) { return Bytes{most.live[static_cast<std::size_t>(kind)]}; };
  MemoryBreakdown breakdown{Bytes{most.total}, b(weights),   b(gradients),     b(optimizer),
                            b(activations),    b(workspace), b(communication), b(framework)};
  if (most.reserved > 0) breakdown.reserved = breakdown.framework + Bytes{most.reserved};
  return breakdown;
}

class Names {
 public:
  explicit Names(const Walked& walked) : walked_(walked) {}

  std::size_t of(const StepPlace& place, std::vector<std::string>& names) {
    const auto [at, added] = known_.try_emplace({place.what, place.stage, place.kind, place.step}, names.size());
    if (added) names.push_back(text(place));
    return at->second;
  }

 private:
  [[nodiscard]] std::string text(const StepPlace& place) const {
    if (place.what == StepPlace::What::before) return "before the step";
    if (place.what == StepPlace::What::update) return std::string(optimizer_name);
    return pass_name(walked_.graph, *place.stage, place.stage->steps[place.step], place.kind);
  }

  const Walked& walked_;
  std::map<std::tuple<StepPlace::What, const Stage*, Turn::Kind, std::size_t>, std::size_t> known_;
};

// What a segment runs again for its backward comes before the span of its last step, right after what came before.
bool runs_again(const StepPlace& place) {
  const auto ends_here = [&](const Segment& segment) { return segment.end == place.step + 1; };
  return place.kind != Turn::Kind::forward && std::ranges::any_of(place.stage->recomputed, ends_here);
}

void tell_moments(const Walked& walked, const MemoryRecorder& recorder, std::size_t coordinate,
                  MemoryHistory& history) {
  const Clock clock(walked, coordinate);
  Names names(walked);
  Seconds now;
  for (const MemoryRecorder::Most& most : recorder.places()) {
    if (is_true(walked.cancelled)) return;
    const StepPlace& place = most.place;
    const bool pass = place.what == StepPlace::What::pass;
    const auto span = pass ? clock.of(walked.index_of(place.stage), place) : std::nullopt;
    if (span && !(pass && runs_again(place))) now = std::max(now, span->start);
    if (place.what == StepPlace::What::update) now = std::max(now, clock.busy());
    history.moments.push_back({now, names.of(place, history.names), pass ? place.micro_batch : -1, breakdown_of(most)});
    if (span) now = std::max(now, span->end);
  }
  history.end = std::max(now, clock.end());
}

class Owners {
 public:
  explicit Owners(const Walked& walked) : walked_(walked) {}

  // Name, and the operation it belongs to.
  [[nodiscard]] std::pair<std::string, std::string> of(const MemoryOwner& owner) const {
    using What = MemoryOwner::What;
    switch (owner.what) {
      case What::framework: return {"context and libraries", ""};
      case What::tensor: return {tensor(owner), maker(owner)};
      case What::gradient: return {"gradient of " + tensor(owner), maker(owner)};
      case What::addend: return {"gradient to be added to that of " + tensor(owner), maker(owner)};
      case What::kept: return {fmt::format("of {}, kept for backward", at_step(owner)), at_step(owner)};
      case What::state: return {"optimizer state of " + tensor(owner), ""};
      case What::block: return {fmt::format("optimizer state of block {}", owner.index), ""};
      case What::bucket: return {fmt::format("bucket {} of gradients", owner.index), ""};
      case What::shard: return {fmt::format("own part of bucket {}", owner.index), ""};
      case What::buffer: return {fmt::format("buffer {} for buckets", owner.index), ""};
      case What::residual: return {fmt::format("what bucket {} has not sent", owner.index), ""};
      case What::compressed: return {fmt::format("bucket {}, compressed", owner.index), ""};
      case What::compressing: return {"room to compress a bucket", ""};
      case What::unit: return {fmt::format("gathered parameters of unit {}", owner.index), ""};
      case What::packing: return {"packed for exchange: " + tensor(owner), ""};
      case What::message: return {fmt::format("room for what stage {} is sent", walked_.index_of(owner.stage)), ""};
      case What::direction: return {"directions of updates", ""};
      case What::workspace: return {"workspace of a kernel", ""};
    }
    return {};
  }

 private:
  [[nodiscard]] TensorId origin(const MemoryOwner& owner) const { return owner.stage->tensors[owner.index].origin; }
  [[nodiscard]] std::string tensor(const MemoryOwner& owner) const {
    return origin(owner).valid() ? walked_.graph[origin(owner)].name : "a tensor of the plan";
  }
  [[nodiscard]] std::string maker(const MemoryOwner& owner) const {
    if (!origin(owner).valid()) return {};
    const OperationId producer = walked_.graph.producer(origin(owner));
    if (producer.valid()) return walked_.graph[producer].name;
    const auto consumers = walked_.graph.consumers(origin(owner));  // of a parameter: who uses it
    return consumers.empty() ? std::string() : walked_.graph[consumers.front()].name;
  }
  [[nodiscard]] std::string at_step(const MemoryOwner& owner) const {
    const auto* compute = std::get_if<Compute>(&owner.stage->steps[owner.index]);
    return compute ? walked_.graph[compute->operation].name : std::string();
  }

  const Walked& walked_;
};

std::vector<AliveMemory> alive_of(const Walked& walked, const MemoryRecorder::Alive& alive) {
  const Owners owners(walked);
  std::vector<AliveMemory> list;
  for (const auto& [what, count] : alive) {
    const auto& [kind, owner, bytes] = what;
    auto [name, operation] = owners.of(owner);
    list.push_back({std::move(name), kind, Bytes{bytes * count}, count, std::move(operation)});
  }
  std::ranges::stable_sort(list, std::greater{}, &AliveMemory::bytes);
  return list;
}

// Cancelled: not all of it.
MemoryHistory history_of(const Walked& walked, std::size_t coordinate) {
  MemoryHistory history;
  MemoryRecorder recorder;
  history.footprint = walked.walk(coordinate, MicroBatches::all, &recorder);
  history.peak = recorder.peak_place();
  tell_moments(walked, recorder, coordinate, history);
  if (is_true(walked.cancelled)) return history;
  MemoryRecorder lister(recorder.peak_change());
  walked.walk(coordinate, MicroBatches::all, &lister);
  history.alive = alive_of(walked, lister.alive());
  return history;
}

}  // namespace

std::string MemoryHistory::where(std::size_t moment) const {
  const MemoryMoment& m = moments[moment];
  return m.micro_batch < 0 ? names[m.name] : fmt::format("{} of micro-batch {}", names[m.name], m.micro_batch);
}

Result<StepMemory> step_memory(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                               std::optional<std::size_t> coordinate, const Cancelled& cancelled) {
  SIBYL_TRY(const Plan plan, plan_for(graph, strategy, cluster));
  const std::vector<PricedStage> priced = price(plan, cluster);
  const Walked walked{graph, plan, priced, cluster, cancelled};
  StepMemory memory;
  for (std::size_t c = 0; c < plan.schedule.size(); ++c) {
    if (is_true(cancelled)) return interrupted();
    memory.devices.push_back(walked.walk(c, MicroBatches::enough, nullptr));
    if (memory.devices[c].peak.needed() > memory.devices[memory.coordinate].peak.needed()) memory.coordinate = c;
  }
  if (coordinate) memory.coordinate = std::min(*coordinate, plan.schedule.size() - 1);
  memory.history = history_of(walked, memory.coordinate);
  if (is_true(cancelled)) return interrupted();
  return memory;
}

}  // namespace sibyl
