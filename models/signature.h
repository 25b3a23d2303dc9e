// A Signature says exactly which computation runs: the operation's attributes, the shapes of its operands and results,
// and the element type it computes in. Two operations with equal signatures cost the same, so signatures (with a pass)
// are the keys under which kernels are measured and looked up.
//
// Text form, one line, parse(to_string(s)) == s:
//   convolution(kernel=3x3,stride=1x1,...)[8x64x56x56,64x64x3x3]->[8x64x56x56]:f32
// Attributes at their default are left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "models/dtype.h"
#include "models/operations/operations.h"
#include "models/shape.h"

namespace sibyl {

struct Signature {
  Attributes attributes;
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
  DType dtype = DType::f32;

  bool operator==(const Signature&) const = default;
};

std::string to_string(const Signature& signature);
std::string to_string(const Attributes& attributes);
Result<Signature> parse_signature(std::string_view text);
std::size_t hash_value(const Signature& signature);

}  // namespace sibyl
