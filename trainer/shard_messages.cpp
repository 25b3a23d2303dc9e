#include "trainer/shard_messages.h"

#include <utility>

#include "aten/memory.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {
namespace {

// An emulated device has no memory to send from: all messages, one after the other, go through one buffer, which
// counts for nothing.
at::Tensor wire_of(std::int64_t bytes) {
  const aten::MemoryMeter::Pause uncounted;
  return at::zeros({bytes}, at::kByte);
}

}  // namespace

ShardMessages::ShardMessages(Communicator& communicator, EmulatedDevice* emulated, std::int64_t largest)
    : emulated_(emulated), wire_(emulated ? wire_of(largest) : at::Tensor()), thread_(communicator) {}

Elements ShardMessages::of(const at::Tensor& flat, std::int64_t elements) {
  const auto bytes = static_cast<std::size_t>(elements) * flat.itemsize();
  return {bytes_of(emulated_ ? wire_ : flat).first(bytes), element_of(flat.scalar_type())};
}

std::size_t ShardMessages::begin(Collective collective, const Elements& elements, std::string name,
                                 Communicator* among) {
  return thread_.begin(collective, elements, std::move(name), among);
}

void ShardMessages::wait() { thread_.wait(); }

void ShardMessages::wait(std::size_t number) {
  thread_.wait(number);
  if (emulated_) emulated_->host_waited();
}

void ShardMessages::record(Recorder* recorder) { thread_.record(recorder); }

}  // namespace sibyl::trainer
