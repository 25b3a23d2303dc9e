#include "oracle/memory/heap.h"

#include <iterator>

namespace sibyl {

Heap::Address Heap::take(std::uint64_t bytes) {
  const auto fits = sizes_.lower_bound({bytes + slack, 0});
  if (fits == sizes_.end()) {
    const Address address = end_;
    end_ += bytes;
    taken_[address] = bytes;
    return address;
  }
  const auto [all, address] = *fits;
  remove(free_.find(address));
  const bool leaves = all - bytes >= least_rest;
  if (leaves) leave_free(address + bytes, all - bytes);
  taken_[address] = leaves ? bytes : all;
  return address;
}

void Heap::give(Address address) {
  const auto taken = taken_.find(address);
  if (taken == taken_.end()) return;
  std::uint64_t bytes = taken->second;
  taken_.erase(taken);
  auto after = free_.lower_bound(address);
  if (after != free_.begin())
    if (const auto before = std::prev(after); before->first + before->second == address) {
      address = before->first;
      bytes += remove(before);
    }
  if (after != free_.end() && address + bytes == after->first) bytes += remove(after);
  if (address + bytes == end_)
    end_ = address;
  else
    leave_free(address, bytes);
}

void Heap::give_all() { *this = {}; }

void Heap::leave_free(Address address, std::uint64_t bytes) {
  free_.emplace(address, bytes);
  sizes_.emplace(bytes, address);
}

std::uint64_t Heap::remove(FreeBlocks::iterator block) {
  const std::uint64_t bytes = block->second;
  sizes_.erase({bytes, block->first});
  free_.erase(block);
  return bytes;
}

}  // namespace sibyl
