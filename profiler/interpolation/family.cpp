#include "profiler/interpolation/family.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

namespace sibyl::interpolation {
namespace {

double log2_of(double size) { return std::log2(std::max(size, 1.0)); }

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t n = 1;
  for (std::size_t i = begin; i < std::min(end, shape.size()); ++i) n *= shape[i];
  return n;
}
double elements(const std::vector<Shape>& shapes, std::size_t index) {
  return index < shapes.size() ? static_cast<double>(element_count(shapes[index])) : 1.0;
}
double extent(const Shape& shape, std::size_t index) {
  return index < shape.size() ? static_cast<double>(shape[index]) : 1.0;
}
double extent_from_back(const Shape& shape, std::size_t index) {
  return index < shape.size() ? static_cast<double>(shape[shape.size() - 1 - index]) : 1.0;
}
const Shape& shape_of(const std::vector<Shape>& shapes, std::size_t index) {
  static const Shape scalar;
  return index < shapes.size() ? shapes[index] : scalar;
}

Features features(std::initializer_list<double> sizes) {
  Features f{};
  std::transform(sizes.begin(), sizes.end(), f.begin(), log2_of);
  return f;
}

template <class Enum>
std::uint32_t number(Enum value) {
  return static_cast<std::uint32_t>(value);
}

// ---- matrix products

enum GemmVariant : std::uint32_t { weight_nk, weight_kn, gradient_x, gradient_w, batched };

Place gemm(DType dtype, const Product& p) {
  return {{gemm_operation, Pass::forward, 0, dtype, 0}, features({p.m, p.n, p.k, p.batch}), p.layout};
}

struct LinearSizes {
  double m, n, k;
};
LinearSizes sizes(const Linear&, const Signature& s) {
  const Shape &x = shape_of(s.inputs, 0), &y = shape_of(s.outputs, 0);
  const double k = extent_from_back(x, 0);
  return {std::max(1.0, elements(s.inputs, 0) / std::max(1.0, k)), extent_from_back(y, 0), k};
}

std::optional<Product> product(const Linear& op, const KernelKey& key) {
  const auto [m, n, k] = sizes(op, key.signature);
  if (key.pass == Pass::forward) return Product{m, n, k, 1, op.weight_kn ? weight_kn : weight_nk};
  if (key.gradients == 1) return Product{m, k, n, 1, gradient_x};
  if (key.gradients == 2) return Product{n, k, m, 1, gradient_w};
  return std::nullopt;
}

void set_place(const Linear& op, const KernelKey& key, Place& p) {
  if (const auto one = product(op, key)) {
    p = gemm(key.signature.dtype, *one);
    return;
  }
  const auto [m, n, k] = sizes(op, key.signature);
  p.features = features({m, n, k});
}

Product sizes(const MatMul&, const Signature& s) {
  const Shape &a = shape_of(s.inputs, 0), &y = shape_of(s.outputs, 0);
  const double m = extent_from_back(y, 1), n = extent_from_back(y, 0), k = extent_from_back(a, 0);
  return {m, n, k, std::max(1.0, elements(s.outputs, 0) / std::max(1.0, m * n)), 0};
}

std::optional<Product> product(const MatMul& op, const KernelKey& key) {
  const auto [m, n, k, batch, unused] = sizes(op, key.signature);
  auto layout = [many = batch > 1](std::uint32_t of_one) { return many ? std::uint32_t{batched} : of_one; };
  if (key.pass == Pass::forward) return Product{m, n, k, batch, layout(weight_kn)};
  if (key.gradients == 1) return Product{m, k, n, batch, layout(gradient_x)};
  if (key.gradients == 2) return Product{k, n, m, batch, layout(gradient_w)};
  return std::nullopt;
}

void set_place(const MatMul& op, const KernelKey& key, Place& p) {
  if (const auto one = product(op, key)) {
    p = gemm(key.signature.dtype, *one);
    return;
  }
  const Product s = sizes(op, key.signature);
  p.features = features({s.m, s.n, s.k, s.batch});
}

// A product for each expert, as of a batch of matrices.
Product sizes(const GroupedLinear&, const Signature& s) {
  const Shape &x = shape_of(s.inputs, 0), &y = shape_of(s.outputs, 0);
  return {extent_from_back(y, 1), extent_from_back(y, 0), extent_from_back(x, 0), extent(y, 0), batched};
}

std::optional<Product> product(const GroupedLinear& op, const KernelKey& key) {
  const Product p = sizes(op, key.signature);
  if (key.pass == Pass::forward) return p;
  if (key.gradients == 1) return Product{p.m, p.k, p.n, p.batch, batched};
  if (key.gradients == 2) return Product{p.n, p.k, p.m, p.batch, batched};
  return std::nullopt;
}

void set_place(const GroupedLinear& op, const KernelKey& key, Place& p) {
  if (const auto one = product(op, key)) {
    p = gemm(key.signature.dtype, *one);
    return;
  }
  const Product s = sizes(op, key.signature);
  p.features = features({s.m, s.n, s.k, s.batch});
}

// ---- convolution: y[N, K, P, Q] = x[N, C, H, W] * w[K, C/groups, R, S]

struct ConvolutionSizes {
  double pixels, c, k, window, groups;  // of the output (of the input when transposed): N * P * Q
};
ConvolutionSizes sizes(const Convolution& op, const Signature& s) {
  const Shape &x = shape_of(s.inputs, 0), &y = shape_of(s.outputs, 0);
  const Shape& image = op.transposed ? x : y;
  const double groups = static_cast<double>(std::max<std::int64_t>(op.groups, 1));
  return {extent(image, 0) * static_cast<double>(product(image, 2, image.size())), extent(x, 1) / groups,
          extent(y, 1) / groups, static_cast<double>(product(op.kernel, 0, op.kernel.size())), groups};
}

bool on_tensor_cores(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::tf32; }

// Fewer than 8 channels, or an odd number of them: cuDNN falls back to kernels that take 3 to 10 times as long.
bool is_unaligned(const Convolution& op, const KernelKey& key, const ConvolutionSizes& s) {
  constexpr double together = 8;
  return op.groups == 1 && on_tensor_cores(key.signature.dtype) &&
         (std::fmod(s.c, together) != 0 || std::fmod(s.k, together) != 0);
}

// Algorithms that multiply less than once for each weight serve square windows, one pixel after the other and without
// holes: Winograd's those of 3 and 5, Fourier transforms wide ones (cuDNN's API guide, cudnnConvolutionForward). Others
// multiply by every weight, as those do that step over pixels: a 1 x 7 is like a 5 x 5 of stride 2, not like a 3 x 3.
bool multiplies_all(const Convolution& op) {
  const auto above_one = [](std::int64_t v) { return v > 1; };
  if (std::ranges::any_of(op.stride, above_one)) return true;
  if (op.groups > 1 || op.kernel.size() != 2) return false;
  return op.kernel[0] != op.kernel[1] || (op.kernel[0] > 1 && std::ranges::any_of(op.dilation, above_one));
}

void set_place(const Convolution& op, const KernelKey& key, Place& p) {
  const auto s = sizes(op, key.signature);
  p.family.category = (s.window == 1 ? pointwise : 0U) | (multiplies_all(op) ? strided : 0U) |
                      (is_depthwise(key) ? depthwise
                       : op.groups > 1   ? grouped
                                         : 0U) |
                      (op.transposed ? transposed : 0U) | rank * static_cast<std::uint32_t>(op.kernel.size()) |
                      (is_unaligned(op, key, s) ? unaligned : 0U);
  p.features = features({s.pixels, s.c, s.k, s.window, s.groups});
  p.features[5] = 0.25 * log2_of(extent(shape_of(key.signature.inputs, 0), 0));  // batch or picture: a small difference
  p.variant = key.pass == Pass::forward && key.signature.inputs.size() > 2 ? 1 : 0;
}

// ---- the others

void set_place(const Attention& op, const KernelKey& key, Place& p) {
  const Shape &q = shape_of(key.signature.inputs, 0), &k = shape_of(key.signature.inputs, 1);
  const double s = extent(q, 2), t = extent(k, 2) * static_cast<double>(op.ring);
  p.variant = op.ring > 1 ? 1 : 0;
  p.family.category = (op.causal ? 1U : 0U) | (op.dropout > 0 ? 2U : 0U) | (key.signature.inputs.size() > 3 ? 4U : 0U);
  const double rows = log2_of(extent(q, 0) * extent(q, 1)), group = log2_of(extent(q, 1)) - log2_of(extent(k, 1));
  constexpr double how_split = 0.3;  // batch or heads: a small difference
  constexpr double head_size = 3.0;  // 64 and 72 run different code
  p.features = {
      rows, how_split * log2_of(extent(q, 0)), log2_of(s), head_size * log2_of(extent(q, 3)), log2_of(t) - log2_of(s),
      group};
}

void set_channels(const KernelKey& key, Place& p) {
  const Shape& x = shape_of(key.signature.inputs, 0);
  p.features = features({extent(x, 0), extent(x, 1), static_cast<double>(product(x, 2, x.size()))});
}
void set_place(const Normalization& op, const KernelKey& key, Place& p) {
  const Shape& x = shape_of(key.signature.inputs, 0);
  const auto axes = static_cast<std::size_t>(std::max<std::int64_t>(op.axes, 0));
  constexpr std::uint32_t one_kernel = 16;
  p.family.category = number(op.kind) + (op.in_one_kernel ? one_kernel : 0);
  if (op.kind == NormalizationKind::layer || op.kind == NormalizationKind::rms) {
    const std::size_t split = x.size() - std::min(axes, x.size());
    p.features =
        features({static_cast<double>(product(x, 0, split)), static_cast<double>(product(x, split, x.size()))});
  } else {
    set_channels(key, p);
  }
}

void set_place(const NormStatistics& op, const KernelKey& key, Place& p) {
  p.family.category = op.groups > 0 ? 1 : 0;
  set_channels(key, p);
}
void set_place(const ApplyNorm& op, const KernelKey& key, Place& p) {
  p.family.category = op.groups > 0 ? 1 : 0;
  set_channels(key, p);
}

// Turned around, or with a subtraction behind it, it is several kernels.
void set_place(const RunningSum& op, const KernelKey& key, Place& p) {
  const Shape& x = shape_of(key.signature.inputs, 0);
  p.family.category = (op.reverse ? 1U : 0U) | (op.exclusive ? 2U : 0U);
  p.features = features({static_cast<double>(element_count(x)), extent(x, static_cast<std::size_t>(op.axis))});
}

void set_place(const Pool& op, const KernelKey& key, Place& p) {
  const Shape &x = shape_of(key.signature.inputs, 0), &y = shape_of(key.signature.outputs, 0);
  const double window = op.global ? static_cast<double>(product(x, 2, x.size()))
                                  : static_cast<double>(product(op.kernel, 0, op.kernel.size()));
  p.family.category = number(op.kind) * 2 + (op.global ? 1 : 0);
  p.features = features({static_cast<double>(element_count(y)), window});
  p.features[2] = log2_of(static_cast<double>(element_count(x))) - p.features[0];  // strides
}

void set_place(const Unary& op, const KernelKey& key, Place& p) {
  p.family.category = number(op.kind);
  p.features = features({elements(key.signature.outputs, 0)});
}
void set_place(const Binary& op, const KernelKey& key, Place& p) {
  const auto& inputs = key.signature.inputs;
  const bool broadcast = inputs.size() > 1 && inputs[0] != inputs[1];
  p.family.category = number(op.kind) * 2 + (broadcast ? 1 : 0);
  p.features = features({elements(key.signature.outputs, 0)});
  if (broadcast) p.features[1] = log2_of(std::min(elements(inputs, 0), elements(inputs, 1)));
}
void set_place(const Softmax& op, const KernelKey& key, Place& p) {
  const Shape& x = shape_of(key.signature.inputs, 0);
  const auto axis = static_cast<std::size_t>(op.axis < 0 ? op.axis + static_cast<std::int64_t>(x.size()) : op.axis);
  const double length = extent(x, axis), inner = static_cast<double>(product(x, axis + 1, x.size()));
  p.family.category = op.log ? 1 : 0;
  p.features = features({elements(key.signature.inputs, 0) / std::max(1.0, length), length, inner});
}
void set_classes(std::int64_t class_axis, const KernelKey& key, Place& p) {
  const Shape& x = shape_of(key.signature.inputs, 0);
  const double classes = extent(x, static_cast<std::size_t>(std::max<std::int64_t>(class_axis, 0)));
  p.features = features({elements(key.signature.inputs, 0) / std::max(1.0, classes), classes});
}
void set_place(const CrossEntropy& op, const KernelKey& key, Place& p) { set_classes(op.class_axis, key, p); }
void set_place(const ClassStatistics& op, const KernelKey& key, Place& p) { set_classes(op.class_axis, key, p); }
void set_place(const Embedding& op, const KernelKey& key, Place& p) {
  const Shape& table = shape_of(key.signature.inputs, 0);
  p.family.category = op.partial ? 1 : 0;
  p.features = features({elements(key.signature.inputs, 1), extent(table, 1), extent(table, 0)});
}
void set_place(const Reduce& op, const KernelKey& key, Place& p) {
  const Shape& x = shape_of(key.signature.inputs, 0);
  const bool inner =
      std::find(op.axes.begin(), op.axes.end(), static_cast<std::int64_t>(x.size()) - 1) != op.axes.end();
  p.family.category = number(op.kind) * 2 + (inner ? 1 : 0);  // along or across the contiguous dimension
  p.features = features({elements(key.signature.inputs, 0), elements(key.signature.outputs, 0)});
}
void set_place(const OptimizerUpdate& op, const KernelKey& key, Place& p) {
  p.family.category = number(op.kind) * 8 + (op.written ? 4 : 0) + (op.fused ? 2 : 0) + (op.weight_decay ? 1 : 0);
  p.features = features({elements(key.signature.inputs, 0)});
}
void set_place(const Resize& op, const KernelKey& key, Place& p) {
  p.family.category = number(op.kind);
  p.features = features({elements(key.signature.inputs, 0), elements(key.signature.outputs, 0)});
}
void set_place(const Cast& op, const KernelKey& key, Place& p) {
  p.family.category = number(op.to);
  p.features = features({elements(key.signature.outputs, 0)});
}
// What is copied at once, beside how much.
void set_place(const Packing& op, const KernelKey& key, Place& p) {
  const auto run = [&](std::int64_t dim, const Shape& whole, const Ints& pieces) {
    if (dim == Packing::none) return std::numeric_limits<double>::infinity();
    const double shares = static_cast<double>(op.ways) * static_cast<double>(std::max<std::size_t>(1, pieces.size()));
    return static_cast<double>(product(whole, static_cast<std::size_t>(dim), whole.size())) / shares;
  };
  p.family.category = (op.apart != Packing::none ? 1 : 0) + (op.together != Packing::none ? 2 : 0);
  p.features = features({elements(key.signature.inputs, 0), elements(key.signature.outputs, 0),
                         std::min(run(op.apart, shape_of(key.signature.inputs, 0), op.apart_pieces),
                                  run(op.together, shape_of(key.signature.outputs, 0), op.together_pieces))});
}
void set_place(const HaloPacking& op, const KernelKey& key, Place& p) {
  p.family.category = (op.sums ? 1 : 0) + (op.middle ? 2 : 0);
  p.features = features({elements(key.signature.inputs, 0), elements(key.signature.outputs, 0),
                         extent_from_back(shape_of(key.signature.inputs, 0), 0)});
}
void set_place(const auto&, const KernelKey& key, Place& p) {
  p.features = features({elements(key.signature.inputs, 0), elements(key.signature.outputs, 0)});
}

// A convolution as the product that computes it (implicit GEMM).
std::optional<Product> product(const Convolution& op, const KernelKey& key) {
  const auto s = sizes(op, key.signature);
  const double depth = s.c * s.window;
  if (key.pass == Pass::forward) return Product{s.pixels, s.k, depth, s.groups, weight_nk};
  if (key.gradients == 1) return Product{s.pixels, depth, s.k, s.groups, gradient_x};
  if (key.gradients == 2) return Product{s.k, depth, s.pixels, s.groups, gradient_w};
  return std::nullopt;
}
std::optional<Product> product(const auto&, const KernelKey&) { return std::nullopt; }

}  // namespace

Place place(const KernelKey& key) {
  Place p;
  p.family = {static_cast<std::uint8_t>(key.signature.attributes.index()), key.pass,
              static_cast<std::uint8_t>(key.gradients), key.signature.dtype, 0};
  std::visit([&](const auto& op) { set_place(op, key, p); }, key.signature.attributes);
  return p;
}

Place place(DType dtype, const Product& p) { return gemm(dtype, p); }

std::optional<Product> as_product(const KernelKey& key) {
  return std::visit([&](const auto& op) { return product(op, key); }, key.signature.attributes);
}

bool is_depthwise(const KernelKey& key) {
  const auto* op = std::get_if<Convolution>(&key.signature.attributes);
  return op != nullptr && op->groups > 1 && sizes(*op, key.signature).c == 1;
}

}  // namespace sibyl::interpolation
