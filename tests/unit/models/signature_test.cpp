#include "models/signature.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

namespace sibyl {
namespace {

using testing::HasSubstr;

TEST(SignatureText, AttributesAtTheirDefaultAreLeftOut) {
  const Convolution conv{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1, false, {}};
  EXPECT_EQ(to_string(Signature{conv, {{8, 64, 56, 56}, {64, 64, 3, 3}}, {{8, 64, 28, 28}}, DType::f32}),
            "convolution(kernel=3x3,stride=2x2,dilation=1x1,pad_begin=1x1,pad_end=1x1)"
            "[8x64x56x56,64x64x3x3]->[8x64x28x28]:f32");
  EXPECT_EQ(to_string(Signature{CrossEntropy{}, {{4, 10}, {4}}, {{}}, DType::bf16}), "cross_entropy[4x10,4]->[scalar]:bf16");
}

TEST(SignatureText, ReadsWhatItWrites) {
  const auto s = parse_signature("attention(causal=1,scale=0.125)[2x12x64x64,2x12x64x64,2x12x64x64]->[2x12x64x64]:f16");
  ASSERT_TRUE(s);
  const auto& attention = std::get<Attention>(s->attributes);
  EXPECT_TRUE(attention.causal);
  EXPECT_EQ(attention.scale, 0.125);
  EXPECT_EQ(attention.dropout, 0.0);
  EXPECT_EQ(s->inputs.size(), 3U);
  EXPECT_EQ(s->dtype, DType::f16);
}

TEST(SignatureText, InfinityReadsBack) {  // max(x, 2) has no upper end
  const Signature s{Unary{UnaryKind::clip, 2, INFINITY}, {{4}}, {{4}}, DType::f32};
  EXPECT_EQ(parse_signature(to_string(s)), s);
}

TEST(SignatureText, BadTextIsAnErrorThatQuotesIt) {
  for (const char* text : {"", "linear", "linear[8x8]:f32", "linear[8x8]->[8x8]", "linear[8x8]->[8x8]:f33", "lineal[8]->[8]:f32",
                           "linear(weight_kn=2)[8]->[8]:f32", "linear(bias=1)[8]->[8]:f32", "linear(weight_kn=1[8]->[8]:f32",
                           "linear[8x]->[8]:f32", "linear[-8]->[8]:f32", "linear[8]->[8]:f32x", "unary(kind=reLU)[8]->[8]:f32",
                           "linear[99999999999999999999]->[8]:f32", "]->[]:"}) {
    const auto s = parse_signature(text);
    ASSERT_FALSE(s) << text;
    EXPECT_THAT(s.error().message, HasSubstr(text));
    EXPECT_EQ(s.error().code, ErrorCode::bad_input);
  }
}

// Any value of a field's type.
template <class T>
T arbitrary_value() {
  if constexpr (std::is_same_v<T, Ints>)
    return *rc::gen::container<Ints>(rc::gen::inRange<std::int64_t>(-9, 1000));
  else if constexpr (std::is_same_v<T, DType>)
    return static_cast<DType>(*rc::gen::inRange(0, static_cast<int>(DType::boolean) + 1));
  else if constexpr (std::is_enum_v<T>)
    return static_cast<T>(*rc::gen::inRange<std::size_t>(0, enum_names(T{}).size()));
  else if constexpr (std::is_same_v<T, bool>)
    return *rc::gen::arbitrary<bool>();
  else
    return *rc::gen::arbitrary<T>();
}

template <std::size_t I = 0>
Attributes arbitrary_attributes(std::size_t index) {
  if constexpr (I + 1 < std::variant_size_v<Attributes>)
    if (index != I) return arbitrary_attributes<I + 1>(index);
  using Op = std::variant_alternative_t<I, Attributes>;
  Op op;
  Op::fields(op, [](std::string_view, auto& value) { value = arbitrary_value<std::decay_t<decltype(value)>>(); });
  return op;
}

std::vector<Shape> arbitrary_shapes() {
  return *rc::gen::container<std::vector<Shape>>(rc::gen::container<Shape>(rc::gen::inRange<std::int64_t>(0, 5000)));
}

Signature arbitrary_signature() {
  return {arbitrary_attributes(*rc::gen::inRange<std::size_t>(0, std::variant_size_v<Attributes>)), arbitrary_shapes(),
          arbitrary_shapes(), arbitrary_value<DType>()};
}

TEST(SignatureProperties, EverySignatureReadsBack) {
  EXPECT_TRUE(rc::check([] {
    const Signature s = arbitrary_signature();
    const auto read = parse_signature(to_string(s));
    RC_ASSERT(read.has_value());
    RC_ASSERT((*read == s));
    RC_ASSERT((hash_value(*read) == hash_value(s)));
  }));
}

TEST(SignatureProperties, ReadingNeverCrashesOnDamagedText) {
  EXPECT_TRUE(rc::check([] {
    std::string text = to_string(arbitrary_signature());
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text[at] = *rc::gen::element('[', ']', 'x', ',', '(', '=', '-', '9', 'e', ':');
    const auto read = parse_signature(text);
    if (read) {
      // Whatever reads also reads back.
      RC_ASSERT((parse_signature(to_string(*read)) == read));
    }
  }));
}

TEST(SignatureHash, TellsKernelsApart) {
  const auto a = parse_signature("linear[8x16,4x16]->[8x4]:f32"), b = parse_signature("linear[8x16,4x16]->[8x4]:bf16"),
             c = parse_signature("linear[16x8,4x16]->[8x4]:f32"), d = parse_signature("linear(weight_kn=1)[8x16,4x16]->[8x4]:f32");
  ASSERT_TRUE(a && b && c && d);
  EXPECT_NE(hash_value(*a), hash_value(*b));
  EXPECT_NE(hash_value(*a), hash_value(*c));
  EXPECT_NE(hash_value(*a), hash_value(*d));
}

}  // namespace
}  // namespace sibyl
