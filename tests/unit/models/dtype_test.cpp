#include "models/dtype.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

constexpr DType all[] = {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                         DType::i64, DType::i32, DType::i16,  DType::i8,  DType::u8,   DType::boolean};

TEST(DType, NamesReadBack) {
  for (const DType type : all) EXPECT_EQ(parse_dtype(to_string(type)), type) << to_string(type);
  EXPECT_EQ(parse_dtype("float32"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, Sizes) {
  EXPECT_EQ(size_in_bytes(DType::f32), 4);
  EXPECT_EQ(size_in_bytes(DType::tf32), 4);  // a way of computing on f32 storage
  EXPECT_EQ(size_in_bytes(DType::bf16), 2);
  EXPECT_EQ(size_in_bytes(DType::f8e4m3), 1);
  EXPECT_EQ(size_in_bytes(DType::i64), 8);
  EXPECT_EQ(size_in_bytes(DType::boolean), 1);
}

TEST(DType, OnlyFloatingTypesTrain) {
  EXPECT_TRUE(is_floating(DType::f8e5m2));
  EXPECT_TRUE(is_floating(DType::tf32));
  EXPECT_FALSE(is_floating(DType::i64));
  EXPECT_FALSE(is_floating(DType::boolean));
}

}  // namespace
}  // namespace sibyl
