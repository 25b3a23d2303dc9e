#include "trainer/processor_use.h"

#include <gtest/gtest.h>

namespace sibyl::trainer {
namespace {

// user 10, nice 2, system 5, idle 70, iowait 3, irq 1, softirq 4, steal 5: all 100, of which idle and iowait 73. What
// guests use is in user's.
TEST(ProcessorUse, ReadsTheFirstLine) {
  const auto time = parse_processor_time("cpu  10 2 5 70 3 1 4 5 8 0\ncpu0 5 1 2 35 1 0 2 2 4 0\n");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->all, 100);
  EXPECT_EQ(time->busy, 27);
  EXPECT_FALSE(parse_processor_time(""));
  EXPECT_FALSE(parse_processor_time("cpu 1 2 3"));
  EXPECT_FALSE(parse_processor_time("cpu0 10 2 5 70 3 1 4 5"));
  EXPECT_FALSE(parse_processor_time("cpu a b c d e f g h"));
}

TEST(ProcessorUse, SharesLieBetweenTwoMoments) {
  const ProcessorTime from{27, 100}, to{57, 140};  // 30 of 40 ticks
  EXPECT_DOUBLE_EQ(*busy_share(from, to), 0.75);
  EXPECT_FALSE(busy_share(from, from));
  EXPECT_FALSE(busy_share(std::nullopt, to));
  EXPECT_FALSE(busy_share(from, std::nullopt));
}

TEST(ProcessorUse, ThisMachineTells) {
  const auto now = processor_time();
  ASSERT_TRUE(now);
  EXPECT_GT(now->all, now->busy);
  EXPECT_GT(now->busy, 0);
}

}  // namespace
}  // namespace sibyl::trainer
