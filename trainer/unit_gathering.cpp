#include "trainer/unit_gathering.h"

#include <ATen/native/Resize.h>

#include <string>
#include <utility>

#include "aten/weightless.h"
#include "oracle/plan/names.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {

UnitGathering::UnitGathering(const Stage& stage, std::size_t sync, std::vector<Shard>& shards, ShardMessages& messages,
                             EmulatedDevice* emulated)
    : stage_(stage), shards_(shards), messages_(messages), emulated_(emulated), splits_(splits_backward(stage)) {
  for (std::size_t u = 0; u < stage_.units.size(); ++u)
    if (stage_.units[u].sync == sync) units_.push_back(stage_.units[u].bucket), own(u);
}

void UnitGathering::own(std::size_t unit) {
  const at::NoGradGuard no_grad;
  Shard& shard = shards_[stage_.units[unit].bucket];
  shard.unit = &stage_.units[unit];
  shard.unit_index = unit;
  shard.own = shard.own.clone();
  release(shard);
}

Result<void> UnitGathering::move_out(const std::filesystem::path& folder) {
  if (stage_.parameter_tier == Tier::device || units_.empty()) return {};
  std::int64_t end = 0;
  for (const std::size_t bucket : units_) {
    shards_[bucket].home.at = end;
    end = next_page(end + static_cast<std::int64_t>(shards_[bucket].own.nbytes()));
  }
  if (!emulated_) {
    SIBYL_TRY(Outside outside, Outside::make(stage_.parameter_tier, end, folder));
    outside_ = std::make_unique<Outside>(std::move(outside));
  }
  for (const std::size_t bucket : units_) {
    Shard& shard = shards_[bucket];
    shard.home.outside = outside_.get();
    if (outside_) {
      outside_->write(shard.home.at, bytes_of(shard.own));
      outside_->settle(shard.home.at, static_cast<std::int64_t>(shard.own.nbytes()));
    }
    shard.own = at::Tensor();
  }
  copying_ = std::make_unique<CopyThread>();
  return {};
}

void UnitGathering::before_forward(std::size_t step) {
  for (std::size_t n = 0; n < units_.size(); ++n) {
    Shard& shard = shards_[units_[n]];
    if (step < shard.unit->begin || step >= shard.unit->end) continue;
    shard.over = false;
    need(shard);
    if (step != shard.unit->begin) continue;
    const auto ahead = static_cast<std::size_t>(shard.unit->ahead);
    for (std::size_t k = 1; k <= ahead && n + k < units_.size(); ++k) gather(shards_[units_[n + k]]);
    if (n + ahead + 1 < units_.size()) bring(shards_[units_[n + ahead + 1]]);
  }
}

void UnitGathering::after_forward(std::size_t step) {
  for (const std::size_t bucket : units_) {
    Shard& shard = shards_[bucket];
    if (step + 1 == shard.unit->end && !stays_gathered(stage_, *shard.unit)) release(shard);
  }
}

void UnitGathering::begin_backward() {
  for (const std::size_t bucket : units_) shards_[bucket].over = false;
}

void UnitGathering::before_backward(std::size_t step) {
  for (std::size_t n = units_.size(); n-- > 0;) {
    Shard& shard = shards_[units_[n]];
    if (step < shard.unit->begin || step >= shard.unit->end) continue;
    if (shard.over) continue;                              // another sync's parameters are read within the same steps
    if (shard.gathered && shard.gathering == 0) continue;  // entered before
    need(shard);
    const auto ahead = static_cast<std::size_t>(shard.unit->ahead_backward);
    for (std::size_t k = 1; k <= ahead && k <= n; ++k)
      if (Shard& next = shards_[units_[n - k]]; !next.over) gather(next);
    if (ahead >= n) continue;
    if (Shard& next = shards_[units_[n - ahead - 1]]; !next.over) bring(next);
  }
}

// Where gradients of weights are put off, none tells when a unit is read no more.
void UnitGathering::after_backward(std::size_t first) {
  if (!splits_) return;
  for (const std::size_t bucket : units_) {
    Shard& shard = shards_[bucket];
    if (shard.over || shard.unit->begin < first) continue;
    shard.over = true;
    release(shard);
  }
}

// Where nothing is gathered ahead, the next unit's parameters are asked for before the gradients of this one are sent.
// Where gradients of weights are put off nothing is known to be complete, and it is gathered when it is read.
void UnitGathering::about_to_send(Shard& shard) {
  if (splits_ || !shard.unit || shard.unit->ahead_backward != 0) return;
  release(shard);
  for (std::size_t n = 1; n < units_.size(); ++n)
    if (&shards_[units_[n]] == &shard && !shards_[units_[n - 1]].over) gather(shards_[units_[n - 1]]);
}

void UnitGathering::read_no_more(Shard& shard) {
  shard.over = true;
  if (shard.unit) release(shard);
}

void UnitGathering::gather_all() {
  for (const std::size_t bucket : units_) gather(shards_[bucket]);
  for (const std::size_t bucket : units_) need(shards_[bucket]);
}

void UnitGathering::release_all() {
  for (const std::size_t bucket : units_) release(shards_[bucket]);
}

void UnitGathering::bring(Shard& shard) {
  if (!copying_ || shard.gathered || shard.bringing > 0) return;
  if (emulated_) emulated_->wait();  // not before what was launched has run
  const at::TensorOptions memory(emulated_ ? at::kMeta : at::kCPU);
  shard.own = at::empty({shard.range.size()}, memory.dtype(shard.type()));
  shard.bringing = copying_->begin([this, &shard] {
    const std::string name = part_name(shard.unit_index);
    const Recording recording(recorder_, Recorder::Track::copies, name, "offload");
    if (emulated_)
      emulated_->copy(emulated_->times().brought[shard.unit_index]);
    else
      outside_->read(shard.home.at, bytes_of(shard.own));
    moved_.in += static_cast<std::int64_t>(shard.own.nbytes());
  });
}

void UnitGathering::gather(Shard& shard) {
  if (shard.gathered) return;
  bring(shard);
  if (shard.bringing > 0) {
    copying_->wait(shard.bringing);
    if (emulated_) emulated_->host_waited();
  }
  if (emulated_) {
    const std::vector<EmulatedWork>& copies = emulated_->times().unit_copies;
    if (!copies.empty()) emulated_->run(copies[shard.unit_index]);
    emulated_->wait();  // not before what was launched has run
  }
  const at::NoGradGuard no_grad;
  resize(shard, shard.bucket->elements);
  shard.flat.narrow(0, shard.range.begin, shard.range.size()).copy_(shard.own);
  if (std::exchange(shard.bringing, 0) > 0) shard.own = at::Tensor();
  shard.gathering = messages_.begin(Collective::all_gather, messages_.of(shard.flat, shard.bucket->elements),
                                    unit_name(shard.unit_index));
  shard.gathered = true;
}

void UnitGathering::need(Shard& shard) {
  gather(shard);
  if (shard.gathering > 0) messages_.wait(shard.gathering);
  shard.gathering = 0;
}

void UnitGathering::release(Shard& shard) {
  if (!shard.gathered) return;
  if (shard.gathering > 0) messages_.wait(shard.gathering);
  shard.gathering = 0;
  resize(shard, 0);
  shard.gathered = false;
}

// The views stay what they are; they can be read while the memory is there.
void UnitGathering::resize(Shard& shard, std::int64_t elements) const {
  const auto bytes = static_cast<std::size_t>(elements) * shard.flat.itemsize();
  if (emulated_)
    aten::resize_weightless(shard.flat, bytes);
  else
    at::native::resize_bytes_cpu(shard.flat.storage().unsafeGetStorageImpl(), bytes);
}

}  // namespace sibyl::trainer
