#include "calibration/turns.h"

#include <gtest/gtest.h>

#include <vector>

namespace sibyl {
namespace {

// Of 4 MB: x and y of half a million numbers each.
std::vector<KernelKey> keys(std::size_t count) {
  const auto key = parse_kernel_key("forward unary[500000]->[500000]:f32");
  EXPECT_TRUE(key);
  return std::vector<KernelKey>(count, *key);
}

constexpr Bytes much{1e12};

TEST(Turns, AreAsManyAsTouchALap) {
  EXPECT_EQ(in_turn(keys(10), Bytes{16e6}, much), 4U);
  EXPECT_EQ(in_turn(keys(10), Bytes{15e6}, much), 4U);
  EXPECT_EQ(in_turn(keys(3), Bytes{16e6}, much), 3U) << "there are no more";
  EXPECT_EQ(in_turn(keys(10), Bytes{0}, much), 1U) << "each by itself";
}

TEST(Turns, AreNoMoreThanMemoryHolds) {
  EXPECT_EQ(in_turn(keys(10), Bytes{16e6}, Bytes{13e6}), 2U) << "with what operands are made from";
  EXPECT_EQ(in_turn(keys(10), Bytes{16e6}, Bytes{1e6}), 1U) << "one must do";
}

TEST(Turns, AreBounded) { EXPECT_EQ(in_turn(keys(100), Bytes{1e9}, much), most_in_turn); }

// Of a million numbers: x, its gradient, and twice as much of y; parameter, gradient, momentum; and Adam's two states.
TEST(Turns, CountOperandsOnce) {
  const auto bytes = [](const char* text) {
    const auto key = parse_kernel_key(text);
    return key ? operand_bytes(*key) : Bytes{};
  };
  EXPECT_EQ(timed_bytes(*parse_kernel_key("backward:1 unary[1000000]->[1000000]:f32")), Bytes{20e6});
  EXPECT_EQ(timed_bytes(*parse_kernel_key("forward unary[1000000]->[2000000]:f32")), Bytes{16e6});
  EXPECT_EQ(timed_bytes(*parse_kernel_key("forward optimizer_update[1000000]->[]:f32")), Bytes{8e6});
  EXPECT_EQ(bytes("backward:1 unary[1000000]->[1000000]:f32"), Bytes{16e6});
  EXPECT_EQ(bytes("forward optimizer_update[1000000]->[]:f32"), Bytes{8e6});
  EXPECT_EQ(bytes("forward optimizer_update(kind=momentum)[1000000]->[]:f32"), Bytes{12e6});
  EXPECT_EQ(bytes("forward optimizer_update(kind=adam)[1000000]->[]:f32"), Bytes{16e6});
}

}  // namespace
}  // namespace sibyl
