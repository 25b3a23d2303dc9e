// Memory by cache lines. One word of each is touched: the whole line moves all the same, and no processor is too slow
// to see the cache's rate.
#pragma once

#include <cstdint>
#include <span>

namespace sibyl {

struct alignas(64) CacheLine {
  volatile std::uint64_t word = 0;
};

inline void read_lines(std::span<const CacheLine> lines) {
  std::uint64_t sum = 0;
  for (const CacheLine& line : lines) sum += line.word;
  static_cast<void>(sum);  // the reads are volatile
}

inline void write_lines(std::span<CacheLine> lines) {
  for (CacheLine& line : lines) line.word = line.word + 1;
}

}  // namespace sibyl
