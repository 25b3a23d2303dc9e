// What autograd keeps, by PyTorch's derivatives. autograd_test.cpp holds the same rules against libtorch itself.
#include <gmock/gmock.h>

#include "tests/unit/models/training/rules_of.h"

namespace sibyl {
namespace {

using test::first;
using test::rule_of;
using test::second;
using test::third;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Saved input(std::size_t i) { return {Saved::What::input, i, {}}; }
Saved output() { return {Saved::What::output, 0, {}}; }
Saved extra(double bytes) { return {Saved::What::extra, 0, Bytes{bytes}}; }

std::vector<Saved> kept(const std::string& text, std::uint32_t gradients = first, Backend backend = Backend::cpu) {
  return rule_of(text, gradients, backend).saved;
}

TEST(Saved, LinearKeepsWhatTheOtherGradientNeeds) {
  const std::string linear = "linear[8x16,4x16,4]->[8x4]:f32";
  EXPECT_THAT(kept(linear, first | second | third), UnorderedElementsAre(input(0), input(1)));
  EXPECT_THAT(kept(linear, first), ElementsAre(input(1)));   // frozen weight: x is not kept
  EXPECT_THAT(kept(linear, second), ElementsAre(input(0)));  // first layer
}

TEST(Saved, ConvolutionKeepsBothInEveryCase) {
  const std::string conv =
      "convolution(kernel=1x1,stride=1x1,dilation=1x1,pad_begin=0x0,pad_end=0x0)[1x3x4x4,5x3x1x1]->[1x5x4x4]:f32";
  EXPECT_THAT(kept(conv, first), UnorderedElementsAre(input(0), input(1)));
}

TEST(Saved, AConvolutionPaddedUnevenlyKeepsThePaddedCopy) {  // 3 * 5 * 5 * 4 bytes
  const std::string conv =
      "convolution(kernel=2x2,stride=1x1,dilation=1x1,pad_begin=0x0,pad_end=1x1)[1x3x4x4,5x3x2x2]->[1x5x4x4]:f32";
  EXPECT_THAT(kept(conv, second), UnorderedElementsAre(extra(300), input(1)));
}

TEST(Saved, Activations) {
  auto unary = [](const std::string& kind) { return kept("unary(kind=" + kind + ")[2x8]->[2x8]:f32"); };
  EXPECT_THAT(kept("unary[2x8]->[2x8]:f32"), ElementsAre(output()));  // relu
  for (const char* kind : {"sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal"})
    EXPECT_THAT(unary(kind), ElementsAre(output())) << kind;
  for (const char* kind : {"gelu", "gelu_tanh", "silu", "hard_swish", "hard_sigmoid", "leaky_relu", "elu", "mish", "clip", "pow"})
    EXPECT_THAT(unary(kind), ElementsAre(input(0))) << kind;
  EXPECT_THAT(unary("scale_shift"), IsEmpty());
  EXPECT_THAT(unary("neg"), IsEmpty());
}

TEST(Saved, Arithmetic) {
  auto binary = [](const std::string& kind, std::uint32_t mask) {
    return kept("binary(kind=" + kind + ")[2x8,2x8]->[2x8]:f32", mask);
  };
  EXPECT_THAT(binary("add", 3), IsEmpty());
  EXPECT_THAT(binary("sub", 3), IsEmpty());
  EXPECT_THAT(binary("mul", first), ElementsAre(input(1)));
  EXPECT_THAT(binary("mul", 3), UnorderedElementsAre(input(0), input(1)));
  EXPECT_THAT(binary("div", first), ElementsAre(input(1)));
  EXPECT_THAT(binary("div", second), UnorderedElementsAre(input(0), input(1)));
  EXPECT_THAT(binary("pow", second), UnorderedElementsAre(input(0), input(1), output()));
  EXPECT_THAT(binary("max", first), UnorderedElementsAre(input(0), input(1)));
}

TEST(Saved, Norms) {
  EXPECT_THAT(kept("normalization[2x64x7x7,64,64,64,64]->[2x64x7x7]:f32", 7),
              UnorderedElementsAre(input(0), input(1), extra(2 * 64 * 4)));
  // 2 * 6 rows of 8; the statistics stay f32 in half precision.
  EXPECT_THAT(kept("normalization(kind=layer)[2x6x8,8,8]->[2x6x8]:bf16", 7, Backend::cuda),
              UnorderedElementsAre(input(0), input(1), input(2), extra(2 * 12 * 4)));
  const std::string rms = "normalization(kind=rms)[2x6x8,8]->[2x6x8]:f32";  // 12 reciprocals, x normalised, x squared
  EXPECT_THAT(kept(rms, 3), UnorderedElementsAre(input(0), input(1), extra(12 * 4), extra(96 * 4), extra(96 * 4)));
  EXPECT_THAT(kept(rms, 3, Backend::cuda), UnorderedElementsAre(input(0), input(1), extra(12 * 4), extra(96 * 4)));
  // Of two bytes what is squared and multiplied is a copy in f32; in one kernel nothing but x and the reciprocals.
  const std::string half = "[2x6x8,8]->[2x6x8]:bf16";
  EXPECT_THAT(kept("normalization(kind=rms)" + half, 3, Backend::cuda),
              UnorderedElementsAre(extra(96 * 4), input(1), extra(12 * 4), extra(96 * 2)));
  EXPECT_THAT(kept("normalization(kind=rms,in_one_kernel=1)" + half, 3, Backend::cuda),
              UnorderedElementsAre(input(0), input(1), extra(12 * 4)));
  EXPECT_THAT(kept("normalization(kind=group,groups=4)[2x8x3x3,8,8]->[2x8x3x3]:f32", 7),
              UnorderedElementsAre(input(0), input(1), extra(2 * 2 * 4 * 4)));
}

TEST(Saved, Pools) {
  EXPECT_THAT(kept("pool(kernel=2x2,stride=2x2)[1x3x4x4]->[1x3x2x2]:f32"), UnorderedElementsAre(input(0), extra(12 * 8)));
  EXPECT_THAT(kept("pool(kind=average,kernel=2x2,stride=2x2)[1x3x4x4]->[1x3x2x2]:f32"), ElementsAre(input(0)));
  const std::string global = "pool(kind=average,global=1)[1x3x4x4]->[1x3x1x1]:f32";
  EXPECT_THAT(kept(global), ElementsAre(input(0)));  // libtorch 1.13's mean
  EXPECT_THAT(kept(global, first, Backend::cuda), IsEmpty());
}

TEST(Saved, DropoutsMaskDependsOnTheBackend) {
  const std::string dropout = "dropout(ratio=0.1)[2x8]->[2x8]:f32";
  EXPECT_THAT(kept(dropout, first, Backend::cpu), ElementsAre(extra(64)));
  EXPECT_THAT(kept(dropout, first, Backend::cuda), ElementsAre(extra(16)));
  EXPECT_TRUE(rule_of("dropout(ratio=0)[2x8]->[2x8]:f32", first).view);
}

TEST(Saved, Attention) {  // B 2, H 4, S 8, D 4: q 256, scores 512 elements
  const std::string plain = "attention[2x4x8x4,2x4x8x4,2x4x8x4]->[2x4x8x4]:f32";
  EXPECT_THAT(kept(plain, 7), UnorderedElementsAre(input(0), input(1), input(2), extra(512 * 4)));
  const std::string scaled = "attention(scale=0.5,dropout=0.1)[2x4x8x4,2x4x8x4,2x4x8x4]->[2x4x8x4]:f32";
  EXPECT_THAT(kept(scaled, 7), UnorderedElementsAre(extra(256 * 4), input(1), input(2), extra(512 * 4), extra(512 * 4),
                                                    extra(512 * 4)));
  const std::string grouped = "attention[2x4x8x4,2x2x8x4,2x2x8x4]->[2x4x8x4]:f32";
  EXPECT_THAT(kept(grouped, 7), UnorderedElementsAre(input(0), extra(256 * 4), extra(256 * 4), extra(512 * 4)));
  EXPECT_THAT(kept(plain, 7, Backend::cuda),
              UnorderedElementsAre(input(0), input(1), input(2), output(), extra(2 * 4 * 8 * 4)));
}

TEST(Saved, Others) {
  EXPECT_THAT(kept("softmax[2x8]->[2x8]:f32"), ElementsAre(output()));
  EXPECT_THAT(kept("embedding[100x8,2x3]->[2x3x8]:f32"), UnorderedElementsAre(input(0), input(1)));
  EXPECT_THAT(kept("gather(axis=1)[2x8,3]->[2x3]:f32"), ElementsAre(input(1)));
  EXPECT_THAT(kept("reduce(axes=1)[2x8]->[2x1]:f32"), ElementsAre(input(0)));
  EXPECT_THAT(kept("reduce(axes=1)[2x8]->[2x1]:f32", first, Backend::cuda), IsEmpty());
  EXPECT_THAT(kept("reduce(kind=sum,axes=1)[2x8]->[2x1]:f32"), IsEmpty());
  EXPECT_THAT(kept("reduce(kind=max,axes=1)[2x8]->[2x1]:f32"), UnorderedElementsAre(input(0), output()));
  EXPECT_THAT(kept("where[2x8,2x8,2x8]->[2x8]:f32", second), ElementsAre(input(0)));
  EXPECT_THAT(kept("cross_entropy[4x10,4]->[scalar]:f32"), UnorderedElementsAre(extra(160), input(1)));
  EXPECT_THAT(kept("mean_squared_error[4x10,4x10]->[scalar]:f32"), UnorderedElementsAre(input(0), input(1), extra(160)));
  EXPECT_THAT(kept("concat(axis=1)[2x8,2x8]->[2x16]:f32", 3), IsEmpty());
  // 1x4x2x2: squares padded to 8 channels (32 elements), two operands of the division's power (16 each).
  EXPECT_THAT(kept("local_response_norm[1x4x2x2]->[1x4x2x2]:f32"),
              UnorderedElementsAre(input(0), extra(128), extra(64), extra(64)));
}

TEST(View, WhatSharesMemory) {
  EXPECT_TRUE(rule_of("reshape[2x8]->[16]:f32").view);
  EXPECT_TRUE(rule_of("slice(axes=0,starts=0,ends=1,steps=1)[2x8]->[1x8]:f32").view);
  EXPECT_TRUE(rule_of("split(sizes=4x4,axis=1)[2x8]->[2x4,2x4]:f32").view);
  EXPECT_TRUE(rule_of("expand[2x1]->[2x8]:f32").view);
  EXPECT_TRUE(rule_of("cast(to=f32)[2x8]->[2x8]:f32").view);
  EXPECT_FALSE(rule_of("cast(to=bf16)[2x8]->[2x8]:f32").view);
  EXPECT_FALSE(rule_of("transpose(permutation=1x0)[2x8]->[8x2]:f32").view);  // copied where it arises
  EXPECT_FALSE(rule_of("concat[2x8,2x8]->[4x8]:f32").view);
}

}  // namespace
}  // namespace sibyl
