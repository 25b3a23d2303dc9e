#include "profiler/cudnn/rotation.h"

#include <gtest/gtest.h>

namespace sibyl::cudnn {
namespace {

constexpr Bytes much{2e9};

TEST(Rotation, small_operands_are_padded_to_more_than_twice_the_cache) {
  // 16 copies (the most) of 1 kB touch 16 kB; padding must make up what lacks to 2 x 1 MB.
  const Rotation r = plan_rotation(Bytes{1e3}, Bytes{1e6}, much);
  EXPECT_EQ(r.copies, 16);
  EXPECT_GT(r.lap.value(), 2e6);
  EXPECT_NEAR(r.padding.value(), 2e6 / 16 - 1e3, 1.0);
}

TEST(Rotation, copies_alone_suffice_where_they_are_large) {
  // ceil(2 MB / 0.3 MB) = 7 copies are 2.1 MB: no padding.
  const Rotation r = plan_rotation(Bytes{3e5}, Bytes{1e6}, much);
  EXPECT_EQ(r.copies, 7);
  EXPECT_EQ(r.padding.value(), 0.0);
  EXPECT_DOUBLE_EQ(r.lap.value(), 2.1e6);
}

TEST(Rotation, operands_beyond_twice_the_cache_need_no_second_copy) {
  EXPECT_EQ(plan_rotation(Bytes{5e6}, Bytes{1e6}, much).copies, 1);
}

TEST(Rotation, memory_bounds_copies_and_padding_makes_up) {
  const Rotation r = plan_rotation(Bytes{3e5}, Bytes{1e6}, Bytes{6e5});
  EXPECT_EQ(r.copies, 2);
  EXPECT_GT(r.lap.value(), 2e6);
}

}  // namespace
}  // namespace sibyl::cudnn
