// A place outside device memory: the host's, or a file in storage. Where the device is the processor, memory outside is
// another allocation that the meter of its tensors (aten/memory.h) does not count.
//
// The file has no name once it is open, so that nothing is left of it however the run ends. What is written goes
// through to storage, and what is read comes from there, not from the system's cache: as `sibyl calibrate io` times it.
// May be used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "oracle/strategy.h"

namespace sibyl::trainer {

// The first place from this one on where storage likes to begin.
inline constexpr std::int64_t page = 4096;
inline std::int64_t next_page(std::int64_t place) { return (place + page - 1) / page * page; }

class Outside {
 public:
  // Zeros. `folder` is for storage: a temporary one where it is empty. Fails where so much cannot be had.
  static Result<Outside> make(Tier tier, std::int64_t bytes, const std::filesystem::path& folder);

  // Both throw std::runtime_error where storage fails.
  void write(std::int64_t at, std::span<const std::byte> bytes);
  void read(std::int64_t at, std::span<std::byte> bytes) const;
  // Until what was written in [at, at + bytes) is there.
  void settle(std::int64_t at, std::int64_t bytes) const;

 private:
  Outside() = default;
  void forget(std::int64_t at, std::int64_t bytes) const;  // the pages that the system's cache has of it
  std::vector<std::byte> memory_;
  FileDescriptor file_;
  std::filesystem::path folder_;  // for messages
};

// Where something lies in one.
struct OutsidePlace {
  Outside* outside = nullptr;  // nowhere outside
  std::int64_t at = 0;         // bytes
};

}  // namespace sibyl::trainer
