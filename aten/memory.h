// Counts the bytes of CPU tensors that live, and their peak: what a caching allocator would report as allocated.
//
// Stands before c10's CPU allocator. A block counts from allocation to release as the bytes asked for, rounded up to 64
// (a cache line, c10's alignment). Costs two atomic additions a block and 64 bytes of uncounted header, in which the
// size lies until release. Scratch that a library allocates for itself (oneDNN, the BLAS) is not seen.
#pragma once

#include <cstdint>

namespace sibyl::aten {

class MemoryMeter {
 public:
  // From here on every CPU tensor of the process is counted. Idempotent.
  static void install();
  static std::int64_t live();
  static std::int64_t peak();  // the highest live() since reset_peak()
  static void reset_peak();

  // Of memory that only counts: tensors without any, scratch that is only pretended.
  static void take(std::int64_t bytes);
  static void give(std::int64_t bytes);
  // Of what takes the place of something that is given at once: the peak sees it with the next take().
  static void replace(std::int64_t bytes);

  // What this thread allocates meanwhile is not counted.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    bool before_;
  };
};

}  // namespace sibyl::aten
