// The messages of an exchange without the copies around them: what an emulated device sends, for its copies take their
// time as kernels do. The memory is nobody else's, and 64 MB pass before a part of it is sent again: a training step,
// too, sends what it has just made, and not the same buffer out of the caches.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "oracle/plan/plan.h"

namespace sibyl::trainer {

class BareMessages {
 public:
  // Those of perform() (exchange.h) with a tensor of this shape, whose elements take `width` bytes. Blocking.
  void send(const Transfer& transfer, const Shape& shape, std::size_t width, Communicator& ranks);

 private:
  void make_room(std::size_t bytes);
  std::span<std::byte> next(std::size_t bytes);
  void swap(const Transfer& transfer, std::size_t row, Communicator& ranks);

  std::vector<float> memory_;
  std::size_t at_ = 0;
};

}  // namespace sibyl::trainer
