// Where elements lie, found the quick way and the plain one. Needs no device.
#include "profiler/cudnn/offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace sibyl::cudnn {
namespace {

TEST(Divider, DividesAsDivisionDoes) {
  constexpr std::uint32_t most = 0x7fffffff;  // 2^31 - 1
  for (const std::uint32_t by : {1U, 2U, 3U, 5U, 7U, 10U, 64U, 641U, 65535U, 65537U, 1000000007U, most, most + 1}) {
    const Divider divider(by);
    for (const std::uint32_t n : {0U, 1U, 2U, 6U, 7U, 63U, 64U, 65U, 12345678U, most - 1, most})
      EXPECT_EQ(divider.quotient(n), n / by) << n << " / " << by;
    for (std::uint32_t times = 1; times < 1000 && times <= most / by; ++times) {  // on either side of a step
      EXPECT_EQ(divider.quotient(times * by), times);
      EXPECT_EQ(divider.quotient(times * by - 1), times - 1);
    }
  }
}

Strides strides_from(std::initializer_list<std::int64_t> extents, std::initializer_list<std::int64_t> a,
                     std::initializer_list<std::int64_t> b) {
  Strides s;
  s.rank = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), s.extent);
  std::copy(a.begin(), a.end(), s.a);
  std::copy(b.begin(), b.end(), s.b);
  return s;
}

const std::vector<Strides>& examples() {
  static const std::vector<Strides> all{
      strides_from({4, 5, 6}, {30, 6, 1}, {0, 0, 1}),   // a vector along the last dimension
      strides_from({4, 5, 6}, {30, 6, 1}, {0, 1, 0}),   // along the middle
      strides_from({4, 5, 6}, {30, 6, 1}, {30, 6, 1}),  // nothing to broadcast
      strides_from({3, 1, 7, 1}, {7, 7, 1, 1}, {1, 0, 0, 0}),
      strides_from({4, 2, 3}, {1, 12, 4}, {6, 3, 1}),  // a transposition
      strides_from({2, 2, 2, 2, 2, 2, 2, 2}, {128, 0, 32, 0, 8, 0, 2, 0}, {0, 64, 0, 16, 0, 4, 0, 1}),
      strides_from({}, {}, {}),
      strides_from({1, 1}, {1, 1}, {0, 0}),
  };
  return all;
}

TEST(Offsets, AreThoseOfTheDimensionsAsTheyWere) {
  for (const Strides& s : examples()) {
    std::int64_t count = 1;
    for (int d = 0; d < s.rank; ++d) count *= s.extent[d];
    const Strides few = joined(s);
    ASSERT_TRUE(is_narrow(few));
    const NarrowOffsets narrow(few);
    const WideOffsets wide{few};
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, a = 0, b = 0;
      for (int d = s.rank - 1; d >= 0; --d) {
        a += rest % s.extent[d] * s.a[d], b += rest % s.extent[d] * s.b[d];
        rest /= s.extent[d];
      }
      ASSERT_EQ(wide.at(i).a, a);
      ASSERT_EQ(wide.at(i).b, b);
      ASSERT_EQ(narrow.at(i).a, a);
      ASSERT_EQ(narrow.at(i).b, b);
    }
  }
}

TEST(Offsets, NeighboursThatLieOneAfterAnotherAreOneDimension) {
  const std::vector<int> ranks{2, 3, 1, 2, 2, 8, 1, 1};
  ASSERT_EQ(examples().size(), ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(joined(examples()[i]).rank, ranks[i]) << i;
}

TEST(Offsets, AreWideBeyond31Bits) {
  const std::int64_t gibi = std::int64_t{1} << 30;
  EXPECT_TRUE(is_narrow(strides_from({gibi}, {1}, {1})));
  EXPECT_FALSE(is_narrow(strides_from({2 * gibi}, {1}, {0})));
  EXPECT_FALSE(is_narrow(strides_from({2, 4}, {1, 1}, {2 * gibi, 1})));  // few elements, far apart
  const WideOffsets wide{joined(strides_from({4, gibi}, {gibi, 1}, {1, 0}))};
  EXPECT_EQ(wide.at(3 * gibi + 5).a, 3 * gibi + 5);
  EXPECT_EQ(wide.at(3 * gibi + 5).b, 3);
}

}  // namespace
}  // namespace sibyl::cudnn
