#include "trainer/stage_worker.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "aten/device.h"
#include "oracle/plan/names.h"
#include "oracle/plan/regathered.h"
#include "oracle/plan/zero.h"

namespace sibyl::trainer {
namespace {

Bytes bytes_held(Replica& replica, const std::vector<LocalTensorId>& ids) {
  double bytes = 0.0;
  for (const LocalTensorId id : ids) bytes += static_cast<double>((replica[id].nbytes() + 63) / 64 * 64);
  return Bytes{bytes};
}

// What needs values.
Result<void> check_emulated(const TrainSettings& settings) {
  for (const auto& [given, option] : {std::pair{settings.data, "--data"}, std::pair{settings.evaluate, "--evaluate"},
                                      std::pair{settings.save_weights, "--save-weights"}})
    if (given) return fail(ErrorCode::usage, "an emulated device computes nothing that could be read or kept", option);
  return {};
}

// Trained parameters that no step puts the gradient off of, where some do.
std::vector<LocalTensorId> never_put_off(const Stage& stage) {
  if (!splits_backward(stage)) return {};
  const std::vector<std::uint32_t> later = later_gradients(stage);
  std::vector<bool> put_off(stage.tensors.size(), false);
  for (std::size_t i = 0; i < stage.steps.size(); ++i)
    for (std::size_t in = 0; later[i] != 0 && in < inputs_of(stage.steps[i]).size(); ++in)
      if (later[i] >> in & 1U) put_off[inputs_of(stage.steps[i])[in].index()] = true;
  std::vector<LocalTensorId> result = gradient_order(stage);
  std::erase_if(result, [&](LocalTensorId id) { return put_off[id.index()]; });
  return result;
}

}  // namespace

StageWorker::StageWorker(const Plan& plan, int stage, const TrainSettings& settings, const MeshGroups& groups)
    : plan_(&plan), number_(stage), settings_(&settings), groups_(&groups) {}

Result<std::unique_ptr<StageWorker>> StageWorker::prepare(const Graph& graph, const Plan& plan, int number,
                                                          const TrainSettings& settings, const MeshGroups& groups,
                                                          EmulatedClock& clock) {
  std::unique_ptr<StageWorker> worker(new StageWorker(plan, number, settings, groups));
  const auto index = static_cast<std::size_t>(number);
  const Stage& stage = plan.stages[index];
  if (settings.emulated) {
    SIBYL_CHECK(check_emulated(settings));
    worker->emulated_ = std::make_unique<EmulatedDevice>(
        stage, settings.emulated->stages[index], settings.emulated->backend, settings.emulated->sums_apart, clock);
    if (settings.emulated->vary)
      worker->emulated_->vary({settings.seed, "emulated device", static_cast<std::uint64_t>(groups.rank())},
                              settings.emulated->step_spread);
  }
  SIBYL_TRY(Replica replica, Replica::create(graph, stage, groups, settings.seed, worker->emulated_.get()));
  worker->replica_ = std::make_unique<Replica>(std::move(replica));
  if (!settings.emulated) {
    SIBYL_TRY(Data data, settings.data ? worker->data_of(*settings.data, plan.strategy.global_batch)
                                       : Data::synthetic(*worker->replica_, plan.micro_batch, settings.seed));
    worker->data_ = std::make_unique<Data>(std::move(data));
  }
  worker->now_ = never_put_off(stage);
  SIBYL_CHECK(worker->open_syncs());
  worker->optimizer_.learning_rate = settings.learning_rate;
  const std::int64_t before = aten::live_bytes();
  worker->updates_ =
      std::make_unique<Updates>(*worker->replica_, number, worker->shards_, worker->optimizer_, groups.parts(number));
  SIBYL_CHECK(worker->updates_->offload(settings.offload_folder));
  if (!stage.kept_outside.empty()) {
    SIBYL_TRY(worker->outside_, OffloadedActivations::create(stage, settings.offload_folder, worker->emulated_.get()));
    worker->replica_->keep_outside(worker->outside_.get());
  }
  worker->memory_.optimizer = Bytes{static_cast<double>(aten::live_bytes() - before)};
  worker->memory_.buffers = bytes_held(*worker->replica_, worker->replica_->buffers());
  worker->memory_.inputs = bytes_held(*worker->replica_, worker->replica_->inputs());
  return worker;
}

Result<Data> StageWorker::data_of(const std::filesystem::path& folder, std::int64_t least) {
  return Data::from_folder(*replica_, plan_->micro_batch, settings_->seed, folder, least);
}

Result<void> StageWorker::open_syncs() {
  const std::vector<bool> sharded = sharded_parameters(stage());
  std::vector<LocalTensorId> whole = replica_->parameters();
  std::erase_if(whole, [&](LocalTensorId id) { return sharded[id.index()]; });
  memory_.weights = bytes_held(*replica_, whole);
  shards_.resize(stage().gradients.size());
  for (std::size_t i = 0; i < stage().gradients.size(); ++i) {
    const GradientSync& sync = stage().gradients[i];
    Communicator& ranks = groups_->sync(number_, i);
    const int replicas = std::ranges::count(sync.axes, MeshAxis::data) > 0 ? plan_->mesh.size(MeshAxis::data) : 1;
    if (sync.sharded()) {
      shards_[i] = std::make_unique<ShardedSync>(*replica_, i, ranks, groups_->copies(number_, i), replicas);
      SIBYL_CHECK(shards_[i]->move_out(settings_->offload_folder));
      memory_.weights += shards_[i]->weights();
      memory_.communication += shards_[i]->communication();
      continue;
    }
    exchanges_.push_back(std::make_unique<GradientExchange>(*replica_, sync, ranks, replicas));
    for (const Bucket& bucket : sync.buckets) memory_.communication += Bytes{static_cast<double>(bucket.bytes())};
  }
  if (stage().units.empty()) return {};
  std::vector<ShardedSync*> units;
  for (const auto& shards : shards_)
    if (shards) units.push_back(shards.get());
  const auto each = [units](void (ShardedSync::*told)(std::size_t)) {
    return [units, told](std::size_t step) {
      for (ShardedSync* shards : units) (shards->*told)(step);
    };
  };
  replica_->watch({each(&ShardedSync::before_forward), each(&ShardedSync::after_forward),
                   each(&ShardedSync::before_backward), each(&ShardedSync::after_backward)});
  return {};
}

void StageWorker::begin_step(std::int64_t number) {
  step_ = number;
  closed_ = 0;
  if (!emulated_) return;
  emulated_->begin_step();
  // Buckets that are there from the beginning; backward adds to them.
  if (gradients_in_buckets(plan_->strategy))
    for (const Update& update : stage().updates) {
      const LocalTensor& parameter = stage()[update.parameter];
      (*replica_)[update.parameter].mutable_grad() = emulated_->tensor(parameter.shape, parameter.gradient_type());
    }
}

std::function<at::Tensor(const LocalTensor&)> StageWorker::maker() const {
  if (!emulated_) return nullptr;
  return [device = emulated_.get()](const LocalTensor& local) { return device->tensor(local.shape, local.dtype); };
}

void StageWorker::wake() {
  if (emulated_) emulated_->host_waited();
}

void StageWorker::fill_inputs(const Turn& turn) {
  Pass& pass = passes_[turn.micro_batch];
  if (splits_backward(stage())) pass.later = std::make_shared<LaterGradients>();
  replica_->begin(step_, turn.micro_batch, pass.later);
  if (!data_) return;
  const Recording recording(recorder_, Recorder::Track::host, "fill inputs", "data");
  const std::int64_t per_rank = plan_->micro_batch * plan_->strategy.accumulation;
  data_->fill(*replica_, step_ * plan_->strategy.global_batch + groups_->coordinate(MeshAxis::data) * per_rank +
                             turn.micro_batch * plan_->micro_batch);
}

void StageWorker::put_in(std::vector<at::Tensor> received) {
  for (std::size_t i = 0; i < received.size(); ++i) (*replica_)[stage().receives[i].tensor] = std::move(received[i]);
}

// What was only passed on may be held under two names.
std::vector<at::Tensor> StageWorker::take_out() {
  std::vector<at::Tensor> sent;
  for (const Link& link : stage().sends) sent.push_back(replica_->take(link.tensor));
  for (const Link& link : stage().receives) replica_->take(link.tensor);
  return sent;
}

// Each micro-batch's loss counts for its share, so that the summed gradients are those of the rank's mean loss.
double StageWorker::forward(const Turn& turn, std::vector<at::Tensor> received, std::vector<at::Tensor>& sent) {
  Pass& pass = passes_[turn.micro_batch];
  for (std::size_t i = 0; i < received.size(); ++i)
    if (stage().receives[i].gradient) received[i].requires_grad_();
  pass.received = received;
  put_in(std::move(received));
  if (spans_) spans_->begin_turn(turn);
  pass.loss = replica_->forward(spans_.get());
  pass.sent = sent = take_out();
  if (emulated_) emulated_->wait();
  if (!pass.loss.defined()) return 0.0;
  // A device must not wait for the host to have read it.
  if (aten::on_cuda() && !emulated_) {
    losses_.push_back(pass.loss.detach());
    return 0.0;
  }
  return pass.loss.item<double>() / static_cast<double>(plan_->strategy.accumulation);
}

double StageWorker::late_losses() {
  double sum = 0.0;
  for (const at::Tensor& loss : losses_) sum += loss.item<double>() / static_cast<double>(plan_->strategy.accumulation);
  losses_.clear();
  return sum;
}

std::vector<at::Tensor> StageWorker::backward(const Turn& turn, std::vector<at::Tensor> gradients) {
  const bool closes = turn.kind != Turn::Kind::backward_input;
  const bool first = turn.micro_batch == 0, last = closes && ++closed_ == stage().micro_batches();
  if (emulated_) emulated_->begin_backward(turn.kind, first, last);
  for (const auto& shards : shards_)
    if (shards) shards->begin_backward(turn.kind);
  const bool reduces = last || stage().reduces_each;
  if (reduces) begin_exchange(first);
  if (outside_ && turn.kind != Turn::Kind::backward_weight) outside_->begin_backward(turn.micro_batch);
  if (spans_) spans_->begin_turn(turn);
  Pass& pass = passes_[turn.micro_batch];
  std::vector<at::Tensor> back;
  if (turn.kind == Turn::Kind::backward_weight)
    pass.later->run();
  else
    back = run_backward(pass, std::move(gradients));
  if (turn.kind == Turn::Kind::backward_input)
    for (const auto& shards : shards_)
      if (shards) shards->after_backward(0);
  if (emulated_) emulated_->wait();
  if (spans_) spans_->end_backward();
  if (closes) passes_.erase(turn.micro_batch);
  if (reduces) pack();
  adds_up_ = reduces && !last;
  return back;
}

// Begins at what was sent and at the loss, ends at what was received.
std::vector<at::Tensor> StageWorker::run_backward(Pass& pass, std::vector<at::Tensor> gradients) {
  std::vector<at::Tensor> roots, seeds = std::move(gradients);
  for (std::size_t i = 0; i < pass.sent.size(); ++i)
    if (stage().sends[i].gradient) roots.push_back(std::move(pass.sent[i]));
  pass.sent.clear();
  if (pass.loss.defined()) {
    roots.push_back(std::exchange(pass.loss, at::Tensor()));
    seeds.push_back(at::full({}, 1.0 / static_cast<double>(plan_->strategy.accumulation),
                             at::TensorOptions(aten::compute_device()).dtype(at::kFloat)));
  }
  torch::autograd::backward(roots, seeds);
  std::vector<at::Tensor> back;
  for (std::size_t i = 0; i < pass.received.size(); ++i) {
    if (!stage().receives[i].gradient) continue;
    at::Tensor& gradient = pass.received[i].mutable_grad();
    back.push_back(gradient.defined() ? std::exchange(gradient, at::Tensor()) : at::zeros_like(pass.received[i]));
  }
  pass.received.clear();
  return back;
}

void StageWorker::begin_exchange(bool first) {
  for (const auto& exchange : exchanges_) exchange->begin(step_ == 0, now_);
  for (const auto& shards : shards_)
    if (shards) shards->begin(now_, first || !stage().reduces_each);
}

void StageWorker::add_up() {
  if (!std::exchange(adds_up_, false)) return;
  finish_exchange();
  wake();
  if (emulated_) emulated_->run(emulated_->times().part_sums);
}

void StageWorker::pack() {
  for (const auto& exchange : exchanges_) exchange->pack();
  for (const auto& shards : shards_)
    if (shards) shards->pack();
}

void StageWorker::finish_exchange() {
  for (const auto& exchange : exchanges_)
    if (exchange->sync().stages.empty()) exchange->finish();
  for (const auto& shards : shards_)
    if (shards) shards->finish();
}

std::vector<GradientExchange*> StageWorker::tied() const {
  std::vector<GradientExchange*> result;
  for (const auto& exchange : exchanges_)
    if (!exchange->sync().stages.empty()) result.push_back(exchange.get());
  return result;
}

void StageWorker::copy_back() {
  const Recording recording(recorder_, Recorder::Track::compute, copies_back_name, "optimizer");
  if (emulated_) emulated_->run(emulated_->times().copies_back);
  for (const auto& exchange : exchanges_) exchange->copy_back();
}

void StageWorker::unscale() {
  if (!stage().scaled) return;
  const Recording recording(recorder_, Recorder::Track::compute, optimizer_name, "optimizer");
  updates_->unscale();
}

double StageWorker::squares() {
  const Recording recording(recorder_, Recorder::Track::compute, optimizer_name, "optimizer");
  return updates_->squares();
}

void StageWorker::clip(double squares) {
  const Recording recording(recorder_, Recorder::Track::compute, optimizer_name, "optimizer");
  updates_->clip(squares);
}

void StageWorker::update() {
  const Recording recording(recorder_, Recorder::Track::compute, optimizer_name, "optimizer");
  updates_->run();
}

void StageWorker::gather_updated() {
  for (const auto& shards : shards_)
    if (shards) shards->gather_updated();
}

at::Tensor StageWorker::predict(Data& data, std::int64_t first, std::vector<at::Tensor> received,
                                std::vector<at::Tensor>& sent) {
  data.fill_in_order(*replica_, first);
  put_in(std::move(received));
  at::Tensor answers = replica_->predict();
  sent = take_out();
  return answers;
}

OffloadedBytes StageWorker::offloaded() const {
  OffloadedBytes moved = updates_->offloaded();
  if (outside_) moved += outside_->moved();
  for (const auto& shards : shards_)
    if (shards) moved += shards->moved();
  return moved;
}

void StageWorker::gather_parameters() {
  for (const auto& shards : shards_)
    if (shards) shards->gather_all();
}

void StageWorker::release_parameters() {
  for (const auto& shards : shards_)
    if (shards) shards->release_all();
}

void StageWorker::record(Recorder* recorder) {
  recorder_ = recorder;
  spans_ = recorder != nullptr ? std::make_unique<OperationSpans>(replica_->graph(), stage(), *recorder) : nullptr;
  for (const auto& exchange : exchanges_) exchange->record(recorder);
  for (const auto& shards : shards_)
    if (shards) shards->record(recorder);
  updates_->record(recorder);
  if (outside_) outside_->record(recorder);
  if (emulated_) emulated_->wait_after_each(recorder != nullptr);
}

}  // namespace sibyl::trainer
