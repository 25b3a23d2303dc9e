#include "trainer/processor_time.h"

#include <gtest/gtest.h>

namespace sibyl::trainer {
namespace {

// 100 + 5 + 20 + 2 + 3 + 10 = 140 of 140 + 800 + 60 = 1000; guests' 50 are among the user's 100.
TEST(ProcessorTime, IsAllButIdleAndWaitingForDisks) {
  const auto time = parse_processor_time("cpu  100 5 20 800 60 2 3 10 50 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(time->busy, 140);
  EXPECT_EQ(time->all, 1000);
}

TEST(ProcessorTime, IsNotGuessed) {
  for (const char* stat : {"", "cpu", "cpu 1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 x 4 5 6 7 8"})
    EXPECT_FALSE(parse_processor_time(stat).has_value()) << stat;
  EXPECT_FALSE(busy_share(std::nullopt, ProcessorTime{1, 2}).has_value());
  EXPECT_FALSE(busy_share(ProcessorTime{1, 2}, ProcessorTime{1, 2}).has_value());
}

TEST(ProcessorTime, BetweenTwoMomentsIsAShare) {
  EXPECT_EQ(busy_share(ProcessorTime{140, 1000}, ProcessorTime{200, 1080}), 0.75);
  EXPECT_EQ(busy_share(ProcessorTime{140, 1000}, ProcessorTime{141, 1000.5}), 1.0);  // idle time went back
}

// Of this host, which does something just now.
TEST(ProcessorTime, GoesOn) {
  const auto from = processor_time();
  if (!from || from->all == 0) GTEST_SKIP() << "the system does not tell";
  std::optional<double> share;
  for (int tries = 0; tries < 1'000'000 && share.value_or(0) == 0; ++tries) share = busy_share(from, processor_time());
  EXPECT_GT(share.value_or(0), 0);
}

}  // namespace
}  // namespace sibyl::trainer
