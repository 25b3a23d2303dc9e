// Work that can be given up ends whenever it is told to, and asks often enough to be told.
#pragma once

#include <gtest/gtest.h>

#include "base/cancelled.h"

namespace sibyl::test {

// `work(cancelled)` gives a Result. It is begun once for each time that it asks, with that answered by yes, and once
// more with none.
template <class Work>
void expect_ends_when_cancelled(Work work) {
  std::size_t asked = 0;
  ASSERT_TRUE(work([&asked] { return ++asked == 0; }).has_value());
  ASSERT_GT(asked, 2U);
  for (std::size_t last = 1; last <= asked; ++last) {
    std::size_t n = 0;
    const auto result = work([&n, last] { return ++n >= last; });
    ASSERT_FALSE(result.has_value()) << "the " << last << "th of " << asked;
    EXPECT_EQ(result.error().code, ErrorCode::interrupted);
    EXPECT_LE(n, last + 4) << "it went on";
  }
}

}  // namespace sibyl::test
