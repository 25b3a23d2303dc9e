#include "trainer/offload.h"

#include <string>
#include <utility>

#include "aten/weightless.h"
#include "oracle/plan/names.h"
#include "trainer/emulated_device.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {
namespace {

using Way = OffloadCopy::Way;

}  // namespace

Result<std::unique_ptr<OffloadedState>> OffloadedState::create(const Stage& stage, std::vector<Guests> guests,
                                                               const std::filesystem::path& folder,
                                                               EmulatedDevice* emulated) {
  std::unique_ptr<OffloadedState> state(new OffloadedState(stage, emulated));
  std::int64_t end = 0;
  std::vector<Guest*> homeless;
  for (Guests& own : guests) {
    Block& block = state->blocks_.emplace_back();
    block.guests = std::move(own);
    block.place = end;
    for (Guest& guest : block.guests) {
      if (guest.home.outside != nullptr) continue;
      guest.home.at = end;
      end += element_count(guest.shape) * static_cast<std::int64_t>(at::elementSize(guest.type));
      homeless.push_back(&guest);
    }
    block.bytes = end - block.place;
    end = next_page(end);
  }
  if (!homeless.empty() && !emulated) {
    SIBYL_TRY(Outside outside, Outside::make(stage.state_tier, end, folder));
    state->outside_ = std::make_unique<Outside>(std::move(outside));
  }
  for (Guest* guest : homeless) guest->home.outside = state->outside_.get();
  for (Block& block : state->blocks_) give_up(block);
  return state;
}

void OffloadedState::make_room(Block& block) const {
  for (const Guest& guest : block.guests)
    *guest.tensor = emulated_ ? aten::weightless(guest.shape, guest.type)
                              : at::empty(guest.shape, at::TensorOptions().dtype(guest.type));
}

void OffloadedState::give_up(Block& block) {
  for (const Guest& guest : block.guests) *guest.tensor = at::Tensor();
}

void OffloadedState::move(const Block& block, Way way) const {
  for (const Guest& guest : block.guests) {
    const std::span<std::byte> bytes = bytes_of(*guest.tensor);
    if (way == Way::in)
      guest.home.outside->read(guest.home.at, bytes);
    else
      guest.home.outside->write(guest.home.at, bytes);
  }
  if (way == Way::in) return;
  if (block.bytes > 0) outside_->settle(block.place, block.bytes);
  for (const Guest& guest : block.guests)
    if (guest.home.outside != outside_.get())
      guest.home.outside->settle(guest.home.at, static_cast<std::int64_t>(guest.tensor->nbytes()));
}

// By the thread: in, into memory that is there, or out of it.
void OffloadedState::copy(const OffloadCopy& copy) {
  const Block& block = blocks_[copy.block];
  const std::string name = copy_name(copy);
  const Recording recording(recorder_, Recorder::Track::copies, name, "offload");
  if (emulated_)
    emulated_->copy(emulated_->times().copies[static_cast<std::size_t>(&copy - stage_.copies.data())]);
  else
    move(block, copy.way);
  for (const Guest& guest : block.guests)
    (copy.way == Way::in ? moved_.in : moved_.out) += static_cast<std::int64_t>(guest.tensor->nbytes());
}

// Those that may begin when so many blocks have been updated.
void OffloadedState::begin_copies(std::size_t updated) {
  for (; next_ < stage_.copies.size() && stage_.copies[next_].after <= updated; ++next_) {
    const OffloadCopy& next = stage_.copies[next_];
    Block& block = blocks_[next.block];
    if (next.way == Way::in) make_room(block);
    (next.way == Way::in ? block.reading : block.writing) = thread_.begin([this, &next] { copy(next); });
  }
}

void OffloadedState::bring(std::size_t block) {
  if (block == 0) next_ = 0;
  if (block >= 2) {
    thread_.wait(blocks_[block - 2].writing);
    give_up(blocks_[block - 2]);
  }
  begin_copies(block);
  thread_.wait(blocks_[block].reading);
  if (emulated_) emulated_->host_waited();
}

void OffloadedState::finish() {
  begin_copies(blocks_.size());
  for (std::size_t b = blocks_.size() < 2 ? 0 : blocks_.size() - 2; b < blocks_.size(); ++b) {
    thread_.wait(blocks_[b].writing);
    give_up(blocks_[b]);
  }
  if (emulated_) emulated_->host_waited();
}

}  // namespace sibyl::trainer
