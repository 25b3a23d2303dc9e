#include "trainer/offload_activations.h"

#include <string>
#include <utility>

#include "aten/dtype.h"
#include "oracle/plan/names.h"
#include "oracle/plan/offload_activations.h"

namespace sibyl::trainer {

using Way = OffloadCopy::Way;

Result<std::unique_ptr<OffloadedActivations>> OffloadedActivations::create(const Stage& stage,
                                                                           const std::filesystem::path& folder) {
  std::vector<Kept> kept(stage.kept_outside.size());
  std::int64_t place = 0;
  for (std::size_t s = 0; s < kept.size(); ++s) {
    kept[s].place = place;
    kept[s].bytes = kept_outside_bytes(stage, s);
    place = next_page(place + kept[s].bytes);
  }
  SIBYL_TRY(Outside outside, Outside::make(stage.kept_tier, place, folder));
  std::unique_ptr<OffloadedActivations> activations(new OffloadedActivations(stage, std::move(outside)));
  activations->kept_ = std::move(kept);
  return activations;
}

void OffloadedActivations::begin_copy(std::size_t segment, Way way) {
  kept_[segment].copy = thread_.begin([this, segment, way] {
    const Kept& kept = kept_[segment];
    const std::string name = kept_name(segment, way);
    const Recording recording(recorder_, Recorder::Track::copies, name, "offload");
    std::int64_t at = kept.place;
    for (const at::Tensor& tensor : kept.tensors) {
      const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
      if (way == Way::in)
        outside_.read(at, bytes);
      else
        outside_.write(at, bytes);
      at += static_cast<std::int64_t>(bytes.size());
    }
    if (way == Way::out) outside_.settle(kept.place, kept.bytes);
    (way == Way::in ? moved_.in : moved_.out) += at - kept.place;
  });
}

// Its bytes lie in a row once it is contiguous; what blocks keep is that already.
void OffloadedActivations::leave(std::size_t segment, std::vector<at::Tensor> kept) {
  for (at::Tensor& tensor : kept) tensor = tensor.detach().contiguous();
  kept_[segment].tensors = std::move(kept);
  begin_copy(segment, Way::out);
}

void OffloadedActivations::left(std::size_t segment) {
  thread_.wait(kept_[segment].copy);
  kept_[segment].tensors.clear();
}

void OffloadedActivations::bring_before(std::size_t segment) {
  const std::size_t s = outside_before(stage_, segment);
  if (s == segment) return;
  for (const LocalTensorId id : stage_.kept_outside[s])
    kept_[s].tensors.push_back(
        at::empty(stage_[id].shape, at::TensorOptions().dtype(aten::scalar_type(stage_[id].dtype))));
  begin_copy(s, Way::in);
}

void OffloadedActivations::begin_backward() { bring_before(kept_.size()); }

std::vector<at::Tensor> OffloadedActivations::fetch(std::size_t segment) {
  thread_.wait(kept_[segment].copy);
  std::vector<at::Tensor> here = std::exchange(kept_[segment].tensors, {});
  bring_before(segment);
  return here;
}

}  // namespace sibyl::trainer
