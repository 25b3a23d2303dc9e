#include "oracle/memory/footprint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "models/training/gradient_aliasing.h"
#include "models/training/training.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/pipeline/arrivals.h"
#include "oracle/plan/recompute.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

enum Kind { weights, gradients, optimizer, activations, workspace, communication, framework, kind_count };

constexpr std::size_t no_storage = static_cast<std::size_t>(-1);

// f32 tensors of the parameter's shape that the optimizer keeps for it.
int optimizer_states(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd: return 0;
    case OptimizerKind::momentum:
    case OptimizerKind::lars: return 1;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::lamb: return 2;
  }
  return 0;
}

// Live bytes by kind, and the most there ever were.
class Ledger {
 public:
  explicit Ledger(double granularity) : granularity_(granularity) {}

  [[nodiscard]] double rounded(double bytes) const { return std::ceil(bytes / granularity_) * granularity_; }
  void take(Kind kind, double bytes) {
    live_[kind] += rounded(bytes);
    note();
  }
  void give(Kind kind, double bytes) { live_[kind] -= rounded(bytes); }
  void phase(const char* name) { phase_ = name; }

  [[nodiscard]] Footprint result() const {
    const auto b = [&](Kind kind) { return Bytes{peak_[kind]}; };
    return {{Bytes{peak_total_}, b(weights), b(gradients), b(optimizer), b(activations), b(workspace), b(communication),
             b(framework)},
            peak_phase_};
  }

 private:
  void note() {
    double total = 0;
    for (const double bytes : live_) total += bytes;
    if (total <= peak_total_) return;
    peak_total_ = total;
    peak_ = live_;
    peak_phase_ = phase_;
  }

  double granularity_;
  std::array<double, kind_count> live_{}, peak_{};
  double peak_total_ = 0;
  const char* phase_ = "forward";
  const char* peak_phase_ = "forward";
};

// A storage that several tensors may view, freed when nobody holds it.
struct Storage {
  double bytes = 0;
  int holders = 0;
  Kind kind = activations;
};

class StepWalk {
 public:
  StepWalk(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device,
           Ledger& ledger)
      : stage_(stage),
        priced_(priced),
        strategy_(strategy),
        device_(device),
        ledger_(ledger),
        storage_of_(stage.tensors.size(), no_storage),
        gradient_of_(stage.tensors.size(), no_storage),
        again_(recomputed_steps(stage)),
        later_(splits_backward(stage) ? later_gradients(stage) : std::vector<std::uint32_t>(stage.steps.size(), 0)),
        linked_(!stage.receives.empty() || !stage.sends.empty()),
        sharded_(sharded_parameters(stage)),
        gathered_(stage.units.size(), false),
        overlapped_(strategy.exchange == GradientExchange::overlapped) {
    for (const Step& step : stage.steps) {
      const auto* compute = std::get_if<Compute>(&step);
      rules_.push_back(compute ? training_rule(signature(stage, *compute), compute->gradients, device.backend)
                               : TrainingRule{});
    }
  }

  // What is there before the step and stays: weights, optimizer state, buckets, this step's batch.
  void take_static() {
    for (std::size_t i = 0; i < stage_.tensors.size(); ++i) {
      const LocalTensor& tensor = stage_.tensors[i];
      const bool weight = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer;
      if (weight && !sharded_[i]) ledger_.take(weights, bytes_of(LocalTensorId{i}));
      if (tensor.kind == TensorKind::input && !linked_) ledger_.take(activations, bytes_of(LocalTensorId{i}));
    }
    for (const Update& update : stage_.updates)
      if (!sharded_[update.parameter.index()]) take_state(element_count(stage_[update.parameter].shape));
    for (std::size_t s = 0; s < stage_.gradients.size(); ++s) {
      if (stage_.gradients[s].sharded())
        take_shards(s);
      else
        for (const Bucket& bucket : stage_.gradients[s].buckets)
          ledger_.take(communication, static_cast<double>(bucket.bytes()));
    }
  }

  // Each turn, in the order of the schedule.
  void take(const Turn& turn) {
    micro_batch_ = turn.micro_batch;
    if (turn.kind == Turn::Kind::forward)
      forward();
    else
      backward(turn.kind, ++backwards_ == backward_turns());
  }

  // Gradients are dropped after the update, so its peak is what is live now and one kernel's workspace.
  void update() {
    ledger_.phase("optimizer");
    // Every direction is known before the norms of the whole tensors are.
    if (strategy_.optimizer == OptimizerKind::lamb && !stage_.norm_axes.empty())
      for (const double bytes : direction_bytes()) ledger_.take(optimizer, bytes);
    for (const std::size_t kernel : priced_.kernels.updates) with_workspace(kernel, [] {});
  }

 private:
  // Storages of a micro-batch that is on its way: what autograd keeps, by step; inputs of segments that run again; what
  // the rank itself holds until backward.
  struct Held {
    std::vector<std::vector<std::size_t>> saved, segments;
    std::vector<std::size_t> own;
  };
  Held& held() {
    Held& result = held_[micro_batch_];
    if (result.saved.empty()) {
      result.saved.resize(stage_.steps.size());
      result.segments.resize(stage_.recomputed.size());
    }
    return result;
  }
  [[nodiscard]] int backward_turns() const { return static_cast<int>(stage_.schedule.size()) - stage_.micro_batches(); }

  double bytes_of(LocalTensorId id) const {
    return static_cast<double>(element_count(stage_[id].shape)) * size_in_bytes(stage_[id].dtype);
  }

  void take_state(std::int64_t elements) {
    for (int i = 0; i < optimizer_states(strategy_.optimizer); ++i)
      ledger_.take(optimizer, 4.0 * static_cast<double>(elements));
  }

  // Of sharded buckets: the parameters, flat, or the rank's part of them; its part's state; gradients' buffers and
  // parts.
  void take_shards(std::size_t index) {
    const GradientSync& sync = stage_.gradients[index];
    std::int64_t largest = 0;
    for (std::size_t b = 0; b < sync.buckets.size(); ++b) {
      const Bucket& bucket = sync.buckets[b];
      const BucketPart own = part_of(bucket, sync.parts, 0);
      const double part = static_cast<double>(own.size()) * size_in_bytes(bucket.dtype);
      const auto whole = static_cast<double>(bucket.bytes());
      ledger_.take(weights, has_unit(stage_, index, b) ? part : whole);
      if (takes_norms(strategy_.optimizer))
        for (const Piece& piece : pieces(stage_, bucket, own.begin, own.end)) take_state(piece.elements);
      else
        take_state(own.size());
      largest = std::max(largest, bucket.bytes());
      if (sync.buffers > 0)
        ledger_.take(gradients, part);
      else
        ledger_.take(communication, whole);
    }
    for (int i = 0; i < std::min<int>(sync.buffers, static_cast<int>(sync.buckets.size())); ++i)
      ledger_.take(communication, static_cast<double>(largest));
  }

  std::size_t allocate(double bytes, Kind kind) {
    ledger_.take(kind, bytes);
    storages_.push_back({bytes, 0, kind});
    return storages_.size() - 1;
  }
  void hold(std::size_t storage) {
    if (storage != no_storage) ++storages_[storage].holders;
  }
  void release(std::size_t storage) {
    if (storage == no_storage) return;
    if (--storages_[storage].holders == 0) ledger_.give(storages_[storage].kind, storages_[storage].bytes);
  }

  void with_workspace(const std::optional<std::size_t>& kernel, auto&& body) {
    const double extra = kernel ? priced_.prices[*kernel].estimate.workspace.value() : 0;
    body();
    if (extra > 0) ledger_.take(workspace, extra), ledger_.give(workspace, extra);
  }

  // What comes from outside for this micro-batch.
  void receive() {
    for (std::size_t t = 0; linked_ && t < stage_.tensors.size(); ++t) {
      if (stage_.tensors[t].kind != TensorKind::input) continue;
      const std::size_t last = storage_of_[t];
      hold(storage_of_[t] = allocate(bytes_of(LocalTensorId{t}), activations));
      release(last);
    }
    for (const Link& link : stage_.receives) {
      hold(storage_of_[link.tensor.index()] = allocate(bytes_of(link.tensor), activations));
      keep(link.tensor);
    }
  }
  void keep(LocalTensorId id) {
    hold(storage_of_[id.index()]);
    held().own.push_back(storage_of_[id.index()]);
  }

  void forward() {
    ledger_.phase("forward");
    receive();
    std::vector<int> uses(stage_.tensors.size(), 0);
    for (const Step& step : stage_.steps)
      for (const LocalTensorId in : inputs_of(step))
        if (in.valid()) ++uses[in.index()];
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].begin == i) enter(u, true);
      for (std::size_t s = 0; s < stage_.recomputed.size(); ++s)
        if (stage_.recomputed[s].begin == i) keep_inputs(s);
      run(i, uses, !again_[i]);
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].end == i + 1 && !stays_gathered(stage_, stage_.units[u])) leave(u);
    }
    hand_on();
  }

  // The program lets go of what it sent and of what it received; the rank holds both: there backward begins and ends.
  void hand_on() {
    for (const Link& link : stage_.sends) keep(link.tensor);
    for (const Link& link : stage_.sends) release(storage_of_[link.tensor.index()]);
    for (const Link& link : stage_.receives)
      if (!is_sent(link.tensor)) release(storage_of_[link.tensor.index()]);
  }
  [[nodiscard]] bool is_sent(LocalTensorId id) const {
    return std::any_of(stage_.sends.begin(), stage_.sends.end(), [&](const Link& link) { return link.tensor == id; });
  }
  [[nodiscard]] bool is_received(LocalTensorId id) const {
    return std::any_of(stage_.receives.begin(), stage_.receives.end(),
                       [&](const Link& link) { return link.tensor == id; });
  }
  // Does the program let go of it after its last consumer?
  [[nodiscard]] bool dies(LocalTensorId id) const {
    if (!linked_) return true;
    return stage_[id].kind != TensorKind::input && !is_sent(id) && !is_received(id);
  }

  // `uses`: consumers to come, by tensor.
  void run(std::size_t i, std::vector<int>& uses, bool saves) {
    const Step& step = stage_.steps[i];
    const auto* compute = std::get_if<Compute>(&step);
    with_workspace(priced_.kernels.steps[i].forward, [&] {
      if (compute)
        produce(*compute, rules_[i]);
      else
        move(std::get<Exchange>(step));
    });
    if (compute && saves) save(*compute, i);
    const bool replayed = saves && again_[i];
    // The program's own reference goes when the last consumer has run (at once if nobody consumes it).
    for (const LocalTensorId in : inputs_of(step))
      if (in.valid() && --uses[in.index()] == 0 && (replayed || dies(in))) release(storage_of_[in.index()]);
    for (const LocalTensorId out : outputs_of(step))
      if (uses[out.index()] == 0 && (replayed || dies(out))) release(storage_of_[out.index()]);
  }

  void keep_inputs(std::size_t segment) {
    for (const LocalTensorId in : inputs_of(stage_, stage_.recomputed[segment])) {
      hold(storage_of_[in.index()]);
      held().segments[segment].push_back(storage_of_[in.index()]);
    }
  }

  // Runs a segment again, now saving what backward needs. What it was made from, its results and their gradients stay
  // until its backward is over.
  void replay(std::size_t segment) {
    const Segment& range = stage_.recomputed[segment];
    const std::vector<LocalTensorId> inputs = inputs_of(stage_, range), outputs = outputs_of(stage_, range);
    std::vector<int> uses(stage_.tensors.size(), 0);
    for (std::size_t i = range.begin; i < range.end; ++i)
      for (const LocalTensorId in : inputs_of(stage_.steps[i]))
        if (in.valid()) ++uses[in.index()];
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      storage_of_[inputs[n].index()] = held().segments[segment][n];
      hold(held().segments[segment][n]);  // for the program, which releases it after the last consumer
    }
    for (const LocalTensorId out : outputs) {
      ++uses[out.index()];
      hold(gradient_of_[out.index()]);
      held().segments[segment].push_back(gradient_of_[out.index()]);
    }
    for (std::size_t i = range.begin; i < range.end; ++i) run(i, uses, true);
    for (const LocalTensorId out : outputs) held().segments[segment].push_back(storage_of_[out.index()]);
  }

  void end_segment(std::size_t segment) {
    for (const std::size_t storage : held().segments[segment]) release(storage);
    held().segments[segment].clear();
  }

  void gather(std::size_t unit) {
    if (unit >= stage_.units.size() || gathered_[unit]) return;
    ledger_.take(weights, unit_bytes(unit));
    gathered_[unit] = true;
  }
  double unit_bytes(std::size_t unit) const {
    const ParameterUnit& u = stage_.units[unit];
    return static_cast<double>(stage_.gradients[u.sync].buckets[u.bucket].bytes());
  }
  // Together with the next ones, which are on their way.
  void enter(std::size_t unit, bool forwards) {
    gather(unit);
    for (std::size_t n = 1; n <= static_cast<std::size_t>(stage_.units[unit].ahead); ++n)
      if (forwards || n <= unit) gather(forwards ? unit + n : unit - n);
  }
  void leave(std::size_t unit) {
    if (gathered_[unit]) ledger_.give(weights, unit_bytes(unit));
    gathered_[unit] = false;
  }

  // Nothing moves, or sums are taken where their summands lie; all else is written anew. Nothing is kept for backward.
  static bool in_place(const Transfer& transfer) {
    return transfer.motion == Motion::none || transfer.motion == Motion::all_reduce;
  }

  void move(const Exchange& exchange) {
    std::size_t& storage = storage_of_[exchange.output.index()];
    storage = in_place(exchange.forward) ? storage_of_[exchange.input.index()]
                                         : allocate(bytes_of(exchange.output), activations);
    hold(storage);
    pack(exchange, exchange.forward, exchange.input, exchange.output);
  }

  void pack(const Exchange& exchange, const Transfer& transfer, LocalTensorId from, LocalTensorId to) {
    const std::int64_t elements =
        packing_elements(transfer, stage_[from].shape, stage_[to].shape, strategy_.degree(exchange.axis));
    const double bytes = static_cast<double>(elements) * size_in_bytes(stage_[from].dtype);
    ledger_.take(communication, bytes);
    ledger_.give(communication, bytes);
  }

  void produce(const Compute& compute, const TrainingRule& rule) {
    const bool view = rule.view && !compute.inputs.empty() && compute.inputs[0].valid();
    for (const LocalTensorId out : compute.outputs) {
      // A view of a parameter or an input allocates nothing and holds nothing that could be freed.
      std::size_t& storage = storage_of_[out.index()];
      storage = view ? storage_of_[compute.inputs[0].index()] : allocate(bytes_of(out), activations);
      hold(storage);
    }
  }

  void save(const Compute& compute, std::size_t step) {
    if (compute.gradients == 0) return;
    for (const Saved& saved : rules_[step].saved) {
      std::size_t storage = no_storage;
      if (saved.what == Saved::What::extra)
        storage = allocate(saved.bytes.value(), activations);
      else if (saved.what == Saved::What::input && saved.index < compute.inputs.size() &&
               compute.inputs[saved.index].valid())
        storage = storage_of_[compute.inputs[saved.index].index()];
      else if (saved.what == Saved::What::output && saved.index < compute.outputs.size())
        storage = storage_of_[compute.outputs[saved.index].index()];
      hold(storage);
      held().saved[step].push_back(storage);
    }
  }

  void backward(Turn::Kind kind, bool last) {
    ledger_.phase("backward");
    const bool later = kind == Turn::Kind::backward_weight;
    if (!later) receive_gradients();
    std::vector<int> to_come(stage_.tensors.size(), 0);
    for (const Step& step : stage_.steps) each_gradient(stage_, step, [&](LocalTensorId id) { ++to_come[id.index()]; });
    for (std::size_t i = stage_.steps.size(); i-- > 0;) {
      for (std::size_t u = stage_.units.size(); u-- > 0;)
        if (stage_.units[u].end == i + 1) enter(u, false);
      for (std::size_t s = 0; s < stage_.recomputed.size(); ++s)
        if (!later && stage_.recomputed[s].end == i + 1) replay(s);
      if (later)
        catch_up(i);
      else
        backward(i);
      each_gradient(stage_, stage_.steps[i], [&](LocalTensorId id) {
        if (--to_come[id.index()] == 0 && last) give_to_bucket(id);
      });
      for (std::size_t s = 0; s < stage_.recomputed.size(); ++s)
        if (!later && stage_.recomputed[s].begin == i) end_segment(s);
      for (std::size_t u = 0; u < stage_.units.size(); ++u)
        if (stage_.units[u].begin == i) leave(u);
    }
    if (!later) send_gradients();
    if (kind != Turn::Kind::backward_input) held_.erase(micro_batch_);
  }

  void receive_gradients() {
    for (const Link& link : stage_.sends)
      if (link.gradient) hold(gradient_of_[link.tensor.index()] = allocate(bytes_of(link.tensor), activations));
  }
  // Then the rank holds nothing more for this micro-batch.
  void send_gradients() {
    for (const Link& link : stage_.receives) {
      release(gradient_of_[link.tensor.index()]);
      gradient_of_[link.tensor.index()] = no_storage;
    }
    for (const std::size_t storage : held().own) release(storage);
    held().own.clear();
  }

  void backward(std::size_t i) {
    const auto* compute = std::get_if<Compute>(&stage_.steps[i]);
    if (compute && compute->gradients == 0) return;
    with_workspace(priced_.kernels.steps[i].backward, [&] {
      if (compute)
        differentiate(*compute, compute->gradients & ~later_[i], incoming(*compute));
      else
        move_back(std::get<Exchange>(stage_.steps[i]));
    });
    if (later_[i] != 0) {
      // What the gradients of weights need stays: what autograd kept, and the gradient that came in.
      hold(incoming(*compute));
      held().saved[i].push_back(incoming(*compute));
    } else {
      let_go(i);
    }
    forget_gradients(i);
  }

  // The second part of a step's backward.
  void catch_up(std::size_t i) {
    if (later_[i] == 0) return;
    const std::size_t came_in = held().saved[i].empty() ? no_storage : held().saved[i].back();
    with_workspace(priced_.kernels.steps[i].backward_weight,
                   [&] { differentiate(std::get<Compute>(stage_.steps[i]), later_[i], came_in); });
    let_go(i);
    forget_gradients(i);
  }

  void let_go(std::size_t i) {
    for (const std::size_t storage : held().saved[i]) release(storage);
    held().saved[i].clear();
  }
  void forget_gradients(std::size_t i) {
    for (const LocalTensorId out : outputs_of(stage_.steps[i])) {
      release(gradient_of_[out.index()]);
      gradient_of_[out.index()] = no_storage;
    }
  }
  [[nodiscard]] std::size_t incoming(const Compute& compute) const {
    return compute.outputs.empty() ? no_storage : gradient_of_[compute.outputs[0].index()];
  }

  // Of a sharded bucket the copy in its buffer is all that is wanted of a gradient.
  void give_to_bucket(LocalTensorId id) {
    if (!sharded_[id.index()] || !overlapped_) return;
    release(gradient_of_[id.index()]);
    gradient_of_[id.index()] = no_storage;
  }

  void differentiate(const Compute& compute, std::uint32_t mask, std::size_t incoming) {
    const Signature s = signature(stage_, compute);
    for (std::size_t in = 0; in < compute.inputs.size(); ++in) {
      if (!(mask >> in & 1U)) continue;
      receive_gradient(compute.inputs[in], incoming, passes_gradient_through(s, in));
    }
  }

  void move_back(const Exchange& exchange) {
    if (!stage_[exchange.input].requires_gradient) return;
    const std::size_t incoming = gradient_of_[exchange.output.index()];
    // A gradient that somebody else holds, too, is summed in a copy.
    const bool shared = incoming != no_storage && storages_[incoming].holders > 1;
    const bool copied = exchange.backward.motion == Motion::all_reduce && shared;
    pack(exchange, exchange.backward, exchange.output, exchange.input);
    receive_gradient(exchange.input, incoming, in_place(exchange.backward) && !copied);
  }

  // A tensor's first gradient is taken as it is, or is the incoming one; each later one is added.
  void receive_gradient(LocalTensorId id, std::size_t incoming, bool passed_through) {
    const bool parameter = stage_[id].kind == TensorKind::parameter;
    std::size_t& gradient = gradient_of_[id.index()];
    if (gradient != no_storage) {
      add_gradient(gradient, bytes_of(id), passed_through);
      return;
    }
    // Leaves, parameters and what was received, have a gradient of their own.
    const bool shared = incoming != no_storage && passed_through && !parameter && !is_received(id);
    gradient = shared ? incoming : allocate(bytes_of(id), parameter ? gradients : activations);
    hold(gradient);
  }

  // A further gradient is summed in place into the first, unless somebody else holds that one too (a gradient passed
  // through to several operands): then the sum is a new tensor.
  void add_gradient(std::size_t& gradient, double bytes, bool passed_through) {
    if (!passed_through) ledger_.take(activations, bytes);
    if (storages_[gradient].holders > 1) {
      const std::size_t sum = allocate(bytes, storages_[gradient].kind);
      release(gradient);
      hold(sum);
      gradient = sum;
    }
    if (!passed_through) ledger_.give(activations, bytes);
  }

  std::vector<double> direction_bytes() const {
    std::vector<double> bytes;
    for (const Update& update : stage_.updates)
      if (!sharded_[update.parameter.index()]) bytes.push_back(bytes_of(update.parameter));
    for (const GradientSync& sync : stage_.gradients)
      for (const Bucket& bucket : sync.buckets) {
        if (!sync.sharded()) continue;
        const BucketPart own = part_of(bucket, sync.parts, 0);
        for (const Piece& piece : pieces(stage_, bucket, own.begin, own.end))
          bytes.push_back(static_cast<double>(piece.elements) * size_in_bytes(bucket.dtype));
      }
    return bytes;
  }

  const Stage& stage_;
  const PricedStage& priced_;
  const Strategy& strategy_;
  const Device& device_;
  Ledger& ledger_;
  std::vector<TrainingRule> rules_;
  std::vector<Storage> storages_;
  std::vector<std::size_t> storage_of_, gradient_of_;  // by LocalTensorId
  std::map<int, Held> held_;                           // by micro-batch
  std::vector<bool> again_;                            // by step: it runs again before its backward
  std::vector<std::uint32_t> later_;                   // by step: gradients that a backward_weight turn computes
  bool linked_;                                        // one of several stages
  std::vector<bool> sharded_;                          // by tensor: a parameter of which ranks hold parts
  std::vector<bool> gathered_;                         // by unit
  bool overlapped_;
  int micro_batch_ = 0, backwards_ = 0;  // the one at hand; backward turns taken
};

// Room for what neighbours will send: from when it is asked for to the turn that takes it, whose own it then is.
class Mailbox {
 public:
  Mailbox(const Plan& plan, int coordinate, Pass pass, Ledger& ledger)
      : plan_(plan), pass_(pass), ledger_(ledger), arrivals_(plan, coordinate, pass) {
    take(arrivals_.begin());
  }

  void open(const Turn& turn) {
    const Arrivals::Message wanted{turn.stage, turn.micro_batch};
    const bool forward = turn.kind == Turn::Kind::forward;
    if (forward != (pass_ == Pass::forward) || turn.kind == Turn::Kind::backward_weight || sizes(wanted).empty())
      return;
    take(arrivals_.before(wanted));
    for (const double bytes : sizes(wanted)) ledger_.give(communication, bytes);
    take(arrivals_.after(wanted));
  }

 private:
  [[nodiscard]] std::vector<double> sizes(const Arrivals::Message& message) const {
    const Stage& stage = plan_.stages[static_cast<std::size_t>(message.stage)];
    std::vector<double> result;
    for (const LocalTensorId id : arriving_tensors(stage, pass_))
      result.push_back(static_cast<double>(element_count(stage[id].shape)) * size_in_bytes(stage[id].dtype));
    return result;
  }
  void take(const std::vector<Arrivals::Message>& messages) {
    for (const Arrivals::Message& message : messages)
      for (const double bytes : sizes(message)) ledger_.take(communication, bytes);
  }

  const Plan& plan_;
  Pass pass_;
  Ledger& ledger_;
  Arrivals arrivals_;
};

double granularity(const Device& device) { return device.backend == Backend::cpu ? 64 : 512; }

}  // namespace

Footprint footprint(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device) {
  Ledger ledger(granularity(device));
  ledger.take(framework, device.framework_base.value());
  StepWalk walk(stage, priced, strategy, device, ledger);
  walk.take_static();
  for (const Turn& turn : stage.schedule) walk.take(turn);
  walk.update();
  return ledger.result();
}

Footprint footprint(const Plan& plan, const std::vector<PricedStage>& priced, int coordinate, const Device& device) {
  Ledger ledger(granularity(device));
  ledger.take(framework, device.framework_base.value());
  const std::size_t coordinates = plan.schedule.size();
  std::vector<StepWalk> walks;  // of each of its stages
  for (auto s = static_cast<std::size_t>(coordinate); s < plan.stages.size(); s += coordinates)
    walks.emplace_back(plan.stages[s], priced[s], plan.strategy, device, ledger);
  for (StepWalk& walk : walks) walk.take_static();
  Mailbox forward(plan, coordinate, Pass::forward, ledger), backward(plan, coordinate, Pass::backward, ledger);
  for (const Turn& turn : plan.schedule[static_cast<std::size_t>(coordinate)]) {
    forward.open(turn);
    backward.open(turn);
    walks[static_cast<std::size_t>(turn.stage) / coordinates].take(turn);
  }
  for (StepWalk& walk : walks) walk.update();
  return ledger.result();
}

}  // namespace sibyl
