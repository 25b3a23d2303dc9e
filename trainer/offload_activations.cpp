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
  activations->slots_.resize(static_cast<std::size_t>(most_on_their_way(stage)), Slot(stage.kept_outside.size()));
  std::int64_t place = 0;
  for (std::size_t n = 0; n < activations->slots_.size(); ++n) {
    activations->free_.push_back(n);
    for (std::size_t s = 0; s < stage.kept_outside.size(); ++s) {
      Kept& kept = activations->slots_[n][s];
      kept.place = place;
      kept.bytes = kept_outside_bytes(stage, s);
      place = next_page(place + kept.bytes);
    }
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
void OffloadedActivations::begin_copy(Kept& kept, std::size_t segment, Way way) {
  if (emulated_) emulated_->wait();
  kept.copy = thread_.begin([this, &kept, segment, way] {
    const std::string name = kept_name(segment, way);
    const Recording recording(recorder_, Recorder::Track::copies, name, "offload");
    if (emulated_)
      emulated_->copy((way == Way::in ? emulated_->times().kept_in : emulated_->times().kept_out)[segment]);
    else
      move(kept, way);
    (way == Way::in ? moved_.in : moved_.out) += kept.bytes;
  });
}

void OffloadedActivations::wait(std::size_t copy) {
  thread_.wait(copy);
  if (emulated_) emulated_->host_waited();
}

// Its bytes lie in a row once it is contiguous; what blocks keep is that already.
void OffloadedActivations::leave(int micro_batch, std::size_t segment, std::vector<at::Tensor> kept) {
  const auto [entry, added] = slot_of_.try_emplace(micro_batch, 0);
  if (added) {
    entry->second = free_.back();
    free_.pop_back();
  }
  for (at::Tensor& tensor : kept) tensor = tensor.detach().contiguous();
  Kept& own = slots_[entry->second][segment];
  own.tensors = std::move(kept);
  begin_copy(own, segment, Way::out);
}

void OffloadedActivations::left(int micro_batch, std::size_t segment) {
  Kept& own = slots_[slot_of_.at(micro_batch)][segment];
  wait(own.copy);
  own.tensors.clear();
}

void OffloadedActivations::bring_before(Slot& slot, std::size_t segment) {
  const std::size_t s = outside_before(stage_, segment);
  if (s == segment) return;
  for (const LocalTensorId id : stage_.kept_outside[s])
    slot[s].tensors.push_back(
        emulated_ ? emulated_->tensor(stage_[id].shape, stage_[id].dtype)
                  : at::empty(stage_[id].shape, at::TensorOptions().dtype(aten::scalar_type(stage_[id].dtype))));
  begin_copy(slot[s], s, Way::in);
}

void OffloadedActivations::begin_backward(int micro_batch) {
  if (const auto found = slot_of_.find(micro_batch); found != slot_of_.end())
    bring_before(slots_[found->second], stage_.kept_outside.size());
}

// With the first segment of which something lies outside the micro-batch has nothing there any more.
std::vector<at::Tensor> OffloadedActivations::fetch(int micro_batch, std::size_t segment) {
  const auto own = slot_of_.find(micro_batch);
  Slot& slot = slots_[own->second];
  wait(slot[segment].copy);
  std::vector<at::Tensor> here = std::exchange(slot[segment].tensors, {});
  bring_before(slot, segment);
  if (outside_before(stage_, segment) == segment) {
    free_.push_back(own->second);
    slot_of_.erase(own);
  }
  return here;
}

}  // namespace sibyl::trainer
