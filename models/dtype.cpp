#include "models/dtype.h"

#include <array>

namespace sibyl {
namespace {

struct Row {
  DType type;
  std::string_view name;
  double bytes;
  bool floating;
};

constexpr std::array rows = {
    Row{DType::f64, "f64", 8, true},       Row{DType::f32, "f32", 4, true},       Row{DType::tf32, "tf32", 4, true},
    Row{DType::f16, "f16", 2, true},       Row{DType::bf16, "bf16", 2, true},     Row{DType::f8e4m3, "f8e4m3", 1, true},
    Row{DType::f8e5m2, "f8e5m2", 1, true}, Row{DType::i64, "i64", 8, false},      Row{DType::i32, "i32", 4, false},
    Row{DType::i16, "i16", 2, false},      Row{DType::i8, "i8", 1, false},        Row{DType::u8, "u8", 1, false},
    Row{DType::boolean, "bool", 1, false}};

const Row& row(DType type) { return rows[static_cast<std::size_t>(type)]; }

}  // namespace

double size_in_bytes(DType type) { return row(type).bytes; }
std::string_view to_string(DType type) { return row(type).name; }
bool is_floating(DType type) { return row(type).floating; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Row& r : rows)
    if (r.name == text) return r.type;
  return std::nullopt;
}

}  // namespace sibyl
