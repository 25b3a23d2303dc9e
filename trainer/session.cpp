#include "trainer/session.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "aten/memory.h"
#include "oracle/plan/names.h"
#include "trainer/random.h"

namespace sibyl::trainer {
namespace {

using Clock = std::chrono::steady_clock;

// The time since the last call, and since construction.
class Stopwatch {
 public:
  Seconds lap() {
    const Clock::time_point now = Clock::now(), last = std::exchange(last_, now);
    return Seconds{std::chrono::duration<double>(now - last).count()};
  }
  [[nodiscard]] Seconds total() const { return Seconds{std::chrono::duration<double>(last_ - start_).count()}; }

 private:
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

Bytes bytes_of(Replica& replica, const std::vector<LocalTensorId>& ids) {
  double bytes = 0.0;
  for (const LocalTensorId id : ids) bytes += static_cast<double>((replica[id].nbytes() + 63) / 64 * 64);
  return Bytes{bytes};
}

std::uint64_t hash_of(const at::Tensor& value, std::uint64_t hash) {
  const at::Tensor tensor = value.detach().contiguous();
  const auto* bytes = static_cast<const char*>(tensor.data_ptr());
  for (std::size_t at = 0; at + 4 <= tensor.nbytes(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    hash = mixed(hash ^ word);
  }
  return hash;
}

// What needs values.
Result<void> check_emulated(const TrainSettings& settings) {
  for (const auto& [given, option] : {std::pair{settings.data, "--data"},
                                      std::pair{settings.evaluate, "--evaluate"},
                                      std::pair{settings.save_weights, "--save-weights"}})
    if (given) return fail(ErrorCode::usage, "an emulated device computes nothing that could be read or kept", option);
  return {};
}

}  // namespace

Result<Session> Session::prepare(const Graph& graph, const Plan& plan, const TrainSettings& settings,
                                 Communicator& communicator, const MeshGroups& groups) {
  if (plan.stages.size() != 1)
    return fail("this plan has several pipeline stages, which the trainer cannot run", "--parallel");
  aten::MemoryMeter::install();
  Session session(plan, settings, communicator, groups);
  const Stage& stage = session.stage();
  if (settings.emulated) {
    SIBYL_CHECK(check_emulated(settings));
    session.emulated_ =
        std::make_unique<EmulatedDevice>(stage, settings.emulated->stages.front(), settings.emulated->backend);
    if (settings.emulated->vary)
      session.emulated_->vary({settings.seed, "emulated device", static_cast<std::uint64_t>(communicator.rank())},
                              settings.emulated->step_spread);
  }
  SIBYL_TRY(Replica replica, Replica::create(graph, stage, groups, settings.seed, session.emulated_.get()));
  session.replica_ = std::make_unique<Replica>(std::move(replica));
  if (!session.emulated_) SIBYL_CHECK(session.open_data());
  if (settings.evaluate) SIBYL_CHECK(session.open_evaluation(*settings.evaluate));

  session.open_syncs();
  session.optimizer_ = std::make_unique<aten::OptimizerSettings>();
  session.optimizer_->learning_rate = settings.learning_rate;
  const std::int64_t before = aten::MemoryMeter::live();
  session.updates_ = std::make_unique<Updates>(*session.replica_, session.shards_, *session.optimizer_);
  session.memory_.optimizer = Bytes{static_cast<double>(aten::MemoryMeter::live() - before)};
  session.memory_.buffers = bytes_of(*session.replica_, session.replica_->buffers());
  session.memory_.inputs = bytes_of(*session.replica_, session.replica_->inputs());
  return session;
}

Result<void> Session::open_data() {
  SIBYL_TRY(Data data, settings_->data ? Data::from_folder(*replica_, plan_->micro_batch, settings_->seed,
                                                           *settings_->data, plan_->strategy.global_batch)
                                       : Data::synthetic(*replica_, plan_->micro_batch, settings_->seed));
  data_ = std::make_unique<Data>(std::move(data));
  return {};
}

void Session::open_syncs() {
  const std::vector<bool> sharded = sharded_parameters(stage());
  std::vector<LocalTensorId> whole = replica_->parameters();
  std::erase_if(whole, [&](LocalTensorId id) { return sharded[id.index()]; });
  memory_.weights = bytes_of(*replica_, whole);
  shards_.resize(stage().gradients.size());
  for (std::size_t i = 0; i < stage().gradients.size(); ++i) {
    const GradientSync& sync = stage().gradients[i];
    const int replicas = std::ranges::count(sync.axes, MeshAxis::data) > 0 ? plan_->mesh.size(MeshAxis::data) : 1;
    if (sync.sharded()) {
      shards_[i] = std::make_unique<ShardedSync>(*replica_, i, groups_->sync(i), replicas, Algorithm::ring);
      memory_.weights += shards_[i]->weights();
      memory_.communication += shards_[i]->communication();
      continue;
    }
    exchanges_.push_back(
        std::make_unique<GradientExchange>(*replica_, sync, groups_->sync(i), replicas, Algorithm::ring));
    for (const Bucket& bucket : sync.buckets) memory_.communication += Bytes{static_cast<double>(bucket.bytes())};
  }
  if (stage().units.empty()) return;
  std::vector<ShardedSync*> units;
  for (const auto& shards : shards_)
    if (shards) units.push_back(shards.get());
  const auto each = [units](void (ShardedSync::*told)(std::size_t)) {
    return [units, told](std::size_t step) {
      for (ShardedSync* shards : units) (shards->*told)(step);
    };
  };
  replica_->watch({each(&ShardedSync::before_forward), each(&ShardedSync::after_forward),
                   each(&ShardedSync::before_backward)});
}

void Session::gather_parameters() {
  for (const auto& shards : shards_)
    if (shards) shards->gather_all();
}

void Session::release_parameters() {
  for (const auto& shards : shards_)
    if (shards) shards->release_all();
}

void Session::fill_inputs(std::int64_t first) {
  if (emulated_) return;
  const Recording recording(recorder_.get(), Recorder::Track::host, "fill inputs", "data");
  data_->fill(*replica_, first);
}

// Each micro-batch's loss counts for its share, so that the summed gradients are those of the rank's mean loss.
double Session::forward_and_backward(std::int64_t number, StepTimes& times) {
  const std::int64_t pieces = plan_->strategy.accumulation, per_rank = plan_->micro_batch * pieces;
  const std::int64_t first = number * plan_->strategy.global_batch + groups_->coordinate(MeshAxis::data) * per_rank;
  double mean = 0.0;
  at::Tensor loss;
  for (const Turn& turn : stage().schedule) {
    if (turn.kind == Turn::Kind::forward) {
      fill_inputs(first + turn.micro_batch * plan_->micro_batch);
      replica_->begin(number, turn.micro_batch);
      if (spans_ != nullptr) spans_->begin_micro_batch(turn.micro_batch);
      Stopwatch watch;
      loss = replica_->forward(spans_);
      if (emulated_) emulated_->wait();
      times.forward += watch.lap();
      mean += loss.item<double>() / static_cast<double>(pieces);
    } else {
      Stopwatch watch;
      const bool last = turn.micro_batch == static_cast<int>(pieces) - 1;
      if (last) begin_exchange(number == 0);
      if (emulated_) emulated_->begin_backward(turn.micro_batch == 0, last);
      (pieces == 1 ? loss : loss / static_cast<double>(pieces)).backward();
      if (emulated_) emulated_->wait();
      if (spans_ != nullptr) spans_->end_backward();
      loss.reset();
      if (last) pack();
      times.backward += watch.lap();
    }
  }
  return mean;
}

void Session::copy_back() {
  const Recording recording(recorder_.get(), Recorder::Track::compute, copies_back_name, "optimizer");
  if (emulated_) emulated_->run(emulated_->times().copies_back);
  for (const auto& exchange : exchanges_) exchange->copy_back();
}

void Session::begin_exchange(bool first_step) {
  for (const auto& exchange : exchanges_) exchange->begin(first_step);
  for (const auto& shards : shards_)
    if (shards) shards->begin();
}

void Session::pack() {
  for (const auto& exchange : exchanges_) exchange->pack();
  for (const auto& shards : shards_)
    if (shards) shards->pack();
}

void Session::finish_exchange() {
  for (const auto& exchange : exchanges_) exchange->finish();
  for (const auto& shards : shards_)
    if (shards) shards->finish();
}

void Session::update() {
  const Recording recording(recorder_.get(), Recorder::Track::compute, optimizer_name, "optimizer");
  updates_->run();
}

Session::Step Session::step(std::int64_t number) {
  Step result;
  const std::int64_t sent_before = groups_->bytes_sent();
  aten::MemoryMeter::reset_peak();
  if (emulated_) emulated_->begin_step();
  result.loss = forward_and_backward(number, result.times);
  Stopwatch watch;
  finish_exchange();
  if (emulated_) emulated_->host_waited();
  result.times.exchange = watch.lap();
  if (!exchanges_.empty()) copy_back();
  update();
  result.times.optimizer = watch.lap();
  for (const auto& shards : shards_)
    if (shards) shards->gather_updated();
  result.times.exchange += watch.lap();
  result.times.total = result.times.forward + result.times.backward + result.times.exchange + result.times.optimizer;
  result.bytes_sent = groups_->bytes_sent() - sent_before;
  result.peak_bytes = aten::MemoryMeter::peak();
  return result;
}

TraceProcess Session::traced_step(std::int64_t number) {
  recorder_ = std::make_unique<Recorder>();
  OperationSpans spans(replica_->graph(), stage(), *recorder_);
  spans_ = &spans;
  for (const auto& exchange : exchanges_) exchange->record(recorder_.get());
  if (emulated_) emulated_->wait_after_each(true);
  for (const auto& shards : shards_)
    if (shards) shards->record(recorder_.get());
  communicator_->barrier();
  recorder_->start();
  step(number);
  if (emulated_) emulated_->wait_after_each(false);
  for (const auto& exchange : exchanges_) exchange->record(nullptr);
  for (const auto& shards : shards_)
    if (shards) shards->record(nullptr);
  spans_ = nullptr;
  const std::unique_ptr<Recorder> recorded = std::move(recorder_);
  return recorded->process(communicator_->rank());
}

Result<void> Session::open_evaluation(const std::filesystem::path& folder) {
  if (!std::holds_alternative<CrossEntropy>(replica_->loss().attributes))
    return fail("only a model that classifies can be evaluated so", "--evaluate");
  SIBYL_TRY(Data data, Data::from_folder(*replica_, plan_->micro_batch, settings_->seed, folder, 1));
  evaluation_ = std::make_unique<Data>(std::move(data));
  return {};
}

double Session::accuracy() {
  Data& data = *evaluation_;
  const std::int64_t class_axis = std::get<CrossEntropy>(replica_->loss().attributes).class_axis;
  double right = 0.0, answers = 0.0;
  const std::int64_t stride = plan_->micro_batch * groups_->size(MeshAxis::data);
  for (std::int64_t first = groups_->coordinate(MeshAxis::data) * plan_->micro_batch; first < data.samples();
       first += stride) {
    data.fill_in_order(*replica_, first);
    const std::int64_t real = std::min(plan_->micro_batch, data.samples() - first);
    const LocalTensorId id = data.targets();
    const at::Tensor targets = groups_->whole((*replica_)[id], stage()[id]);
    const at::Tensor hits = replica_->predict().argmax(class_axis).reshape(targets.sizes()).eq(targets);
    // Answers of a sample lie together: the batch axis comes first.
    const at::Tensor kept = hits.reshape({-1}).slice(0, 0, hits.numel() / plan_->micro_batch * real);
    right += kept.sum().item<double>();
    answers += static_cast<double>(kept.numel());
  }
  double all_right = 0.0, all = 0.0;
  for (const double count : communicator_->gather_doubles(right)) all_right += count;
  for (const double count : communicator_->gather_doubles(answers)) all += count;
  return all_right / all;
}

bool Session::replicas_agree() {
  if (emulated_) return true;  // there is nothing that could differ
  std::map<std::vector<MeshAxis>, std::uint64_t> hashes;  // of all that is cut by the same axes
  for (const LocalTensorId id : replica_->parameters()) {
    std::vector<MeshAxis> axes;
    for (const PartOf& cut : stage()[id].cuts) axes.push_back(cut.axis);
    std::uint64_t& hash = hashes[axes];
    hash = hash_of((*replica_)[id], hash);
  }
  bool agree = true;
  for (const auto& [axes, hash] : hashes) {
    const std::vector<double> all =
        communicator_->gather_doubles(static_cast<double>(hash >> 11));  // exact in a double
    std::map<std::vector<int>, double> first;  // by the coordinates that say which part a rank has
    for (int rank = 0; rank < communicator_->size(); ++rank) {
      std::vector<int> part;
      for (const MeshAxis axis : axes) part.push_back(plan_->mesh.coordinate(rank, axis));
      const double its = all[static_cast<std::size_t>(rank)];
      agree = agree && first.try_emplace(part, its).first->second == its;
    }
  }
  return agree;
}

}  // namespace sibyl::trainer
