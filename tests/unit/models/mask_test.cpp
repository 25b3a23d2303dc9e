#include "models/mask.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace sibyl {
namespace {

constexpr double low = -std::numeric_limits<double>::infinity();

TEST(Mask, HidesSomethingAndIsZeroElsewhere) {
  EXPECT_TRUE(is_added_mask(std::vector<double>{0, low, 0, -1e4}));
  EXPECT_FALSE(is_added_mask(std::vector<double>{0, 0, 0, 0})) << "a fresh bias";
  EXPECT_FALSE(is_added_mask(std::vector<double>{0, low, 0.1, 0}));
  EXPECT_FALSE(is_added_mask(std::vector<double>{0, -8, 0, 0}));
}

TEST(Mask, IsCausalWhereEachQuerySeesTheKeysUpToItsOwn) {
  const std::vector<double> added = {0, low, low, -0.0, 0, -1e4, 0, 0, 0};
  EXPECT_TRUE(is_causal(added, 3, MaskForm::added));
  const std::vector<double> kept = {1, 0, 0, 1, 1, 0, 1, 1, 1}, hidden = {0, 1, 1, 0, 0, 1, 0, 0, 0};
  EXPECT_TRUE(is_causal(kept, 3, MaskForm::keeps_where_true));
  EXPECT_TRUE(is_causal(hidden, 3, MaskForm::keeps_where_false));
  EXPECT_FALSE(is_causal(kept, 3, MaskForm::keeps_where_false));
  EXPECT_FALSE(is_causal(kept, 3, MaskForm::added));
}

TEST(Mask, IsNotCausalOtherwise) {
  const std::vector<double> two_keys = {0, low, low, 0, 0, low, low, 0, 0};  // two keys at most
  EXPECT_FALSE(is_causal(two_keys, 3, MaskForm::added));
  EXPECT_FALSE(is_causal(std::vector<double>(9, 0.0), 3, MaskForm::added)) << "nothing is hidden";
  EXPECT_FALSE(is_causal(two_keys, 2, MaskForm::added)) << "not 2 x 2";
  EXPECT_FALSE(is_causal(std::vector<double>{}, 0, MaskForm::added));
}

}  // namespace
}  // namespace sibyl
