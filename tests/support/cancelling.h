// Work that can be given up ends whenever it is told to, and asks often enough to be told.
#pragma once

#include <gtest/gtest.h>

#include "base/cancelled.h"

namespace sibyl::test {

// How often work(cancelled), which gives a Result, asks when it is let be.
template <class Work>
std::size_t times_asked(Work work) {
  std::size_t asked = 0;
  EXPECT_TRUE(work([&asked] { return ++asked == 0; }).has_value());
  return asked;
}

// It is begun once for each time that it asks, with that answered by yes, and once more with none. On its way out it
// may ask again: each simulation that it still begins does so once.
template <class Work>
void expect_ends_when_cancelled(Work work) {
  const std::size_t asked = times_asked(work);
  ASSERT_GT(asked, 2U);
  for (std::size_t last = 1; last <= asked; ++last) {
    std::size_t n = 0;
    const auto result = work([&n, last] { return ++n >= last; });
    ASSERT_FALSE(result.has_value()) << "the " << last << "th of " << asked;
    EXPECT_EQ(result.error().code, ErrorCode::interrupted);
    EXPECT_LE(n, last + 8) << "it went on";
  }
}

}  // namespace sibyl::test
