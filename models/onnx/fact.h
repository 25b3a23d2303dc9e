// What is known of a value at one batch size: element type, shape and, where small and computable, its elements.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/dtype.h"
#include "models/shape.h"

namespace sibyl::onnx_import {

// Integers up to 2^53 are exact; the huge ones that stand for "to the end" in Slice are clamped by whoever reads them.
using Values = std::vector<double>;
using KnownValues = std::shared_ptr<const Values>;

// Larger constants are known by shape only.
constexpr std::int64_t max_known_values = 65536;

struct Fact {
  DType dtype = DType::f32;
  Shape shape;
  KnownValues values;
};

// No negative extent, rank at most 32, at most 2^62 elements.
bool is_sane(const Shape& shape);

}  // namespace sibyl::onnx_import
