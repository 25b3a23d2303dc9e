#include "trainer/offload_activations.h"

#include <string>
#include <utility>

#include "aten/dtype.h"
#include "oracle/plan/names.h"
#include "oracle/plan/offload_activations.h"
#include "trainer/emulated_device.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {

using Way = OffloadCopy::Way;

Result<std::unique_ptr<OffloadedActivations>> OffloadedActivations::create(const Stage& stage,
                                                                           const std::filesystem::path& folder,
                                                                           EmulatedDevice* emulated) {
  std::unique_ptr<OffloadedActivations> activations(new OffloadedActivations(stage, emulated));
  activations->kept_.resize(stage.kept_outside.size());
  std::int64_t place = 0;
  for (std::size_t s = 0; s < activations->kept_.size(); ++s) {
    Kept& kept = activations->kept_[s];
    kept.place = place;
    kept.bytes = kept_outside_bytes(stage, s);
    place = next_page(place + kept.bytes);
  }
  if (emulated) return activations;
  SIBYL_TRY(Outside outside, Outside::make(stage.kept_tier, place, folder));
  activations->outside_ = std::make_unique<Outside>(std::move(outside));
  return activations;
}

void OffloadedActivations::move(const Kept& kept, Way way) const {
  std::int64_t at = kept.place;
  for (const at::Tensor& tensor : kept.tensors) {
    const std::span<std::byte> bytes = bytes_of(tensor);
    if (way == Way::in)
      outside_->read(at, bytes);
    else
      outside_->write(at, bytes);
    at += static_cast<std::int64_t>(bytes.size());
  }
  if (way == Way::out) outside_->settle(kept.place, kept.bytes);
}

// A copy begins when what was launched before it has run.
void OffloadedActivations::begin_copy(std::size_t segment, Way way) {
  if (emulated_) emulated_->wait();
  kept_[segment].copy = thread_.begin([this, segment, way] {
    const std::string name = kept_name(segment, way);
    const Recording recording(recorder_, Recorder::Track::copies, name, "offload");
    if (emulated_)
      emulated_->copy((way == Way::in ? emulated_->times().kept_in : emulated_->times().kept_out)[segment]);
    else
      move(kept_[segment], way);
    (way == Way::in ? moved_.in : moved_.out) += kept_[segment].bytes;
  });
}

void OffloadedActivations::wait(std::size_t copy) {
  thread_.wait(copy);
  if (emulated_) emulated_->host_waited();
}

// Its bytes lie in a row once it is contiguous; what blocks keep is that already.
void OffloadedActivations::leave(std::size_t segment, std::vector<at::Tensor> kept) {
  for (at::Tensor& tensor : kept) tensor = tensor.detach().contiguous();
  kept_[segment].tensors = std::move(kept);
  begin_copy(segment, Way::out);
}

void OffloadedActivations::left(std::size_t segment) {
  wait(kept_[segment].copy);
  kept_[segment].tensors.clear();
}

void OffloadedActivations::bring_before(std::size_t segment) {
  const std::size_t s = outside_before(stage_, segment);
  if (s == segment) return;
  for (const LocalTensorId id : stage_.kept_outside[s])
    kept_[s].tensors.push_back(
        emulated_ ? emulated_->tensor(stage_[id].shape, stage_[id].dtype)
                  : at::empty(stage_[id].shape, at::TensorOptions().dtype(aten::scalar_type(stage_[id].dtype))));
  begin_copy(s, Way::in);
}

void OffloadedActivations::begin_backward() { bring_before(kept_.size()); }

std::vector<at::Tensor> OffloadedActivations::fetch(std::size_t segment) {
  wait(kept_[segment].copy);
  std::vector<at::Tensor> here = std::exchange(kept_[segment].tensors, {});
  bring_before(segment);
  return here;
}

}  // namespace sibyl::trainer
