#include "models/onnx/mask.h"

#include <algorithm>

#include "models/mask.h"
#include "models/onnx/payload.h"

namespace sibyl::onnx_import {
namespace {

constexpr std::int64_t largest_mask = std::int64_t{1} << 24;  // 4096 x 4096 tokens

// TensorProto.DataType; 0: not a float that masks are stored as.
int stored_type(DType type) {
  switch (type) {
    case DType::f32: return 1;
    case DType::f16: return 10;
    case DType::f64: return 11;
    case DType::bf16: return 16;
    default: return 0;
  }
}

// Piece by piece: the first one of a weight tells.
bool is_mask(std::string_view bytes, DType type, std::int64_t count) {
  constexpr std::size_t piece = 4096;
  const auto width = static_cast<std::size_t>(size_in_bytes(type));
  const int stored = stored_type(type);
  if (stored == 0 || bytes.size() != width * static_cast<std::size_t>(count)) return false;
  bool hidden = false;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), piece * width))) {
    const std::size_t here = std::min(piece, bytes.size() / width);
    const KnownValues elements = decode_raw(bytes, stored, static_cast<std::int64_t>(here));
    if (!elements) return false;
    for (const double element : *elements) {
      if (element != 0 && !hides_key(element)) return false;
      hidden = hidden || element != 0;
    }
  }
  return hidden;
}

}  // namespace

void mark_masks(GraphData& graph, const Payloads& payloads) {
  for (TensorData& tensor : graph.initializers) {
    const std::int64_t count = element_count(tensor.shape);
    if (!tensor.dtype || !is_floating(*tensor.dtype) || count < 2 || count > largest_mask) continue;
    if (tensor.values)
      tensor.mask = is_added_mask(*tensor.values);
    else if (const auto stored = payloads.find(tensor.name); stored != payloads.end() && !tensor.external)
      tensor.mask = is_mask(stored->second, *tensor.dtype, count);
  }
}

}  // namespace sibyl::onnx_import
