#include "trainer/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

namespace sibyl::trainer {
namespace {

class Npy : public ::testing::Test {
 protected:
  // Version 1 of the format: magic, 2 bytes of header length, the header, the data.
  Result<NpyArray> read(const std::string& header, const std::string& data) {
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "array.npy";
    std::ofstream file(path, std::ios::binary);
    const auto length = static_cast<std::uint16_t>(header.size());
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(length & 255) << static_cast<char>(length >> 8)
         << header << data;
    file.close();
    return read_npy(path);
  }
  static std::string header(const std::string& type, const std::string& shape, const char* fortran = "False") {
    return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
  }
  template <class T>
  static std::string bytes(std::initializer_list<T> values) {
    return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
  }
};

TEST_F(Npy, reads_reals_and_integers) {
  const auto reals = read(header("<f4", "(2, 1)"), bytes({1.5F, -2.0F}));
  ASSERT_TRUE(reals);
  EXPECT_EQ(reals->shape, (Shape{2, 1}));
  EXPECT_EQ(reals->reals, (std::vector<float>{1.5F, -2.0F}));
  EXPECT_TRUE(reals->integers.empty());
  const auto doubles = read(header("<f8", "(1,)"), bytes({0.25}));
  ASSERT_TRUE(doubles);
  EXPECT_EQ(doubles->reals, std::vector<float>{0.25F});
  const auto wholes = read(header("|u1", "(3,)"), bytes<std::uint8_t>({0, 7, 255}));
  ASSERT_TRUE(wholes);
  EXPECT_EQ(wholes->integers, (std::vector<std::int64_t>{0, 7, 255}));
  const auto longs = read(header("<i8", "(1, 1)"), bytes<std::int64_t>({-5}));
  ASSERT_TRUE(longs);
  EXPECT_EQ(longs->integers, std::vector<std::int64_t>{-5});
}

TEST_F(Npy, says_what_is_wrong) {
  EXPECT_EQ(read_npy("/nowhere/x.npy").error().message, "cannot open this file");
  EXPECT_THAT(read(header("<f4", "(3,)"), bytes({1.0F})).error().message, ::testing::HasSubstr("ends before"));
  EXPECT_THAT(read(header("<c8", "(1,)"), "12345678").error().message, ::testing::HasSubstr("'<c8'"));
  EXPECT_THAT(read(header("<f4", "(1,)", "True"), "1234").error().message, ::testing::HasSubstr("Fortran"));
  EXPECT_THAT(read("{}", "").error().message, ::testing::HasSubstr("damaged"));
  EXPECT_THAT(read(header("<f4", "(-1,)"), "").error().message, ::testing::HasSubstr("damaged"));
  EXPECT_THAT(read(header("<f4", "(4294967296, 4294967296)"), "").error().message, ::testing::HasSubstr("damaged"));
}

TEST_F(Npy, refuses_other_files) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "other.npy";
  std::ofstream(path) << "hello, world: no array";
  EXPECT_EQ(read_npy(path).error().message, "not a .npy file");
}

}  // namespace
}  // namespace sibyl::trainer
