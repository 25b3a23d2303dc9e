#include "trainer/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace sibyl::trainer {
namespace {

struct Header {
  std::string type;  // "<f4"
  Shape shape;
};

// The text between `key`'s colon and `end` in the header, a Python dictionary.
std::optional<std::string_view> entry(std::string_view header, std::string_view key, char begin, char end) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t from = header.find(begin, at + key.size());
  const std::size_t to = from == std::string_view::npos ? from : header.find(end, from + 1);
  if (to == std::string_view::npos) return std::nullopt;
  return header.substr(from + 1, to - from - 1);
}

std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  std::int64_t count = 1;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    std::int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, text.data() + text.size(), extent);
    if (error != std::errc{} || extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
    shape.push_back(extent);
    at = next;
  }
  return shape;
}

Result<Header> read_header(std::istream& file, const std::string& where) {
  char magic[8] = {};
  std::uint32_t length = 0;
  file.read(magic, sizeof magic);
  if (!file || std::memcmp(magic, "\x93NUMPY", 6) != 0) return fail("not a .npy file", where);
  const std::streamsize width = magic[6] == 1 ? 2 : 4;
  file.read(reinterpret_cast<char*>(&length), width);
  constexpr std::uint32_t most = 1 << 16;
  if (!file || length > most) return fail("the header of this .npy file is damaged", where);
  std::string text(length, ' ');
  file.read(text.data(), static_cast<std::streamsize>(length));
  const auto type = entry(text, "'descr':", '\'', '\''), extents = entry(text, "'shape':", '(', ')');
  const auto shape = extents ? parse_shape(*extents) : std::nullopt;
  if (!file || !type || !shape) return fail("the header of this .npy file is damaged", where);
  const std::size_t order = text.find("'fortran_order':");
  if (order != std::string::npos && text.find("True", order) == text.find_first_not_of(' ', order + 16))
    return fail("this array is in Fortran order", where, "save it with numpy.ascontiguousarray");
  return Header{std::string(*type), *shape};
}

template <class Stored, class Kept>
Result<void> read_values(std::istream& file, std::int64_t count, std::vector<Kept>& kept, const std::string& where) {
  std::vector<Stored> chunk(1 << 16);
  for (std::int64_t left = count; left > 0;) {
    const std::int64_t now = std::min(left, static_cast<std::int64_t>(chunk.size()));
    file.read(reinterpret_cast<char*>(chunk.data()),
              static_cast<std::streamsize>(now * static_cast<std::int64_t>(sizeof(Stored))));
    if (!file) return fail("this .npy file ends before its data does", where);
    for (std::int64_t i = 0; i < now; ++i) kept.push_back(static_cast<Kept>(chunk[static_cast<std::size_t>(i)]));
    left -= now;
  }
  return {};
}

}  // namespace

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  const std::string where = path.string();
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("cannot open this file", where);
  SIBYL_TRY(const Header header, read_header(file, where));
  NpyArray array{header.shape, {}, {}};
  const std::int64_t count = element_count(header.shape);
  const std::string& type = header.type;
  const auto whole = [&]<class T>(T) { return read_values<T>(file, count, array.integers, where); };
  Result<void> read;
  if (type == "<f4")
    read = read_values<float>(file, count, array.reals, where);
  else if (type == "<f8")
    read = read_values<double>(file, count, array.reals, where);
  else if (type == "|u1" || type == "|b1")
    read = whole(std::uint8_t{});
  else if (type == "|i1")
    read = whole(std::int8_t{});
  else if (type == "<i2")
    read = whole(std::int16_t{});
  else if (type == "<i4")
    read = whole(std::int32_t{});
  else if (type == "<i8")
    read = whole(std::int64_t{});
  else
    return fail(fmt::format("arrays of type '{}' cannot be read", type), where,
                "f4, f8, u1, b1, i1, i2, i4 and i8 can");
  SIBYL_CHECK(read);
  return array;
}

}  // namespace sibyl::trainer
