#include "oracle/memory/heap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace sibyl {
namespace {

TEST(Heap, GrowsAtItsEndWhileNothingFits) {
  Heap heap;
  EXPECT_EQ(heap.take(5000), 0U);
  EXPECT_EQ(heap.take(3000), 5000U);
  EXPECT_EQ(heap.end(), 8000U);
  heap.give(5000);
  EXPECT_EQ(heap.end(), 5000U) << "what lies at the end goes back to it";
}

// Free are 5000 bytes at 0 and 3000 at 6000, between blocks that stay: 2000 go to the smaller one, and leave too little
// of it for a third; 4000 to the larger.
TEST(Heap, TakesTheSmallestBlockThatIsLargeEnough) {
  Heap heap;
  const Heap::Address large = heap.take(5000), wall = heap.take(1000), small = heap.take(3000), end = heap.take(1000);
  heap.give(large);
  heap.give(small);
  EXPECT_EQ(heap.take(2000), small);
  EXPECT_EQ(heap.take(4000), large);
  EXPECT_EQ(heap.take(2000), end + 1000);
  EXPECT_EQ(wall, 5000U);
}

// A block between two that are free makes one of 6000 of them; one beside the end goes back with all that is free
// before it.
TEST(Heap, JoinsWhatLiesSideBySide) {
  Heap heap;
  std::vector<Heap::Address> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(heap.take(2000));
  heap.give(blocks[0]);
  heap.give(blocks[2]);
  heap.give(blocks[1]);
  EXPECT_EQ(heap.take(4000), 0U);
  EXPECT_EQ(heap.take(800), 4000U) << "of the rest";
  heap.give(0);
  heap.give(4000);
  heap.give(blocks[3]);
  EXPECT_EQ(heap.end(), 0U);
}

// To place a block at a multiple of 64 more must be free than it holds.
TEST(Heap, ServesAsMuchAgainOnlyWhereMoreIsFree) {
  Heap heap;
  const Heap::Address first = heap.take(4000), wall = heap.take(1000);
  heap.give(first);
  EXPECT_EQ(heap.take(4000), wall + 1000);
  EXPECT_EQ(heap.take(4000 - Heap::slack), first);
}

TEST(Heap, ForgetsWhatItNeverGave) {
  Heap heap;
  const Heap::Address block = heap.take(4000);
  heap.give(block + 64);
  EXPECT_EQ(heap.end(), 4000U);
  heap.give(block);
  heap.give(block);
  EXPECT_EQ(heap.end(), 0U);
}

// However it is asked: no two blocks that are taken share a byte, none ends behind the heap, and of all that was given
// back nothing is left.
TEST(Heap, NeverGivesAByteTwice) {
  std::mt19937 random(7);
  Heap heap;
  std::map<Heap::Address, std::uint64_t> taken;
  for (int i = 0; i < 20000; ++i) {
    if (taken.size() < 200 && random() % 3 > 0) {
      const std::uint64_t bytes = 1 + random() % 100000;
      const auto [entry, added] = taken.emplace(heap.take(bytes), bytes);
      ASSERT_TRUE(added);
      const auto next = std::next(entry);
      ASSERT_LE(entry->first + bytes, next == taken.end() ? heap.end() : next->first);
      if (entry != taken.begin()) {
        const auto before = std::prev(entry);
        ASSERT_LE(before->first + before->second, entry->first);
      }
    } else if (!taken.empty()) {
      const auto entry = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      heap.give(entry->first);
      taken.erase(entry);
    }
  }
  EXPECT_LT(heap.end(), 200U * 100000U) << "uses again what it was given back";
  for (const auto& [address, bytes] : taken) heap.give(address);
  EXPECT_EQ(heap.end(), 0U);
}

}  // namespace
}  // namespace sibyl
