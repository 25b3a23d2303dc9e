#include "profiler/kernel_key.h"

#include <gtest/gtest.h>

#include "profiler/interpolation/cost_key.h"

#include "tests/unit/profiler/parsed_key.h"

namespace sibyl {
namespace {

using test::key;

const std::string convolution =
    "convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)[8x64x56x56,64x64x3x3]->[8x64x56x56]:f32";

TEST(KernelKey, TextFormRoundTrips) {
  for (const std::string& text : {"forward " + convolution, "backward:11 " + convolution, "backward:01 " + convolution})
    EXPECT_EQ(to_string(key(text)), text);
}

TEST(KernelKey, MaskDigitsStandForOperandsFromTheFirst) {
  EXPECT_EQ(key("backward:10 " + convolution).gradients, 1U);
  EXPECT_EQ(key("backward:01 " + convolution).gradients, 2U);
  EXPECT_EQ(key("forward " + convolution).gradients, 0U);
}

TEST(KernelKey, RefusesWhatIsNotAKey) {
  for (const std::string& text :
       {std::string(), std::string("forward"), "sideways " + convolution, "backward " + convolution,
        "backward:1 " + convolution, "backward:111 " + convolution, "backward:1x " + convolution,
        "backward:00 " + convolution, std::string("forward nothing[1]->[1]:f32")})
    EXPECT_FALSE(parse_kernel_key(text)) << text;
}

TEST(KernelKey, PassAndMaskAreParts) {
  const KernelKey forward = key("forward " + convolution), data = key("backward:10 " + convolution),
                  weight = key("backward:01 " + convolution);
  EXPECT_NE(forward, data);
  EXPECT_NE(data, weight);
  EXPECT_NE(hash_value(forward), hash_value(data));
  EXPECT_NE(hash_value(data), hash_value(weight));
}

TEST(KernelKey, WorkIsThatOfThePass) {
  // 2 * N*K*P*Q * C*R*S = 2 * (8*64*56*56) * (64*3*3); each gradient takes as much again.
  const double forward = 2.0 * (8 * 64 * 56 * 56) * (64 * 3 * 3);
  EXPECT_EQ(work_of(key("forward " + convolution), Backend::cuda).flops.value(), forward);
  EXPECT_EQ(work_of(key("backward:01 " + convolution), Backend::cuda).flops.value(), forward);
  EXPECT_EQ(work_of(key("backward:11 " + convolution), Backend::cuda).flops.value(), 2 * forward);
}

TEST(CostKey, IgnoresWhatDoesNotChangeTheTime) {
  using interpolation::cost_key;
  auto same = [](const std::string& a, const std::string& b) { return cost_key(key(a)) == cost_key(key(b)); };
  EXPECT_TRUE(same("forward linear[4x128x512,64x512]->[4x128x64]:f32", "forward linear[512x512,64x512]->[512x64]:f32"));
  EXPECT_TRUE(same("forward unary[4x128]->[4x128]:f32", "forward unary[512]->[512]:f32"));
  EXPECT_TRUE(same("forward attention(scale=0.125)[1x2x8x64,1x2x8x64,1x2x8x64]->[1x2x8x64]:f32",
                   "forward attention[1x2x8x64,1x2x8x64,1x2x8x64]->[1x2x8x64]:f32"));
  EXPECT_TRUE(
      same("backward:010 linear[512x512,64x512,64]->[512x64]:f32", "backward:01 linear[512x512,64x512]->[512x64]:f32"));

  EXPECT_FALSE(same("forward linear[512x512,64x512]->[512x64]:f32", "forward linear[512x512,64x512]->[512x64]:f16"));
  EXPECT_FALSE(same("forward linear[512x512,64x512,64]->[512x64]:f32", "forward linear[512x512,64x512]->[512x64]:f32"));
  EXPECT_FALSE(same("forward binary[4x128,128]->[4x128]:f32", "forward binary[4x128,4x128]->[4x128]:f32"));
  EXPECT_FALSE(same("forward unary(kind=pow,alpha=2)[8]->[8]:f32", "forward unary(kind=pow,alpha=3)[8]->[8]:f32"));
}

}  // namespace
}  // namespace sibyl
