#include "trainer/offload.h"

#include <string>
#include <utility>

#include "oracle/plan/names.h"

namespace sibyl::trainer {
namespace {

using Way = OffloadCopy::Way;

}  // namespace

Result<std::unique_ptr<OffloadedState>> OffloadedState::create(const Stage& stage, std::vector<Tensors> tensors,
                                                               const std::filesystem::path& folder) {
  std::vector<Block> blocks;
  std::int64_t place = 0;
  for (Tensors& own : tensors) {
    Block block{std::move(own), {}, place, 0, 0, 0};
    for (const at::Tensor* tensor : block.tensors) {
      block.shapes.push_back(tensor->sizes().vec());
      block.bytes += static_cast<std::int64_t>(tensor->nbytes());
    }
    place = next_page(place + block.bytes);
    blocks.push_back(std::move(block));
  }
  SIBYL_TRY(Outside outside, Outside::make(stage.state_tier, place, folder));
  std::unique_ptr<OffloadedState> state(new OffloadedState(stage, std::move(outside)));
  state->blocks_ = std::move(blocks);
  for (Block& block : state->blocks_) state->give_up(block);
  return state;
}

void OffloadedState::make_room(Block& block) {
  for (std::size_t i = 0; i < block.tensors.size(); ++i)
    *block.tensors[i] = at::empty(block.shapes[i], at::TensorOptions().dtype(at::kFloat));
}

void OffloadedState::give_up(Block& block) {
  for (at::Tensor* tensor : block.tensors) *tensor = at::Tensor();
}

// By the thread: in, into memory that is there, or out of it.
void OffloadedState::copy(const OffloadCopy& copy) {
  const Block& block = blocks_[copy.block];
  const std::string name = copy_name(copy);
  const Recording recording(recorder_, Recorder::Track::copies, name, "offload");
  std::int64_t at = block.place;
  for (const at::Tensor* tensor : block.tensors) {
    const std::span<std::byte> bytes(static_cast<std::byte*>(tensor->data_ptr()), tensor->nbytes());
    if (copy.way == Way::in)
      outside_.read(at, bytes);
    else
      outside_.write(at, bytes);
    at += static_cast<std::int64_t>(bytes.size());
  }
  if (copy.way == Way::out) outside_.settle(block.place, block.bytes);
  (copy.way == Way::in ? moved_.in : moved_.out) += at - block.place;
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
}

void OffloadedState::finish() {
  begin_copies(blocks_.size());
  for (std::size_t b = blocks_.size() < 2 ? 0 : blocks_.size() - 2; b < blocks_.size(); ++b) {
    thread_.wait(blocks_[b].writing);
    give_up(blocks_[b]);
  }
}

}  // namespace sibyl::trainer
