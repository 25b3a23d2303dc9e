#include "base/result.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail("not even", "value", "double it");
  return value / 2;
}
Result<int> quarter(int value) {
  SIBYL_TRY(const int h, half(value));
  SIBYL_TRY(const int q, half(h));
  return q;
}
Result<void> check(int value) {
  SIBYL_CHECK(quarter(value));
  return {};
}

TEST(Result, ErrorsPassThroughUnchanged) {
  EXPECT_EQ(quarter(8), 2);
  const auto bad = quarter(6);  // 3 is not even
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error(), (Error{ErrorCode::bad_input, "not even", "value", "double it"}));
  EXPECT_TRUE(check(8));
  EXPECT_EQ(check(6).error(), bad.error());
}

TEST(Result, ExitCodes) {
  EXPECT_EQ(exit_code(ErrorCode::usage), 2);
  EXPECT_EQ(exit_code(ErrorCode::bad_input), 3);
  EXPECT_EQ(exit_code(ErrorCode::infeasible), 4);
  EXPECT_EQ(exit_code(ErrorCode::validation_failed), 5);
  EXPECT_EQ(exit_code(ErrorCode::interrupted), 130);
}

TEST(Result, OneLineWithThePartsThereAre) {
  EXPECT_EQ(to_string(Error{ErrorCode::bad_input, "not a size", "$.memory", "write 16GiB"}),
            "sibyl: $.memory: not a size (write 16GiB)");
  EXPECT_EQ(to_string(Error{ErrorCode::usage, "no such verb", "", ""}), "sibyl: no such verb");
}

}  // namespace
}  // namespace sibyl
