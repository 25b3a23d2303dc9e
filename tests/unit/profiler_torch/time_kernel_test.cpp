// Real kernels on tiny operands: that each family can be timed at all, and what memory it is seen to use. No test
// depends on how fast anything is.
#include "profiler/torch/time_kernel.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <string>

#include "aten/device.h"
#include "profiler/torch/others.h"

namespace sibyl {
namespace {

TimingOptions quick() {
  TimingOptions options;
  options.budget = Seconds{0.0};
  options.lap = Bytes{2e4};
  return options;
}

KernelSample timed(const std::string& text) {
  const auto key = parse_kernel_key(text);
  EXPECT_TRUE(key) << text << ": " << (key ? "" : key.error().message);
  if (!key) return {};
  const auto timing = time_kernel(*key, quick());
  EXPECT_TRUE(timing) << text << ": " << (timing ? "" : to_string(timing.error()));
  return timing ? *timing : KernelSample{};
}

// A kernel must not find another mode, other random numbers or less memory because of what ran before it.
TEST(Others, LeaveEverythingAsItWas) {
  run_others();  // makes its network
  aten::begin_counting();
  const at::NoGradGuard no_gradient;
  at::manual_seed(7);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(7);
  const std::int64_t before = aten::live_bytes();
  run_others();
  EXPECT_EQ(aten::live_bytes(), before);
  EXPECT_FALSE(at::GradMode::is_enabled());
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

class EveryFamily : public testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, is_timed) {
  const KernelSample timing = timed(GetParam());
  EXPECT_GT(timing.time.value(), 0.0);
  EXPECT_LT(timing.time.value(), 10.0);
  EXPECT_GE(timing.runs, 5);
  EXPECT_GE(timing.spread, 0.0);
}

constexpr const char* keys[] = {
    "forward "
    "convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)[2x3x8x8,4x3x3x3,4]->[2x4x8x8]:f32",
    "backward:111 "
    "convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)[2x3x8x8,4x3x3x3,4]->[2x4x8x8]:f32",
    "backward:01 "
    "convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)[2x3x8x8,4x3x3x3]->[2x4x8x8]:f32",
    "forward linear[2x4x16,8x16,8]->[2x4x8]:f32",
    "backward:111 linear[2x4x16,8x16,8]->[2x4x8]:f32",
    "backward:11 linear(weight_kn=1)[4x16,16x8]->[4x8]:f32",
    "forward matmul[2x3x4,2x4x5]->[2x3x5]:f32",
    "backward:11 matmul[2x3x4,2x4x5]->[2x3x5]:f32",
    "forward attention(causal=1,scale=0.5)[1x2x6x4,1x2x6x4,1x2x6x4]->[1x2x6x4]:f32",
    "backward:111 attention(causal=1,scale=0.5)[1x2x6x4,1x2x6x4,1x2x6x4]->[1x2x6x4]:f32",
    "forward normalization[2x4x8x8,4,4,4,4]->[2x4x8x8]:f32",
    "backward:11100 normalization[2x4x8x8,4,4,4,4]->[2x4x8x8]:f32",
    "backward:111 normalization(kind=layer)[2x4x8,8,8]->[2x4x8]:f32",
    "backward:11 normalization(kind=rms)[2x4x8,8]->[2x4x8]:f32",
    "backward:111 normalization(kind=group,groups=2)[2x4x8x8,4,4]->[2x4x8x8]:f32",
    "forward pool(kernel=2x2,stride=2x2,dilation=1x1,pad_begin=0x0,pad_end=0x0)[2x4x8x8]->[2x4x4x4]:f32",
    "backward:1 pool(kernel=2x2,stride=2x2,dilation=1x1,pad_begin=0x0,pad_end=0x0)[2x4x8x8]->[2x4x4x4]:f32",
    "backward:1 pool(kind=average,global=1)[2x4x8x8]->[2x4x1x1]:f32",
    "forward unary[4x32]->[4x32]:f32",
    "backward:1 unary(kind=gelu)[4x32]->[4x32]:f32",
    "backward:1 unary(kind=log)[4x32]->[4x32]:f32",
    "forward binary[4x32,4x32]->[4x32]:f32",
    "backward:11 binary(kind=mul)[4x32,32]->[4x32]:f32",
    "forward binary(kind=less)[4x32,4x32]->[4x32]:f32",
    "backward:011 where[4x32,4x32,4x32]->[4x32]:f32",
    "backward:1 softmax(axis=1)[4x32]->[4x32]:f32",
    "backward:1 dropout[4x32]->[4x32]:f32",
    "forward embedding[10x8,2x3]->[2x3x8]:f32",
    "backward:10 embedding[10x8,2x3]->[2x3x8]:f32",
    "backward:1 reduce(axes=1)[4x32]->[4x1]:f32",
    "forward reduce(kind=argmax,axes=1)[4x32]->[4x1]:f32",
    "backward:1 reshape[4x32]->[128]:f32",
    "backward:1 transpose(permutation=1x0)[4x32]->[32x4]:f32",
    "backward:11 concat(axis=1)[4x32,4x32]->[4x64]:f32",
    "backward:1 slice(axes=1,starts=0,ends=8,steps=1)[4x32]->[4x8]:f32",
    "backward:1 split(axis=1,sizes=16x16)[4x32]->[4x16,4x16]:f32",
    "backward:10 gather(axis=1)[4x32,3]->[4x3]:f32",
    "backward:1 pad(begin=0x1,end=0x1)[4x32]->[4x34]:f32",
    "backward:1 expand[4x1]->[4x32]:f32",
    "backward:1 resize[1x2x4x4]->[1x2x8x8]:f32",
    "forward cast(to=f64)[4x32]->[4x32]:f32",
    "forward copy[4x32]->[4x32]:f32",
    "backward:1 local_response_norm[2x8x4x4]->[2x8x4x4]:f32",
    "forward cross_entropy[4x10,4]->[scalar]:f32",
    "backward:100 class_statistics[4x10,4,4]->[4,4]:f32",
    "forward top_k(k=2)[8x4]->[8x2,8x2]:f32",
    "backward:1 top_k(k=2)[8x4]->[8x2,8x2]:f32",
    "forward dispatch(tokens=8,capacity=4)[8x6,8x2]->[4x4x6,8x2]:f32",
    "backward:10 dispatch(tokens=8,capacity=4)[8x6,8x2]->[4x4x6,8x2]:f32",
    "forward combine(tokens=8,capacity=4)[4x4x6,8x2,8x2]->[8x6]:f32",
    "backward:101 combine(tokens=8,capacity=4)[4x4x6,8x2,8x2]->[8x6]:f32",
    "forward grouped_linear[4x4x6,4x5x6,4x5]->[4x4x5]:f32",
    "backward:01 grouped_linear(weight_kn=1)[4x4x6,4x6x5]->[4x4x5]:f32",
    "backward:10 embedding(partial=1)[10x8,2x3]->[2x3x8]:f32",
    "backward:1 norm_statistics[2x8x4x4]->[2x8]:f32",
    "backward:1 norm_statistics(groups=4)[2x8x4x4]->[2x2x4]:f32",
    "backward:1111 apply_norm[2x8x4x4,2x8,8,8]->[2x8x4x4]:f32",
    "backward:1111 apply_norm(groups=4)[2x8x4x4,2x2x4,8,8]->[2x8x4x4]:f32",
    "backward:10 cross_entropy[4x10,4]->[scalar]:f32",
    "backward:10 mean_squared_error[4x10,4x10]->[scalar]:f32",
    "forward optimizer_update[4x32]->[]:f32",
    "forward optimizer_update(kind=momentum)[4x32]->[]:f32",
    "forward optimizer_update(kind=adam)[4x32]->[]:f32",
    "forward optimizer_update(kind=adamw,weight_decay=1)[4x32]->[]:f32",
};
INSTANTIATE_TEST_SUITE_P(Keys, EveryFamily, testing::ValuesIn(keys));

// In whatever order they take turns.
TEST(Turns, tell_each_kernels_time_or_why_there_is_none) {
  std::vector<KernelKey> of;
  for (const char* text : {"forward unary[4x32]->[4x32]:f32", "backward:1 unary(kind=sign)[4x32]->[5x32]:f32",
                           "forward linear[2x4x16,8x16,8]->[2x4x8]:f32", "forward optimizer_update[4x32]->[]:f32"}) {
    const auto key = parse_kernel_key(text);
    ASSERT_TRUE(key) << text;
    of.push_back(*key);
  }
  of[1].signature.inputs = {{4, 32}, {3, 7}};
  of[1].signature.attributes = Binary{};
  const auto samples = time_kernels(of, quick());
  ASSERT_EQ(samples.size(), of.size());
  for (const std::size_t i : {0U, 2U, 3U}) {
    ASSERT_TRUE(samples[i]);
    EXPECT_EQ(samples[i]->key, of[i]);
    EXPECT_GE(samples[i]->runs, 5);
  }
  ASSERT_FALSE(samples[1]);
  EXPECT_EQ(samples[1].error().where, to_string(of[1]));
}

TEST(Memory, dropout_keeps_a_mask_beyond_operand_and_result) {
  // 1000 f32 of noise: 4000 bytes, rounded up to whole cache lines of 64.
  const KernelSample s = timed("forward dropout[10x100]->[10x100]:f32");
  EXPECT_GE(s.kept.value(), 4000);
  EXPECT_LE(s.kept.value(), 4096);
}

TEST(Memory, relu_keeps_its_result_and_nothing_more) {
  const KernelSample s = timed("forward unary[10x100]->[10x100]:f32");
  EXPECT_EQ(s.kept.value(), 0);
  EXPECT_EQ(s.workspace.value(), 0);
}

TEST(Memory, batch_norm_keeps_mean_and_deviation_of_each_channel) {
  // Two vectors of 64 f32: 512 bytes.
  const KernelSample s = timed("forward normalization[2x64x4x4,64,64,64,64]->[2x64x4x4]:f32");
  EXPECT_GE(s.kept.value(), 512);
  EXPECT_LE(s.kept.value(), 768);
}

TEST(Memory, linear_backward_holds_little_beyond_its_gradients) {
  // Gradients: 64x256, 128x256 and 128 f32. Beyond them at most one more tensor of the largest's size may live.
  const KernelSample s = timed("backward:111 linear[64x256,128x256,128]->[64x128]:f32");
  EXPECT_LE(s.workspace.value(), 128 * 256 * 4);
  EXPECT_EQ(s.kept.value(), 0);
}

// ATen has no padding that differs at the two ends: a transposed convolution of 65 x 65 is cropped to 64 x 64, one
// dimension after the other. Backward makes 64 x 65 of the gradient, and of that 65 x 65, and each is gone when the
// next one is there; then it goes on as if nothing had been cropped. A step does not hold what came in, so neither may
// this.
TEST(Memory, a_gradient_that_came_in_is_gone_after_the_first_node) {
  const std::string convolution = "backward:11 convolution(kernel=3x3,stride=2x2,dilation=1x1,";
  const std::string operands = ",transposed=1)[1x4x32x32,4x4x3x3]->";
  const double whole =
      timed(convolution + "pad_begin=0x0,pad_end=0x0" + operands + "[1x4x65x65]:f32").workspace.value();
  const double cropped =
      timed(convolution + "pad_begin=1x1,pad_end=0x0" + operands + "[1x4x64x64]:f32").workspace.value();
  constexpr double channels = 4 * 4, came_in = channels * 64 * 64, wider = channels * 64 * 65,
                   full = channels * 65 * 65;
  constexpr double results = channels * 32 * 32 + 4 * 4 * 3 * 3 * 4;
  EXPECT_NEAR(cropped, std::max(wider + full - came_in - results, full - came_in + whole), 1024);
}

TEST(Memory, a_view_owns_nothing) {
  const KernelSample s = timed("forward reshape[10x100]->[1000]:f32");
  EXPECT_EQ(s.kept.value(), 0);
  EXPECT_EQ(s.workspace.value(), 0);
}

TEST(Refusal, a_backward_that_does_not_exist_is_an_error_that_names_the_key) {
  const std::string text = "backward:1 reduce(kind=argmax,axes=1)[4x32]->[4x1]:f32";
  const auto timing = time_kernel(*parse_kernel_key(text), quick());
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.error().where, text);
}

TEST(Refusal, operands_that_do_not_fit_are_an_error) {
  const auto timing = time_kernel(*parse_kernel_key("forward matmul[3x4,5x6]->[3x6]:f32"), quick());
  ASSERT_FALSE(timing);
  EXPECT_FALSE(timing.error().message.empty());
}

}  // namespace
}  // namespace sibyl
