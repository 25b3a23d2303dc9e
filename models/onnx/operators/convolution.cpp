// Conv and ConvTranspose in any number of spatial dimensions.
#include <fmt/format.h>

#include "models/onnx/operators/families.h"
#include "models/onnx/operators/window.h"

namespace sibyl::onnx_import {
namespace {

Result<void> check_operands(const Node& node) {
  const Shape &x = node.shape(0), &w = node.shape(1);
  if (x.size() < 3 || x.size() != w.size())
    return fail("a convolution needs an input and a weight of the same rank, 3 or more; they are " + to_string(x) +
                " and " + to_string(w));
  return {};
}

// A bias of zeros that is not trained is none.
std::vector<std::size_t> with_bias(const Node& node) {
  if (node.has(2) && node.is_zero(2)) return {0, 1};
  return {0, 1, 2};
}

Result<Lowering> conv(const Node& node) {
  SIBYL_CHECK(check_operands(node));
  const Shape &x = node.shape(0), &w = node.shape(1);
  const std::int64_t groups = node.integer("group", 1);
  if (groups < 1 || x[1] % groups != 0 || x[1] / groups != w[1] || w[0] % groups != 0)
    return fail(fmt::format("{} groups do not fit input {} and weight {}", groups, to_string(x), to_string(w)));
  SIBYL_TRY(Window window, read_window(node, spatial(x), spatial(w)));
  if (window.kernel != spatial(w)) return fail("kernel_shape differs from the weight's shape");
  Shape y{x[0], w[0]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) {
    y.push_back(positions(window, i, x[i + 2], false));
    if (y.back() < 1) return fail("the kernel is larger than the padded input " + to_string(x));
  }
  Convolution attributes{window.kernel,  window.stride, window.dilation, window.pad_begin,
                         window.pad_end, groups,        false,           {}};
  return single(node, std::move(attributes), with_bias(node), std::move(y), node.dtype(0));
}

// Either the padding is given and the extents follow, or output_shape is given and the padding follows.
Result<Lowering> conv_transpose(const Node& node) {
  SIBYL_CHECK(check_operands(node));
  const Shape &x = node.shape(0), &w = node.shape(1);
  const std::int64_t groups = node.integer("group", 1);
  if (groups < 1 || x[1] != w[0] || x[1] % groups != 0)
    return fail(fmt::format("{} groups do not fit input {} and weight {}", groups, to_string(x), to_string(w)));
  if (w[1] > (std::int64_t{1} << 62) / groups) return fail("the weight is too large");
  SIBYL_TRY(Window window, read_window(node, spatial(x), spatial(w)));
  if (window.kernel != spatial(w)) return fail("kernel_shape differs from the weight's shape");
  const std::size_t rank = x.size() - 2;
  const Ints extra = node.integers("output_padding").value_or(Ints(rank, 0));
  const auto wanted = node.integers("output_shape");
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  const bool same = auto_pad.starts_with("SAME");
  if (extra.size() != rank || (wanted && wanted->size() != rank))
    return fail("output_padding or output_shape has the wrong length");
  Shape y{x[0], w[1] * groups};
  for (std::size_t i = 0; i < rank; ++i) {
    if (extra[i] < 0 || extra[i] > window.stride[i] * window.dilation[i]) return fail("output_padding is out of range");
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilation[i] + 1;
    if (x[i + 2] > 0 && window.stride[i] > (std::int64_t{1} << 61) / x[i + 2]) return fail("the result is too large");
    const std::int64_t whole = window.stride[i] * (x[i + 2] - 1) + extra[i] + reach;
    std::int64_t out = whole - window.pad_begin[i] - window.pad_end[i];
    if (wanted || same) {
      out = wanted ? (*wanted)[i] : x[i + 2] * window.stride[i];
      if (out < 1 || out > whole) return fail(fmt::format("output_shape {} cannot be reached", out));
      const std::int64_t total = whole - out, less = total / 2;
      window.pad_begin[i] = auto_pad == "SAME_UPPER" ? total - less : less;
      window.pad_end[i] = total - window.pad_begin[i];
    }
    if (out < 1) return fail("the padding is larger than the result");
    y.push_back(out);
  }
  Convolution attributes{window.kernel, window.stride, window.dilation, window.pad_begin, window.pad_end, groups,
                         true,          extra};
  return single(node, std::move(attributes), with_bias(node), std::move(y), node.dtype(0));
}

}  // namespace

std::span<const Operator> convolution_operators() {
  static constexpr Operator table[] = {
      {"Conv", conv, 2},
      {"ConvTranspose", conv_transpose, 2},
  };
  return table;
}

}  // namespace sibyl::onnx_import
