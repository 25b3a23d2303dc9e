#include "base/units.h"

#include <gtest/gtest.h>

#include <concepts>
#include <unordered_set>

#include "base/id.h"

namespace sibyl {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };

static_assert(Addable<Seconds, Seconds>);
static_assert(!Addable<Seconds, Bytes>);
static_assert(!Addable<Seconds, double>);
static_assert(!std::convertible_to<double, Seconds>);

TEST(Units, DividingGivesTheQuantityItShould) {
  EXPECT_EQ(Bytes{1e9} / BytesPerSecond{1e10}, Seconds{0.1});
  EXPECT_EQ(Bytes{1e9} / Seconds{0.1}, BytesPerSecond{1e10});
  EXPECT_EQ(BytesPerSecond{1e9} * Seconds{2}, Bytes{2e9});
  EXPECT_EQ(Flops{3e12} / FlopsPerSecond{1e12}, Seconds{3});
  EXPECT_EQ(Seconds{3} / Seconds{2}, 1.5);
}

TEST(Units, Arithmetic) {
  Seconds t{1};
  t += Seconds{2};
  t *= 4;
  t -= Seconds{2};
  t /= 5;
  EXPECT_EQ(t, Seconds{2});
  EXPECT_LT(-t, t);
  EXPECT_EQ(2.0 * t + t / 2.0, Seconds{5});
}

TEST(Ids, AnUnsetIdIsInvalidAndDiffersFromTheFirst) {
  using TestId = Id<struct TestTag>;
  EXPECT_FALSE(TestId{}.valid());
  EXPECT_TRUE(TestId{0}.valid());
  EXPECT_NE(TestId{}, TestId{0});
  EXPECT_LT(TestId{1}, TestId{2});
  const std::unordered_set<TestId> set = {TestId{1}, TestId{2}, TestId{1}};
  EXPECT_EQ(set.size(), 2U);
}

}  // namespace
}  // namespace sibyl
