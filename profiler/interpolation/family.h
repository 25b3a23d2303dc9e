// Which measured kernels may stand for which others.
//
// A family is a set of kernels that one code serves: operation, pass, gradients computed, element type, and categories
// of the operation (docs/models/compute.md lists them). Inside a family a kernel is a point: log2 of the sizes that its
// time depends on. `variant` marks differences that matter little (the layout of a GEMM's operands, a fused bias):
// points of another variant count as a bit farther away.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "profiler/kernel_key.h"

namespace sibyl::interpolation {

constexpr std::size_t max_features = 6;
using Features = std::array<double, max_features>;  // unused ones are 0

struct Family {
  std::uint8_t operation = 0;  // index in Attributes, or gemm_operation
  Pass pass = Pass::forward;
  std::uint8_t gradients = 0;
  DType dtype = DType::f32;
  std::uint32_t category = 0;
  auto operator<=>(const Family&) const = default;
};

// Matrix products of linear and matmul, forward and single-gradient backward, are one family.
constexpr std::uint8_t gemm_operation = 255;

struct Place {
  Family family;
  Features features{};
  std::uint32_t variant = 0;
};

Place place(const KernelKey& key);

// The categories of a convolution's family, added up.
enum ConvolutionCategory : std::uint32_t {
  pointwise = 1,
  strided = 2,  // or of a window that no fast algorithm serves, which costs alike
  depthwise = 4,
  grouped = 8,
  transposed = 16,
  rank = 32,       // times the number of spatial extents
  unaligned = 256  // channels that tensor cores cannot load 16 bytes at a time
};

// The matrix product that a kernel is, or that a convolution amounts to: y[M, N] = a[M, K] b[K, N], `batch` times.
// Nothing where the kernel is none, or several of them.
struct Product {
  double m = 1, n = 1, k = 1, batch = 1;
  std::uint32_t layout = 0;  // the variant of its place
};
std::optional<Product> as_product(const KernelKey& key);
Place place(DType dtype, const Product& product);

// A convolution of as many groups as images have channels: it multiplies one number at a time, without tensor cores.
bool is_depthwise(const KernelKey& key);

}  // namespace sibyl::interpolation

template <>
struct std::hash<sibyl::interpolation::Family> {
  std::size_t operator()(const sibyl::interpolation::Family& f) const noexcept {
    return (std::size_t{f.category} << 32) ^ (std::size_t{f.operation} << 24) ^ (std::size_t{f.gradients} << 16) ^
           (static_cast<std::size_t>(f.dtype) << 8) ^ static_cast<std::size_t>(f.pass);
  }
};
