#include "oracle/memory/caching_allocator.h"

#include <algorithm>

namespace sibyl {
namespace {

constexpr std::int64_t mebibyte = 1024 * 1024;
constexpr std::int64_t granule = 512;
constexpr std::int64_t largest_small = mebibyte;
constexpr std::int64_t small_segment = 2 * mebibyte;
constexpr std::int64_t shared_segment = 20 * mebibyte;
constexpr std::int64_t least_of_its_own = 10 * mebibyte;
constexpr std::int64_t own_segment_granule = 2 * mebibyte;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

std::int64_t segment_bytes(std::int64_t bytes) {
  if (bytes <= largest_small) return small_segment;
  return bytes < least_of_its_own ? shared_segment : rounded_up(bytes, own_segment_granule);
}

}  // namespace

CachingAllocator::Block CachingAllocator::take(std::int64_t bytes) {
  bytes = std::max(granule, rounded_up(bytes, granule));
  const bool small = bytes <= largest_small;
  Pool& free = pool(small);
  const auto fitting = std::ranges::lower_bound(free, FreePiece{bytes, 0});
  Block block = none;
  if (fitting != free.end()) {
    block = fitting->block;
    free.erase(fitting);
  } else {
    block = from_segment(bytes, small);
  }
  split(block, bytes);
  pieces_[block].free = false;
  allocated_ += pieces_[block].bytes;
  return block;
}

void CachingAllocator::give(Block block) {
  allocated_ -= pieces_[block].bytes;
  const auto is_free = [&](Block neighbour) { return neighbour != none && pieces_[neighbour].free; };
  if (const Block after = pieces_[block].after; is_free(after)) {
    take_out(after);
    join(block, after);
  }
  if (const Block before = pieces_[block].before; is_free(before)) {
    take_out(before);
    join(before, block);
    block = before;
  }
  pieces_[block].free = true;
  put_in(block);
}

void CachingAllocator::put_in(Block block) {
  Pool& free = pool(pieces_[block].small);
  const FreePiece piece{pieces_[block].bytes, block};
  free.insert(std::ranges::lower_bound(free, piece), piece);
}

void CachingAllocator::take_out(Block block) {
  Pool& free = pool(pieces_[block].small);
  free.erase(std::ranges::lower_bound(free, FreePiece{pieces_[block].bytes, block}));
}

CachingAllocator::Block CachingAllocator::add(const Piece& piece) {
  if (unused_.empty()) {
    pieces_.push_back(piece);
    return pieces_.size() - 1;
  }
  const Block block = unused_.back();
  unused_.pop_back();
  pieces_[block] = piece;
  return block;
}

CachingAllocator::Block CachingAllocator::from_segment(std::int64_t bytes, bool small) {
  const std::int64_t segment = segment_bytes(bytes);
  if (capacity_ > 0 && reserved_ + segment > capacity_) release_free_segments();
  reserved_ += segment;
  exhausted_ = exhausted_ || (capacity_ > 0 && reserved_ > capacity_);
  most_reserved_ = std::max(most_reserved_, reserved_);
  return add({segment, small});
}

void CachingAllocator::release_free_segments() {
  for (Pool* free : {&small_, &large_})
    std::erase_if(*free, [&](const FreePiece& entry) {
      const Piece& piece = pieces_[entry.block];
      if (piece.before != none || piece.after != none) return false;
      reserved_ -= piece.bytes;
      unused_.push_back(entry.block);
      return true;
    });
}

// What `block` has beyond `bytes` becomes a free piece of its own.
void CachingAllocator::split(Block block, std::int64_t bytes) {
  const std::int64_t left = pieces_[block].bytes - bytes;
  const bool small = pieces_[block].small;
  if (small ? left < granule : left <= largest_small) return;
  const Block after = pieces_[block].after;
  const Block rest = add({left, small, true, block, after});
  if (after != none) pieces_[after].before = rest;
  pieces_[block].after = rest;
  pieces_[block].bytes = bytes;
  put_in(rest);
}

void CachingAllocator::join(Block block, Block after) {
  pieces_[block].bytes += pieces_[after].bytes;
  pieces_[block].after = pieces_[after].after;
  if (pieces_[after].after != none) pieces_[pieces_[after].after].before = block;
  unused_.push_back(after);
}

}  // namespace sibyl
