#include "calibration/turns.h"

#include <algorithm>

namespace sibyl {

std::size_t in_turn(std::span<const KernelKey> keys, Bytes lap, Bytes most_memory) {
  Bytes all, held;
  std::size_t count = 0;
  while (count < std::min(most_in_turn, keys.size()) && (count == 0 || all < lap)) {
    all += operand_bytes(keys[count]);
    held += timed_bytes(keys[count]);
    if (count > 0 && held > most_memory) break;
    ++count;
  }
  return count;
}

}  // namespace sibyl
