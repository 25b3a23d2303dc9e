// Collectives over buckets that ranks hold by parts (zero.h), beside computation and one after the other, in the order
// in which they are begun, which must be the same on all ranks.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "trainer/communication_thread.h"
#include "trainer/emulated_device.h"
#include "trainer/recorder.h"

namespace sibyl::trainer {

class ShardMessages {
 public:
  // `largest`: bytes of the largest bucket. Null `emulated`: this machine itself.
  ShardMessages(Communicator& communicator, EmulatedDevice* emulated, std::int64_t largest);

  // What is sent of the first elements of a flat tensor.
  [[nodiscard]] Elements of(const at::Tensor& flat, std::int64_t elements);
  // The result is a number to wait for. Among the communicator's ranks unless others are given.
  std::size_t begin(Collective collective, const Elements& elements, std::string name, Communicator* among = nullptr);
  void wait();                    // until all are done
  void wait(std::size_t number);  // until this one is, and all before it; an emulated host is then as late
  void record(Recorder* recorder);

 private:
  EmulatedDevice* emulated_;
  at::Tensor wire_;
  CommunicationThread thread_;
};

}  // namespace sibyl::trainer
