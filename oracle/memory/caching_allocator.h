// What PyTorch's CUDA allocator takes from the device for the blocks that a program asks it for.
//
// It keeps what is given back, and cuts blocks out of larger segments: so a process holds more memory than its tensors
// fill, and that is what must fit. Rules (c10/cuda/CUDACachingAllocator of PyTorch 1.x and 2.x, with its default
// settings): sizes are rounded up to 512 bytes; blocks of up to 1 MiB come out of segments of 2 MiB, larger ones below
// 10 MiB out of segments of 20 MiB, and others get a segment of their own, a multiple of 2 MiB. The smallest free block
// of the same pool that is large enough serves; what is left of it stays free, if it is worth a block (512 bytes; more
// than 1 MiB in the pool of large ones). Free neighbours in a segment join. Where the device has no more, segments that
// are free as a whole go back to it first.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sibyl {

class CachingAllocator {
 public:
  using Block = std::size_t;

  // Bytes that the device has for it; 0: more than enough.
  explicit CachingAllocator(std::int64_t capacity = 0) : capacity_(capacity) {}

  Block take(std::int64_t bytes);
  void give(Block block);

  [[nodiscard]] std::int64_t allocated() const { return allocated_; }  // in blocks
  [[nodiscard]] std::int64_t reserved() const { return reserved_; }    // in segments
  [[nodiscard]] std::int64_t most_reserved() const { return most_reserved_; }
  // It once needed more than the device has: PyTorch would have stopped there.
  [[nodiscard]] bool exhausted() const { return exhausted_; }

 private:
  static constexpr Block none = static_cast<Block>(-1);
  struct Piece {
    std::int64_t bytes = 0;
    bool small = false, free = false;
    Block before = none, after = none;  // in its segment
  };
  struct FreePiece {  // moved as bytes, as a std::pair is not
    std::int64_t bytes = 0;
    Block block = none;
    auto operator<=>(const FreePiece&) const = default;
  };
  using Pool = std::vector<FreePiece>;  // the smallest first

  void put_in(Block block);
  void take_out(Block block);
  Block add(const Piece& piece);
  Block from_segment(std::int64_t bytes, bool small);
  void release_free_segments();
  void split(Block block, std::int64_t bytes);
  void join(Block block, Block after);
  Pool& pool(bool small) { return small ? small_ : large_; }

  std::int64_t capacity_, allocated_ = 0, reserved_ = 0, most_reserved_ = 0;
  bool exhausted_ = false;
  std::vector<Piece> pieces_;
  std::vector<Block> unused_;  // entries of pieces_ that hold nothing any more
  Pool small_, large_;
};

}  // namespace sibyl
