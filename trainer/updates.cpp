#include "trainer/updates.h"

#include <algorithm>
#include <cmath>

#include "oracle/plan/norms.h"
#include "trainer/emulated_device.h"

namespace sibyl::trainer {

Updates::Updates(Replica& replica, int stage, const std::vector<std::unique_ptr<ShardedSync>>& shards,
                 const aten::OptimizerSettings& settings, Communicator* parts)
    : replica_(replica), stage_(replica.stage()), number_(stage), settings_(settings), parts_(parts) {
  const std::vector<bool> sharded = sharded_parameters(stage_);
  for (const Update& update : stage_.updates)
    if (!sharded[update.parameter.index()]) add(update.parameter, block_of(update.parameter), {}, {});
  for (std::size_t s = 0; s < shards.size(); ++s)
    if (shards[s]) add_parts(s, *shards[s]);
}

std::size_t Updates::block_of(LocalTensorId parameter) const {
  const auto found = std::ranges::find_if(
      stage_.blocks, [&](const StateBlock& block) { return std::ranges::count(block.parameters, parameter) > 0; });
  return static_cast<std::size_t>(found - stage_.blocks.begin());
}

std::size_t Updates::block_of(const StateBlock::Part& part) const {
  const auto found = std::ranges::find_if(
      stage_.blocks, [&](const StateBlock& block) { return std::ranges::count(block.parts, part) > 0; });
  return static_cast<std::size_t>(found - stage_.blocks.begin());
}

// Whole parts of buckets, unless parameters in one differ in what is done with them.
void Updates::add_parts(std::size_t sync, const ShardedSync& shards) {
  const std::vector<ShardedSync::Part> parts = shards.parts();
  for (std::size_t b = 0; b < parts.size(); ++b) {
    const ShardedSync::Part& part = parts[b];
    const std::size_t block = block_of(StateBlock::Part{sync, b});
    const std::vector<Piece> found = pieces(stage_, *part.bucket, part.range.begin, part.range.end);
    if (found.empty()) continue;
    const bool first = clip_counts(found.front().parameter);
    const auto differs = [&](const Piece& piece) { return clip_counts(piece.parameter) != first; };
    const bool apart =
        takes_norms(stage_.updates.front().optimizer.kind) || std::ranges::any_of(found, differs);
    if (!apart) {
      add(found.front().parameter, block, part.parameters, part.gradients);
      targets_.back().home = part.home;
      continue;
    }
    for (const Piece& piece : found) {
      const std::int64_t at = piece.place - part.range.begin;
      const at::Tensor gradient = part.gradients.narrow(0, at, piece.elements);
      const auto offset = at * static_cast<std::int64_t>(gradient.itemsize());
      const OutsidePlace home{part.home.outside, part.home.at + offset};
      const bool here = part.parameters.defined();
      add(piece.parameter, block, here ? part.parameters.narrow(0, at, piece.elements) : at::Tensor(), gradient);
      targets_.back().home = home;
    }
  }
}

void Updates::add(LocalTensorId parameter, std::size_t block, at::Tensor values, at::Tensor gradient) {
  const auto update = std::ranges::find(stage_.updates, parameter, &Update::parameter);
  Target target{parameter,
                static_cast<std::size_t>(update - stage_.updates.begin()),
                block,
                std::move(values),
                std::move(gradient),
                {},
                {},
                {},
                clip_counts(parameter),
                counts(parameter, stage_.norm_axes)};
  // A part that is not here is as its gradient.
  target.away = target.gradient.defined() && !target.values.defined();
  const at::Tensor own = target.away ? target.gradient : this->values(target);
  if (stage_.masters) target.master = at::empty(own.sizes(), own.options().dtype(at::kFloat));
  target.state = aten::make_optimizer_state(update->optimizer, stage_.masters ? target.master : own);
  targets_.push_back(std::move(target));
}

// Of ranks along an axis that hold the same, the first counts it; of stages that hold the same, the first.
bool Updates::counts(LocalTensorId parameter, const std::vector<MeshAxis>& axes) const {
  const auto found = std::ranges::find_if(stage_.gradients, [&](const GradientSync& sync) {
    return std::ranges::any_of(sync.buckets, [&](const Bucket& bucket) {
      return std::ranges::count(bucket.parameters, parameter) > 0;
    });
  });
  const GradientSync nobody_else;
  const GradientSync& sync = found == stage_.gradients.end() ? nobody_else : *found;
  return std::ranges::all_of(axes, [&](MeshAxis axis) {
    if (axis == MeshAxis::pipeline) return sync.stages.empty() || sync.stages.front() == number_;
    const bool cut = std::ranges::any_of(stage_[parameter].cuts, [&](const PartOf& part) { return part.axis == axis; });
    const bool scattered = sync.sharded() && std::ranges::count(sync.axes, axis) > 0;
    const MeshGroups& groups = replica_.groups();
    // Of copies of a part the first.
    if (scattered && axis == MeshAxis::data) return groups.coordinate(axis) * sync.copies < groups.size(axis);
    return cut || scattered || groups.coordinate(axis) == 0;
  });
}

bool Updates::clip_counts(LocalTensorId parameter) const { return !stage_.clip || counts(parameter, stage_.clip->axes); }

at::Tensor Updates::gradient(const Target& target) {
  return target.gradient.defined() ? target.gradient : replica_[target.parameter].grad();
}

void Updates::unscale() {
  if (EmulatedDevice* device = replica_.emulated()) device->run(device->times().unscale);
}

double Updates::squares() {
  const at::NoGradGuard no_grad;
  double squares = 0.0;
  if (EmulatedDevice* device = replica_.emulated()) {
    device->run(device->times().norms);
    device->wait();
    return squares;
  }
  for (const Target& target : targets_) {
    const at::Tensor g = gradient(target);
    if (!g.defined()) continue;
    const double norm = g.norm().item<double>();
    if (target.clip_counts) squares += norm * norm;
  }
  return squares;
}

// As torch.nn.utils.clip_grad_norm_: gradients are multiplied even where the norm is small enough.
void Updates::clip(double squares) {
  const at::NoGradGuard no_grad;
  if (EmulatedDevice* device = replica_.emulated()) {
    device->host_waited();
    device->run(device->times().clips);
    return;
  }
  const double scale = std::min(1.0, stage_.clip->limit / (std::sqrt(squares) + 1e-6));
  for (const Target& target : targets_)
    if (at::Tensor g = gradient(target); g.defined()) g.mul_(scale);
}

void Updates::update_by_norms() {
  std::vector<at::Tensor> directions;
  std::vector<float> squares(2 * stage_.updates.size(), 0.0F);
  for (Target& target : targets_) {
    const at::Tensor g = gradient(target), w = values(target);
    directions.push_back(
        g.defined() ? aten::begin_update(stage_.updates[target.tensor].optimizer, settings_, target.state, w, g)
                    : at::Tensor());
    if (!g.defined() || !target.norm_counts) continue;
    const aten::SquaredNorms own = aten::squared_norms(w, directions.back());
    squares[2 * target.tensor] += static_cast<float>(own.parameter);
    squares[2 * target.tensor + 1] += static_cast<float>(own.step);
  }
  parts_->all_reduce(squares, Algorithm::automatic);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    Target& target = targets_[i];
    at::Tensor w = values(target);
    if (directions[i].defined())
      aten::finish_update(stage_.updates[target.tensor].optimizer, settings_, target.state, w, directions[i],
                          {squares[2 * target.tensor], squares[2 * target.tensor + 1]});
  }
}

// The same kernels and messages, and LAMB's directions while they wait for the norms.
void Updates::emulate(EmulatedDevice& device) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> directions;
  device.run(device.times().masters);
  if (!stage_.norm_axes.empty()) {
    for (const Target& target : targets_)
      if (stage_.updates[target.tensor].optimizer.kind == OptimizerKind::lamb)
        directions.push_back(at::empty_like(values(target)));
    device.wait();
    std::vector<float> zeros(2 * stage_.updates.size(), 0.0F);
    parts_->all_reduce(zeros, Algorithm::automatic);
    device.host_waited();
  }
  if (!offloaded_) {
    device.run(device.times().updates);
    return device.wait();
  }
  for (std::size_t block = 0; block < stage_.blocks.size(); ++block) {
    offloaded_->bring(block);
    device.run(device.times().block_updates[block]);
    device.wait();
  }
  offloaded_->finish();
}

void Updates::update(Target& target) {
  at::Tensor w = values(target);
  if (const at::Tensor g = gradient(target); g.defined())
    aten::update_parameter(stage_.updates[target.tensor].optimizer, settings_, target.state, w, g);
}

void Updates::compute() {
  if (!stage_.norm_axes.empty()) return update_by_norms();
  if (!offloaded_) {
    for (Target& target : targets_) update(target);
    return;
  }
  for (std::size_t block = 0; block < stage_.blocks.size(); ++block) {
    offloaded_->bring(block);
    for (Target& target : targets_)
      if (target.block == block) update(target);
  }
  offloaded_->finish();
}

Result<void> Updates::offload(const std::filesystem::path& folder) {
  if (stage_.blocks.empty()) return {};
  std::vector<OffloadedState::Guests> blocks(stage_.blocks.size());
  for (Target& target : targets_) {
    OffloadedState::Guests& block = blocks[target.block];
    for (at::Tensor* tensor : {&target.state.first, &target.state.second, &target.master})
      if (stage_.state_tier != Tier::device && tensor->defined())
        block.push_back({tensor, tensor->sizes().vec(), tensor->scalar_type()});
    if (target.away)
      block.push_back({&target.values, target.gradient.sizes().vec(), target.gradient.scalar_type(), target.home});
  }
  SIBYL_TRY(offloaded_, OffloadedState::create(stage_, std::move(blocks), folder, replica_.emulated()));
  return {};
}

void Updates::record(Recorder* recorder) {
  if (offloaded_) offloaded_->record(recorder);
}

void Updates::run() {
  if (EmulatedDevice* device = replica_.emulated())
    emulate(*device);
  else
    compute();
  for (const Update& update : stage_.updates) replica_[update.parameter].mutable_grad().reset();
}

}  // namespace sibyl::trainer
