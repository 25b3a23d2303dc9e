#include "profiler/kernel_template.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

TEST(KernelTemplate, WritesSizesIntoItsShapes) {
  const auto linear = KernelTemplate::parse("forward linear[$0x$2,$1x$2]->[$0x$1]:bf16");
  ASSERT_TRUE(linear) << to_string(linear.error());
  EXPECT_EQ(linear->size_count(), 3U);
  const std::int64_t sizes[] = {512, 4096, 1024};
  EXPECT_EQ(to_string(linear->with(sizes)), "forward linear[512x1024,4096x1024]->[512x4096]:bf16");
}

TEST(KernelTemplate, KeepsWhatIsWrittenOut) {
  const auto backward = KernelTemplate::parse(
      "backward:01 convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)"
      "[$0x$1x8x8,64x$1x3x3]->[$0x64x8x8]:f32");
  ASSERT_TRUE(backward);
  const std::int64_t sizes[] = {2, 16};
  EXPECT_EQ(to_string(backward->with(sizes)),
            "backward:01 convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)"
            "[2x16x8x8,64x16x3x3]->[2x64x8x8]:f32");
}

TEST(KernelTemplate, RefusesWhatIsNone) {
  EXPECT_FALSE(KernelTemplate::parse("forward copy[$x2]->[2]:f32"));    // no number
  EXPECT_FALSE(KernelTemplate::parse("forward copy[$99]->[$99]:f32"));  // nobody has a hundred sizes
  EXPECT_FALSE(KernelTemplate::parse("forward abacus[$0]->[$0]:f32"));
  EXPECT_FALSE(KernelTemplate::parse("forward copy(kind=$0)[2]->[2]:f32"));  // sizes stand in shapes only
}

}  // namespace
}  // namespace sibyl
