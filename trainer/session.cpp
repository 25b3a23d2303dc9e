#include "trainer/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include "aten/device.h"
#include "oracle/plan/names.h"
#include "trainer/tensor_bytes.h"

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

 private:
  Clock::time_point last_ = Clock::now();
};

// Of this process; 0 where the system does not tell.
Bytes resident_memory() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  if (!(file >> all >> resident)) return {};
  return Bytes{resident * static_cast<double>(::sysconf(_SC_PAGESIZE))};
}

const CrossEntropy* classifies(const Graph& graph) {
  return std::get_if<CrossEntropy>(&graph[graph.producer(graph.loss)].attributes);
}

}  // namespace

Result<Session> Session::prepare(const Graph& graph, const Plan& plan, const TrainSettings& settings,
                                 Communicator& communicator, const MeshGroups& groups) {
  aten::begin_counting();
  Session session(plan, communicator, groups);
  for (const int stage : groups.stages()) {
    SIBYL_TRY(std::unique_ptr<StageWorker> worker,
              StageWorker::prepare(graph, plan, stage, settings, groups, *session.clock_));
    session.workers_.push_back(std::move(worker));
  }
  session.links_.emulate(session.workers_.front()->maker());
  if (!settings.evaluate) return session;
  if (!classifies(graph)) return fail("only a model that classifies can be evaluated so", "--evaluate");
  for (const auto& worker : session.workers_) {
    SIBYL_TRY(Data data, worker->data_of(*settings.evaluate, 1));
    session.evaluation_.push_back(std::make_unique<Data>(std::move(data)));
  }
  const bool answers = session.worker(static_cast<int>(plan.stages.size()) - 1) != nullptr;
  if (answers && !session.evaluation_.back()->targets().valid())
    return fail("the labels are not an input of the stage that computes the loss", "--evaluate");
  return session;
}

StageWorker* Session::worker(int stage) const {
  const auto found = std::ranges::find(workers_, stage, &StageWorker::number);
  return found == workers_.end() ? nullptr : found->get();
}

MeasuredMemory Session::memory() const {
  MeasuredMemory sum;
  for (const auto& worker : workers_)
    for (Bytes MeasuredMemory::*kind : {&MeasuredMemory::weights, &MeasuredMemory::buffers, &MeasuredMemory::optimizer,
                                        &MeasuredMemory::inputs, &MeasuredMemory::communication})
      sum.*kind += worker->memory().*kind;
  return sum;
}

bool Session::is_first_rank_of_stage() const {
  return std::ranges::all_of(plan_->mesh.extents, [&](const Mesh::Extent& extent) {
    return extent.axis == MeshAxis::pipeline || groups_->coordinate(extent.axis) == 0;
  });
}

bool Session::shows_loss() const {
  return is_first_rank_of_stage() && worker(static_cast<int>(plan_->stages.size()) - 1) != nullptr;
}

void Session::gather_parameters() {
  for (const auto& worker : workers_) worker->gather_parameters();
}

void Session::release_parameters() {
  for (const auto& worker : workers_) worker->release_parameters();
}

std::vector<at::Tensor> Session::wait_for(const Turn& turn, StepTimes& times) {
  Stopwatch watch;
  std::vector<at::Tensor> arrived = links_.receive(turn);
  times.exchange += watch.lap();
  return arrived;
}

double Session::take(const Turn& turn, StepTimes& times) {
  StageWorker& stage = *worker(turn.stage);
  const bool forward = turn.kind == Turn::Kind::forward;
  if (forward) {
    Stopwatch watch;
    stage.fill_inputs(turn);
    filling_ += watch.lap();
  }
  std::vector<at::Tensor> arrived = wait_for(turn, times), sent;
  if (plan_->stages.size() > 1) stage.wake();
  const std::string name = turn_name(turn);
  const Recording recording(plan_->stages.size() > 1 ? recorder_.get() : nullptr, Recorder::Track::turns, name, "turn");
  Stopwatch watch;
  double loss = 0.0;
  if (forward)
    loss = stage.forward(turn, std::move(arrived), sent);
  else
    sent = stage.backward(turn, std::move(arrived));
  (forward ? times.forward : times.backward) += watch.lap();
  stage.add_up();
  times.exchange += watch.lap();
  links_.send(turn, sent);
  return loss;
}

double Session::take_turns(StepTimes& times) {
  double loss = 0.0;
  links_.begin_step();
  for (const Turn& turn : plan_->schedule[static_cast<std::size_t>(groups_->coordinate(MeshAxis::pipeline))])
    loss += take(turn, times);
  return loss;
}

// By the norm over all parameters of all stages, wherever they are.
void Session::clip() {
  if (!plan_->stages.front().clip) return;
  double own = 0.0;
  for (const auto& worker : workers_) own += worker->squares();
  auto all = static_cast<float>(own);
  if (groups_->clip() != nullptr) groups_->clip()->all_reduce({&all, 1}, Algorithm::automatic);
  for (const auto& worker : workers_) worker->clip(static_cast<double>(all));
}

// What several stages hold comes last, on all ranks in one order: such an exchange begins when all who take part are
// there, and a rank that waited in another order would wait for ever.
void Session::finish_exchanges() {
  for (const auto& worker : workers_) worker->finish_exchange();
  std::vector<GradientExchange*> tied;
  for (const auto& worker : workers_)
    for (GradientExchange* exchange : worker->tied()) tied.push_back(exchange);
  std::ranges::sort(tied, {}, [](const GradientExchange* exchange) {
    return std::pair(exchange->sync().stages, exchange->sync().axes);
  });
  for (GradientExchange* exchange : tied) exchange->finish();
  for (const auto& worker : workers_) worker->wake();
}

Session::Step Session::step(std::int64_t number) {
  Step result;
  const BytesSent sent_before = groups_->bytes_sent();
  const auto offloaded = [&] {
    OffloadedBytes sum;
    for (const auto& worker : workers_) sum += worker->offloaded();
    return sum;
  };
  const OffloadedBytes offloaded_before = offloaded();
  aten::reset_peak();
  const Bytes held_before = resident_memory();
  const Clock::time_point start = Clock::now();
  filling_ = Seconds{};
  for (const auto& worker : workers_) worker->begin_step(number);
  result.loss = take_turns(result.times);
  Stopwatch watch;
  finish_exchanges();
  result.times.exchange += watch.lap();
  for (const auto& worker : workers_)
    if (worker->copies_back()) worker->copy_back();
  for (const auto& worker : workers_) worker->unscale();
  clip();
  for (const auto& worker : workers_) worker->update();
  result.times.optimizer = watch.lap();
  for (const auto& worker : workers_) worker->gather_updated();
  links_.end_step();
  result.times.exchange += watch.lap();
  result.times.total = result.times.forward + result.times.backward + result.times.exchange + result.times.optimizer;
  if (aten::on_cuda()) {
    // What the host enqueued in each phase says nothing of how long the device takes: only the whole step is measured.
    aten::wait_for_device();
    result.times = {};
    result.times.total = Seconds{std::chrono::duration<double>(Clock::now() - start).count()} - filling_;
    for (const auto& worker : workers_) result.loss += worker->late_losses();
  }
  result.grown = resident_memory() - held_before;
  result.bytes_sent = groups_->bytes_sent() - sent_before;
  result.offloaded = offloaded() - offloaded_before;
  result.peak_bytes = aten::peak_bytes();
  for (const auto& worker : workers_) result.busy += worker->busy();
  return result;
}

TraceProcess Session::traced_step(std::int64_t number, std::string_view source) {
  recorder_ = std::make_unique<Recorder>();
  // Twice, the second counts: recording moves what steps allocate to pages that the first one is the first to touch.
  for (std::int64_t i = 0; i < 2; ++i) {
    for (const auto& worker : workers_) worker->record(recorder_.get());
    links_.record(recorder_.get());
    communicator_->barrier();
    recorder_->start();
    step(number + i);
  }
  for (const auto& worker : workers_) worker->record(nullptr);
  links_.record(nullptr);
  const std::unique_ptr<Recorder> recorded = std::move(recorder_);
  return recorded->process(communicator_->rank(), source);
}

// `most`: that any file of this rank has; 0 where none is read.
Result<void> Session::check_samples(std::int64_t most, const char* option) const {
  std::vector<double> counts = communicator_->gather_doubles(static_cast<double>(most));
  std::erase(counts, 0.0);
  const auto [fewest, greatest] = std::ranges::minmax_element(counts);
  if (counts.empty() || *fewest == *greatest) return {};
  return fail(fmt::format("inputs have {} samples and targets {}, or the other way round", *fewest, *greatest), option);
}

Result<void> Session::check_data() const {
  std::int64_t trained = 0, evaluated = 0;
  for (const auto& worker : workers_) trained = std::max(trained, worker->samples());
  for (const auto& data : evaluation_) evaluated = std::max(evaluated, data->samples());
  SIBYL_CHECK(check_samples(trained, "--data"));
  return check_samples(evaluated, "--evaluate");
}

// Stage after stage, each waiting for the one before.
at::Tensor Session::predict(std::int64_t first) {
  at::Tensor answers;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Stage& stage = workers_[i]->stage();
    std::vector<at::Tensor> received, sent;
    const int coordinate = groups_->coordinate(MeshAxis::pipeline), ring = groups_->size(MeshAxis::pipeline);
    for (const Link& link : stage.receives) {
      received.push_back(room_for(stage[link.tensor]));
      groups_->axis(MeshAxis::pipeline).receive(bytes_of(received.back()), (coordinate + ring - 1) % ring);
      received.back() = aten::to_compute_device(received.back());
    }
    answers = workers_[i]->predict(*evaluation_[i], first, std::move(received), sent);
    for (at::Tensor& tensor : sent) {
      tensor = aten::to_host(tensor.contiguous());
      groups_->axis(MeshAxis::pipeline).send(bytes_of(tensor), (coordinate + 1) % ring);
    }
  }
  return answers;
}

// Every rank takes as many micro-batches as the others, its last one past the end if need be: where ranks hold parts of
// parameters they gather them together.
double Session::accuracy() {
  std::int64_t samples = 0;
  for (const auto& data : evaluation_) samples = std::max(samples, data->samples());
  for (const double count : communicator_->gather_doubles(static_cast<double>(samples)))
    samples = std::max(samples, static_cast<std::int64_t>(count));
  StageWorker* last = worker(static_cast<int>(plan_->stages.size()) - 1);
  double right = 0.0, answers = 0.0;
  const std::int64_t own = plan_->micro_batch, stride = own * groups_->size(MeshAxis::data);
  for (std::int64_t begin = 0; begin < samples; begin += stride) {
    const std::int64_t first = begin + groups_->coordinate(MeshAxis::data) * own;
    const at::Tensor predicted = predict(first);
    if (last == nullptr) continue;
    const std::int64_t real = std::clamp<std::int64_t>(samples - first, 0, own);
    const std::int64_t class_axis = classifies(graph())->class_axis;
    const LocalTensorId id = evaluation_.back()->targets();
    const at::Tensor targets = groups_->whole(last->replica()[id], last->stage()[id]);
    const at::Tensor hits = predicted.argmax(class_axis).reshape(targets.sizes()).eq(targets);
    // Answers of a sample lie together: the batch axis comes first.
    const at::Tensor kept = hits.reshape({-1}).slice(0, 0, hits.numel() / own * real);
    right += kept.sum().item<double>();
    answers += static_cast<double>(kept.numel());
  }
  double all_right = 0.0, all = 0.0;
  for (const double count : communicator_->gather_doubles(right)) all_right += count;
  for (const double count : communicator_->gather_doubles(answers)) all += count;
  return all_right / all;
}

}  // namespace sibyl::trainer
