#include "oracle/memory/caching_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace sibyl {
namespace {

constexpr std::int64_t mib = 1024 * 1024;

// 100 bytes become 512; both small blocks lie in one segment of 2 MiB.
TEST(CachingAllocator, SmallBlocksShareSegmentsOfTwoMebibytes) {
  CachingAllocator memory;
  memory.take(100);
  EXPECT_EQ(memory.allocated(), 512);
  memory.take(mib);
  EXPECT_EQ(memory.allocated(), 512 + mib);
  EXPECT_EQ(memory.reserved(), 2 * mib);
  memory.take(mib);  // 1 MiB less 512 bytes are left
  EXPECT_EQ(memory.reserved(), 4 * mib);
}

// 2 + 5 + 9 MiB lie in one segment of 20 MiB; of the 4 MiB that are left 3.5 are cut off no more: half a mebibyte is
// not worth a block of the large pool, so the block is the whole 4 MiB.
TEST(CachingAllocator, LargerOnesShareSegmentsOfTwenty) {
  CachingAllocator memory;
  for (const std::int64_t size : {2, 5, 9}) memory.take(size * mib);
  EXPECT_EQ(memory.reserved(), 20 * mib);
  memory.take(7 * mib / 2);
  EXPECT_EQ(memory.reserved(), 20 * mib);
  EXPECT_EQ(memory.allocated(), 20 * mib);
}

// From 10 MiB on a block has its own segment, of whole 2 MiB, unless a free piece is large enough.
TEST(CachingAllocator, TheLargestHaveTheirOwn) {
  CachingAllocator memory;
  const auto odd = memory.take(11 * mib);
  EXPECT_EQ(memory.reserved(), 12 * mib);
  EXPECT_EQ(memory.allocated(), 12 * mib);  // 1 MiB is not cut off
  memory.take(25 * mib);
  EXPECT_EQ(memory.reserved(), 38 * mib);
  memory.give(odd);
  memory.take(10 * mib);  // out of the 12
  EXPECT_EQ(memory.reserved(), 38 * mib);
  EXPECT_EQ(memory.allocated(), 10 * mib + 26 * mib);  // of 25, one of the segment's 26 is not cut off
}

TEST(CachingAllocator, FreeNeighboursJoin) {
  CachingAllocator memory;
  std::vector<CachingAllocator::Block> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(memory.take(4 * mib));
  memory.give(blocks[2]);
  memory.give(blocks[0]);
  memory.give(blocks[1]);  // joins both: 12 MiB
  memory.take(12 * mib);
  EXPECT_EQ(memory.reserved(), 20 * mib);
  EXPECT_EQ(memory.allocated(), 20 * mib);
}

// 8 MiB are free, but apart: 8 MiB in one piece need a further segment.
TEST(CachingAllocator, FragmentsDoNotServe) {
  CachingAllocator memory;
  std::vector<CachingAllocator::Block> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(memory.take(4 * mib));
  memory.give(blocks[0]);
  memory.give(blocks[2]);
  memory.take(8 * mib);
  EXPECT_EQ(memory.reserved(), 40 * mib);
  EXPECT_EQ(memory.allocated(), 20 * mib);
  EXPECT_EQ(memory.most_reserved(), 40 * mib);
}

// 20 MiB that nobody uses go back to the device before 24 are taken of its 30; what holds a block cannot.
TEST(CachingAllocator, GivesFreeSegmentsBackWhenTheDeviceIsFull) {
  CachingAllocator memory(30 * mib);
  memory.give(memory.take(20 * mib));
  const auto kept = memory.take(24 * mib);
  EXPECT_EQ(memory.reserved(), 24 * mib);
  EXPECT_EQ(memory.most_reserved(), 24 * mib);
  EXPECT_FALSE(memory.exhausted());
  memory.give(memory.take(mib));  // a small segment: 26
  memory.take(3 * mib);           // that one goes back; 24 + 20 are more than 30
  EXPECT_TRUE(memory.exhausted());
  memory.give(kept);
}

// Whatever is taken and given, in whatever order: when all is given back, all segments are free as a whole, and one
// block can have the whole device.
RC_GTEST_PROP(CachingAllocator, LosesNothing, ()) {
  constexpr std::int64_t device = std::int64_t{1} << 40;
  CachingAllocator memory(device);
  std::vector<CachingAllocator::Block> blocks;
  std::int64_t most = 0;
  const auto steps = *rc::gen::container<std::vector<std::pair<bool, int>>>(
      rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::inRange(1, 40'000)));
  for (const auto& [give, kilobytes] : steps) {
    if (give && !blocks.empty()) {
      const std::size_t which = static_cast<std::size_t>(kilobytes) % blocks.size();
      memory.give(blocks[which]);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      blocks.push_back(memory.take(kilobytes * 1024));
    }
    most = std::max(most, memory.allocated());
    RC_ASSERT(memory.allocated() <= memory.reserved());
  }
  RC_ASSERT(memory.most_reserved() >= most);
  for (const auto block : blocks) memory.give(block);
  RC_ASSERT(memory.allocated() == 0);
  memory.take(device);
  RC_ASSERT(memory.reserved() == device);
  RC_ASSERT(!memory.exhausted());
}

}  // namespace
}  // namespace sibyl
