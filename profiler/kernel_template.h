// Many kernels that differ in their sizes alone, written once: a kernel key in whose shapes $0, $1, ... stand for
// sizes.
//
//   forward linear[$0x$2,$1x$2]->[$0x$1]:bf16   with sizes 512, 4096, 1024 is
//   forward linear[512x1024,4096x1024]->[512x4096]:bf16
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profiler/kernel_key.h"

namespace sibyl {

class KernelTemplate {
 public:
  static Result<KernelTemplate> parse(std::string_view text);

  // How many sizes it takes: one more than the largest number behind a $.
  [[nodiscard]] std::size_t size_count() const { return size_count_; }
  [[nodiscard]] KernelKey with(std::span<const std::int64_t> sizes) const;

 private:
  struct Slot {  // where a size stands
    bool output;
    std::size_t shape, dimension, size;
  };
  KernelKey key_;
  std::vector<Slot> slots_;
  std::size_t size_count_ = 0;
};

}  // namespace sibyl
