#include "base/quantity.h"

#include <gmock/gmock.h>

namespace sibyl {
namespace {

using testing::HasSubstr;

TEST(ReadBytes, PowersOf1000And1024) {
  EXPECT_EQ(parse_bytes("25MiB"), Bytes{25.0 * 1024 * 1024});
  EXPECT_EQ(parse_bytes("1.5 GB"), Bytes{1.5e9});
  EXPECT_EQ(parse_bytes("4096"), Bytes{4096});
  EXPECT_EQ(parse_bytes(" 80GiB "), Bytes{80.0 * 1024 * 1024 * 1024});
  EXPECT_EQ(parse_bytes("0"), Bytes{0});
}

TEST(ReadRates, BitsAndBytes) {
  EXPECT_EQ(parse_bytes_per_second("100Gb/s"), BytesPerSecond{12.5e9});
  EXPECT_EQ(parse_bytes_per_second("12.5GB/s"), BytesPerSecond{12.5e9});
  EXPECT_EQ(parse_bytes_per_second("1Gbit/s"), BytesPerSecond{125e6});
  EXPECT_EQ(parse_flops_per_second("312TFLOP/s"), FlopsPerSecond{312e12});
}

TEST(ReadSeconds, EveryUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("3us")->value(), 3e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("2.5 ms")->value(), 2.5e-3);
  EXPECT_EQ(parse_seconds("1h"), Seconds{3600});
  EXPECT_EQ(parse_seconds("0.5"), Seconds{0.5});
}

TEST(Read, WhatIsNoQuantityIsQuotedWithAnExample) {
  for (const char* text : {"", "abc", "-1GB", "nan", "inf", "1e400", "12 parsecs", "25Mib", "GB", "1,5GB", "1GBB"}) {
    const auto b = parse_bytes(text);
    ASSERT_FALSE(b) << text;
    EXPECT_THAT(b.error().message, HasSubstr("'" + std::string(text) + "'"));
    EXPECT_THAT(b.error().hint, HasSubstr("25MiB"));
  }
  EXPECT_FALSE(parse_bytes("8Gb"));  // a lower-case b is bits, and sizes are not counted in them
  EXPECT_FALSE(parse_seconds("3MiB"));
}

// 10^18 is the most, so that sums and products of quantities stay finite.
TEST(Read, WhatIsBeyondAnyMachineIsTooLarge) {
  EXPECT_TRUE(parse_bytes("1000PB"));
  for (const char* text : {"1001PB", "1e19", "1e308TB"}) {
    const auto b = parse_bytes(text);
    ASSERT_FALSE(b) << text;
    EXPECT_THAT(b.error().message, HasSubstr("too large"));
  }
  EXPECT_FALSE(parse_seconds("1e300 d"));
}

TEST(Write, ThreeSignificantDigits) {
  EXPECT_EQ(to_string(Seconds{0.0123}), "12.3 ms");
  EXPECT_EQ(to_string(Seconds{0}), "0 s");
  EXPECT_EQ(to_string(Seconds{7200}), "2.00 h");
  EXPECT_EQ(to_string(Bytes{97.5 * 1024 * 1024}), "97.5 MiB");
  EXPECT_EQ(to_string(BytesPerSecond{12.5e9}), "12.5 GB/s");
  EXPECT_EQ(to_string(Flops{4.09e9}), "4.09 GFLOP");
  EXPECT_EQ(to_string(FlopsPerSecond{312e12}), "312 TFLOP/s");
  EXPECT_EQ(with_prefix(25'557'032, ""), "25.6 M");
  EXPECT_EQ(with_prefix(161, ""), "161");
}

TEST(Write, NeverAThousandOfTheSmallerUnit) {
  EXPECT_EQ(to_string(Seconds{0.9996e-3}), "1.00 ms");
  EXPECT_EQ(to_string(BytesPerSecond{999.6e6}), "1.00 GB/s");
  EXPECT_EQ(to_string(Bytes{1023.9 * 1024}), "1.00 MiB");
}

TEST(Write, WhatIsWrittenReadsBack) {
  EXPECT_EQ(parse_bytes(to_string(Bytes{25.0 * 1024 * 1024})), Bytes{25.0 * 1024 * 1024});
  EXPECT_EQ(parse_bytes_per_second(to_string(BytesPerSecond{12.5e9})), BytesPerSecond{12.5e9});
  EXPECT_EQ(parse_flops_per_second(to_string(FlopsPerSecond{312e12})), FlopsPerSecond{312e12});
}

}  // namespace
}  // namespace sibyl
