// FLOPs and bytes, derived by hand in the comments. f32: 4 bytes an element.
#include <gtest/gtest.h>

#include "tests/unit/models/training/rules_of.h"

namespace sibyl {
namespace {

using test::first;
using test::rule_of;
using test::second;
using test::third;

Work work(double flops, double read, double written) { return {Flops{flops}, Bytes{read}, Bytes{written}}; }

// ResNet's first convolution: 2 x 64 x 3 x 7 x 7 x 112 x 112 = 236,027,904.
const std::string conv1 =
    "convolution(kernel=7x7,stride=2x2,dilation=1x1,pad_begin=3x3,pad_end=3x3)"
    "[1x3x224x224,64x3x7x7]->[1x64x112x112]:f32";

TEST(ConvolutionWork, ResNetsFirst) {
  // x 3*224*224 = 150,528; w 64*3*49 = 9,408; y 64*112*112 = 802,816 elements.
  EXPECT_EQ(rule_of(conv1).forward, work(236'027'904, (150'528 + 9'408) * 4, 802'816 * 4));
}

TEST(ConvolutionWork, TheFirstLayerComputesItsWeightsGradientAlone) {
  EXPECT_EQ(rule_of(conv1, second).backward, work(236'027'904, (802'816 + 150'528) * 4, 9'408 * 4));
  EXPECT_EQ(rule_of(conv1, first | second).backward.flops, Flops{2 * 236'027'904.0});
}

TEST(ConvolutionWork, DepthwiseMeetsOneChannel) {  // y 32*14*14 = 6,272; 9 taps: 2 * 6,272 * 1 * 9
  const auto r = rule_of(
      "convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1,groups=32)"
      "[1x32x14x14,32x1x3x3]->[1x32x14x14]:f32");
  EXPECT_EQ(r.forward.flops, Flops{112'896});
}

TEST(ConvolutionWork, TransposedCountsItsInput) {  // 2 * (8*4*4 inputs) * 16 channels out * 4 taps = 16,384
  const auto r = rule_of(
      "convolution(kernel=2x2,stride=2x2,dilation=1x1,pad_begin=0x0,pad_end=0x0,transposed=1)"
      "[1x8x4x4,8x16x2x2]->[1x16x8x8]:f32");
  EXPECT_EQ(r.forward.flops, Flops{16'384});
}

TEST(LinearWork, WithBias) {  // 8 x 2048 -> 1000: 2*8*2048*1000 = 32,768,000, and 8,000 for the bias
  const auto r = rule_of("linear[8x2048,1000x2048,1000]->[8x1000]:f32", first | second | third);
  EXPECT_EQ(r.forward, work(32'776'000, (16'384 + 2'048'000 + 1'000) * 4, 32'000));
  // dx reads dy and w; dw reads dy and x; the bias sums dy.
  EXPECT_EQ(r.backward, work(2 * 32'768'000.0 + 8'000, (8'000 + 2'048'000 + 8'000 + 16'384 + 8'000) * 4,
                             (16'384 + 2'048'000 + 1'000) * 4));
}

TEST(MatMulWork, Batched) {  // 2 x 3 matrices: 2 * (2*3*4*5) * 6 = 1,440
  const auto r = rule_of("matmul[2x3x4x6,2x3x6x5]->[2x3x4x5]:f32", first | second);
  EXPECT_EQ(r.forward, work(1'440, (144 + 180) * 4, 120 * 4));
  EXPECT_EQ(r.backward.flops, Flops{2'880});
}

// 12 elements of 4 bytes. Summed: an addition each, read and written once. Backward turns, sums and turns back. From the
// other end forward turns twice as well, and to leave out the element itself it is subtracted, backward from sums.
TEST(RunningSumWork, ByItsDirections) {
  const auto plain = rule_of("running_sum(axis=1)[3x4]->[3x4]:f32", first);
  EXPECT_EQ(plain.forward, work(12, 48, 48));
  EXPECT_EQ(plain.backward, work(12, 3 * 48, 3 * 48));
  const auto all = rule_of("running_sum(axis=1,reverse=1,exclusive=1)[3x4]->[3x4]:f32", first);
  EXPECT_EQ(all.forward, work(24, 48 + 2 * 48 + 2 * 48, 48 + 2 * 48 + 48));
  EXPECT_EQ(all.backward, work(24 + 12, 5 * 48 + 2 * 48 + 48, 4 * 48 + 2 * 48 + 48));
}

// A part of 8 of 16 elements, 4 bytes each, read and written: taken apart, all of them and one part; put together, the
// part and all of them; and both without a part of one's own, twice all of x.
TEST(PackingWork, WhatIsCopied) {
  EXPECT_EQ(rule_of("packing(apart=1)[2x4x2]->[2x2x2]:f32", 0).forward, work(0, (16 + 8) * 4, (16 + 8) * 4));
  EXPECT_EQ(rule_of("packing(together=1)[2x2x2]->[2x4x2]:f32", 0).forward, work(0, (8 + 16) * 4, (8 + 16) * 4));
  EXPECT_EQ(rule_of("packing(apart=0,together=1)[4x2]->[2x4]:f32", 0).forward, work(0, 16 * 4, 16 * 4));
}

// Own rows of 12 elements, read and written once, and a slab of one row of 3, or two, twice.
TEST(HaloPackingWork, OwnRowsAndSlabs) {
  EXPECT_EQ(rule_of("halo_packing(before=1)[1x4x3]->[1x5x3]:f32", 0).forward, work(0, (12 + 6) * 4, (12 + 6) * 4));
  EXPECT_EQ(rule_of("halo_packing(before=1,after=1,sums=1)[1x6x3]->[1x4x3]:f32", 0).forward,
            work(6, (12 + 12) * 4, (12 + 12) * 4));
}

// 2 x 3 of 2 x 5: 6 numbers of 8 bytes and 6 elements of 4 are read, and backward the zeros of x's size written.
TEST(GatherElementsWork, ReadsIndices) {
  const auto r = rule_of("gather_elements(axis=1)[2x5,2x3]->[2x3]:f32", first);
  EXPECT_EQ(r.forward, work(0, 24 + 48, 24));
  EXPECT_EQ(r.backward, work(6, 24 + 48, 40));
}

// Three experts with 5 slots each: 2 * 15 * 4 * 6 = 720, and 90 for the biases.
TEST(GroupedLinearWork, AProductForEachExpert) {
  const auto r = rule_of("grouped_linear[3x5x4,3x6x4,3x6]->[3x5x6]:f32", first | second | third);
  EXPECT_EQ(r.forward, work(720 + 90, (60 + 72 + 18) * 4, 90 * 4));
  EXPECT_EQ(r.backward, work(1'440 + 90, (90 + 72 + 90 + 60 + 90) * 4, (60 + 72 + 18) * 4));
}

// 6 tokens of width 4, 2 choices each; 3 experts with 5 slots: 60 numbers move, 12 choices and 15 tokens' numbers of 8
// bytes are read and written. Backward adds 60 numbers into 24.
TEST(DispatchWork, MovesSlotsNotTokens) {
  const auto r = rule_of("dispatch(tokens=6,capacity=5)[6x4,6x2]->[3x5x4,6x2]:f32", first);
  EXPECT_EQ(r.forward, work(0, 60 * 4 + 12 * 8 + 15 * 8, 60 * 4 + 12 * 8 + 15 * 8));
  EXPECT_EQ(r.backward, work(60, 60 * 4 + 15 * 8, 24 * 4));
}

// 12 rows of 4 are weighted and added: 2 * 48. Backward, slots take 48 products; weights sum 48 more.
TEST(CombineWork, WeighsWhatWasChosen) {
  const auto r = rule_of("combine(tokens=6,capacity=5)[3x5x4,6x2,6x2]->[6x4]:f32", first | third);
  EXPECT_EQ(r.forward, work(96, 48 * 4 + 12 * 8 + 12 * 4, 24 * 4));
  EXPECT_EQ(r.backward, work(48 + 96, (24 + 12) * 4 + 12 * 8 + (48 + 24) * 4 + 12 * 8, 60 * 4 + 12 * 4));
}

// Of 20,000 and more the k-th is found in four passes, and then all are gone through once more.
TEST(TopKWork, ReadsLongRowsFiveTimes) {
  const auto read = [](const std::string& row) { return rule_of("top_k(k=7)[" + row + "]->[7,7]:f32", 0).forward.read; };
  EXPECT_EQ(read("19999"), Bytes{19'999 * 4});
  EXPECT_EQ(read("20000"), Bytes{5 * 20'000 * 4});
}

TEST(TopKWork, ReadsAllWritesFew) {  // of 6 x 8 the 2 greatest: 12, and where they were
  const auto r = rule_of("top_k(k=2)[6x8]->[6x2,6x2]:f32", first);
  EXPECT_EQ(r.forward, work(48, 48 * 4, 12 * 4 + 12 * 8));
  EXPECT_EQ(r.backward, work(0, 12 * 4 + 12 * 8, 48 * 4));
}

// B 2, H 3, S = T 8, D 4: scores 384, each product 2 * 384 * 4 = 3,072; q, k, v, y 192 elements each.
const std::string attention = "attention(scale=0.5)[2x3x8x4,2x3x8x4,2x3x8x4]->[2x3x8x4]:f32";

TEST(AttentionWork, OnTheCpuIsFourCallsForward) {
  // scale 192; product 3,072; softmax 5 * 384; product 3,072.
  const auto r = rule_of(attention, 7);
  EXPECT_EQ(r.forward.flops, Flops{192 + 3'072 + 1'920 + 3'072});
  EXPECT_EQ(r.forward.read, Bytes{(192 + 384 + 384 + 384 + 192) * 4});
  EXPECT_EQ(r.forward.written, Bytes{(192 + 384 + 384 + 192) * 4});
  EXPECT_EQ(r.backward.flops, Flops{4 * 3'072 + 4 * 384 + 192});
}

TEST(AttentionWork, OnCudaReadsNoScores) {
  const auto r = rule_of(attention, 7, Backend::cuda);
  EXPECT_EQ(r.forward, work(2 * 3'072 + 5 * 384, 3 * 192 * 4, 192 * 4 + 48 * 4));  // 48 rows' log-sum-exp
  EXPECT_EQ(r.backward.flops, Flops{5 * 3'072 + 5 * 384});                         // scores recomputed
}

// The gradient of 384 scores is written out: that of a mask of their shape, or summed to one that all samples share.
TEST(AttentionWork, OnCudaALearnedMaskWritesScores) {
  const auto backward = [](const std::string& mask, std::uint32_t gradients) {
    return rule_of("attention[2x3x8x4,2x3x8x4,2x3x8x4," + mask + "]->[2x3x8x4]:f32", gradients, Backend::cuda).backward;
  };
  EXPECT_EQ(backward("2x3x8x8", 15), backward("2x3x8x8", 7) + work(0, 0, 384 * 4));
  EXPECT_EQ(backward("1x3x8x8", 15), backward("1x3x8x8", 7) + work(384, 384 * 4, (384 + 192) * 4));
}

TEST(NormalizationWork, BatchReadsItsStatistics) {  // 64 * 7 * 7 = 3,136 elements, 64 channels
  const auto r = rule_of("normalization[1x64x7x7,64,64,64,64]->[1x64x7x7]:f32", 7);
  EXPECT_EQ(r.forward, work(8 * 3'136, (3'136 + 256) * 4, (3'136 + 128 + 128) * 4));
  // x, dy, the scale and 128 statistics; dx, and two vectors.
  EXPECT_EQ(r.backward, work(11 * 3'136, (2 * 3'136 + 64 + 128) * 4, (3'136 + 128) * 4));
}

// 96 elements of bf16, each read and written by: the cast to f32 (2, 4 bytes), the square (4, 4), the mean (4, 0), the
// product with the reciprocal (4, 4), the cast back (4, 2) and the scale (2, 2). Backward by the scale's product (2, 2)
// and, for its gradient, another (4, 2) and its sum (2, 0); the cast (2, 4); x's part of the product (4, 4) and the
// reciprocal's (8, 4), summed (4, 0); the mean's (0, 4); the square's x (4, 4), twice it (4, 4) and times the gradient
// (8, 4); both parts added up (8, 4), and the cast (4, 2).
TEST(NormalizationWork, RmsNormsAreComposedUnlessTheyAreOneKernel) {
  const std::string shapes = "[2x6x8,8]->[2x6x8]:bf16";
  const auto composed = rule_of("normalization(kind=rms)" + shapes, 3, Backend::cuda);
  EXPECT_EQ(composed.forward.read, Bytes{96 * (2 + 4 + 4 + 4 + 4 + 2)});
  EXPECT_EQ(composed.forward.written, Bytes{96 * (4 + 4 + 4 + 2 + 2)});
  EXPECT_EQ(composed.backward.read, Bytes{96 * (2 + 4 + 2 + 2 + 4 + 8 + 4 + 4 + 4 + 8 + 8 + 4)});
  EXPECT_EQ(composed.backward.written, Bytes{96 * (2 + 2 + 4 + 4 + 4 + 4 + 4 + 4 + 4 + 4 + 2)});
  // x and the scale, read and written once, and a reciprocal for each of 12 rows.
  const auto one = rule_of("normalization(kind=rms,in_one_kernel=1)" + shapes, 3, Backend::cuda);
  EXPECT_EQ(one.forward.read, Bytes{(96 + 8) * 2});
  EXPECT_EQ(one.forward.written, Bytes{96 * 2 + 12 * 4});
  const auto full = rule_of("normalization(kind=rms)[2x6x8,8]->[2x6x8]:f32", 1, Backend::cuda);
  EXPECT_EQ(full.forward.read, Bytes{96 * (4 + 4 + 4 + 4)}) << "nothing is cast";
  EXPECT_EQ(full.backward.written, Bytes{96 * (4 + 4 + 4 + 4 + 4 + 4 + 4 + 4)}) << "nor is the scale trained";
}

TEST(ElementwiseWork, ResidualAddPassesItsGradientOn) {
  const auto r = rule_of("binary[2x8,2x8]->[2x8]:f32", 3);
  EXPECT_EQ(r.forward, work(16, 128, 64));
  EXPECT_EQ(r.backward, Work{});
}

TEST(ElementwiseWork, ABroadcastOperandsGradientIsASum) {  // [2, 8] + [8]
  const auto r = rule_of("binary[2x8,8]->[2x8]:f32", second);
  EXPECT_EQ(r.backward, work(16, 64, 32));
}

// [2, 8] * [8]: dy and x are read, their product is written, and read once more to be added up to 8 numbers.
TEST(ElementwiseWork, ABroadcastFactorsGradientIsWrittenBeforeItIsAddedUp) {
  const auto r = rule_of("binary(kind=mul)[2x8,8]->[2x8]:f32", second);
  EXPECT_EQ(r.backward, work(32, 3 * 64, 64 + 32));
  const auto slopes = rule_of("unary(kind=prelu)[2x8,8]->[2x8]:f32", 3);
  EXPECT_EQ(slopes.backward, work(32, (16 + 16 + 8 + 16) * 4, (16 + 16 + 8) * 4));
  const auto fixed = rule_of("unary(kind=prelu)[2x8,8]->[2x8]:f32", first);
  EXPECT_EQ(fixed.backward, work(32, (16 + 16 + 8) * 4, 16 * 4));
}

TEST(ElementwiseWork, ProductOfTwo) {
  const auto r = rule_of("binary(kind=mul)[2x8,2x8]->[2x8]:f32", 3);
  EXPECT_EQ(r.backward, work(32, 256, 128));  // each: dy and the partner read, one written
}

TEST(ElementwiseWork, Relu) {
  const auto r = rule_of("unary[2x8]->[2x8]:bf16", first);
  EXPECT_EQ(r.forward, work(16, 32, 32));
  EXPECT_EQ(r.backward, work(16, 64, 32));
}

TEST(ElementwiseWork, AComparisonWritesBytes) {
  EXPECT_EQ(rule_of("binary(kind=less)[2x8,2x8]->[2x8]:f32").forward, work(16, 128, 16));
}

TEST(PoolWork, MaxWritesPositions) {  // 64 * 56 * 56 = 200,704 results of 9 taps
  const auto r = rule_of(
      "pool(kernel=3x3,stride=2x2,dilation=1x1,pad_begin=1x1,pad_end=1x1)[1x64x112x112]->[1x64x56x56]:f32", first);
  EXPECT_EQ(r.forward, work(200'704 * 9, 802'816 * 4, 200'704 * 12));
  EXPECT_EQ(r.backward, work(200'704, 200'704 * 12, 802'816 * 4));
}

TEST(PoolWork, GlobalAverageReadsAll) {  // 7 * 7 * 4 additions and 4 divisions
  EXPECT_EQ(rule_of("pool(kind=average,global=1)[1x4x7x7]->[1x4x1x1]:f32").forward, work(200, 784, 16));
}

TEST(EmbeddingWork, ReadsItsRowsAndWritesADenseGradient) {  // 6 ids of 100 rows of 8
  const auto r = rule_of("embedding[100x8,2x3]->[2x3x8]:f32", first);
  EXPECT_EQ(r.forward, work(0, 48 * 4 + 6 * 8, 48 * 4));
  EXPECT_EQ(r.backward, work(48, 48 * 4 + 6 * 8, 800 * 4));
}

TEST(ReduceWork, SumAndMean) {
  EXPECT_EQ(rule_of("reduce(kind=sum,axes=1)[4x8]->[4x1]:f32", first).backward,
            work(0, 16, 128));  // dy written 8 times
  EXPECT_EQ(rule_of("reduce(axes=1)[4x8]->[4x1]:f32", first).backward, work(32, 16, 128));
}

TEST(LossWork, CrossEntropy) {  // 4 samples, 10 classes
  const auto r = rule_of("cross_entropy[4x10,4]->[scalar]:f32", first);
  EXPECT_EQ(r.forward, work(5 * 40 + 4, 160 + (16 + 32), 160 + 4));
  EXPECT_EQ(r.backward, work(4 * 40, (4 + 32) + 320, 160 + 160));
}

TEST(OptimizerWork, ByStates) {  // 100 parameters
  EXPECT_EQ(rule_of("optimizer_update[100]->[100]:f32").forward, work(200, 800, 400));
  EXPECT_EQ(rule_of("optimizer_update(kind=momentum)[100]->[100]:f32").forward, work(400, 1'200, 800));
  EXPECT_EQ(rule_of("optimizer_update(kind=adam)[100]->[100]:f32").forward, work(1'200, 1'600, 1'200));
  EXPECT_EQ(rule_of("optimizer_update(kind=adam,weight_decay=1)[100]->[100]:f32").forward.flops, Flops{1'400});
}

// torch.optim on a GPU: adam's lerp (3 tensors), mul (2), addcmul (3, the gradient twice from the cache), sqrt, div and
// add (2 each) and addcdiv (4) move 18 tensors of 400 bytes; adamw's mul before them 2 more; momentum's three
// kernels 8.
TEST(OptimizerWork, OnAGpuByKernelsOfOneStepEach) {
  const auto moved = [](const std::string& text) {
    const Work w = training_rule(*parse_signature(text), 0, Backend::cuda).forward;
    return (w.read + w.written).value();
  };
  EXPECT_EQ(moved("optimizer_update(kind=adam)[100]->[100]:f32"), 18 * 400);
  EXPECT_EQ(moved("optimizer_update(kind=adamw)[100]->[100]:f32"), 20 * 400);
  EXPECT_EQ(moved("optimizer_update(kind=momentum)[100]->[100]:f32"), 8 * 400);
  EXPECT_EQ(moved("optimizer_update[100]->[100]:f32"), 3 * 400);
  EXPECT_EQ(moved("optimizer_update(kind=adam,fused=1)[100]->[100]:f32"), 7 * 400);
}

TEST(Work, NoGradientNoBackward) {
  const auto r = rule_of(conv1, 0);
  EXPECT_EQ(r.backward, Work{});
  EXPECT_TRUE(r.saved.empty());
}

}  // namespace
}  // namespace sibyl
