#include <algorithm>
#include <limits>

#include "aten/operations/families.h"

namespace sibyl::aten {
namespace {

// ATen lists padding from the last dimension to the first, begin and end of each.
std::vector<std::int64_t> aten_padding(const Ints& begin, const Ints& end) {
  std::vector<std::int64_t> pairs;
  for (std::size_t i = begin.size(); i-- > 0;) pairs.insert(pairs.end(), {begin[i], end[i]});
  return pairs;
}

// Pads x's spatial dimensions, which come last.
at::Tensor pad_spatial(const at::Tensor& x, const Ints& begin, const Ints& end, double value) {
  return at::constant_pad_nd(x, aten_padding(begin, end), value);
}

bool all_zero(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v == 0; });
}

// A transposed convolution's padding crops its result.
at::Tensor crop_spatial(at::Tensor y, const Ints& begin, const Ints& end) {
  const std::int64_t first = y.dim() - static_cast<std::int64_t>(begin.size());
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const std::int64_t axis = first + static_cast<std::int64_t>(i);
    y = y.slice(axis, begin[i], y.size(axis) - end[i]);
  }
  return y;
}

at::Tensor convolve(const Convolution& op, const at::Tensor& x, const Tensors& in, const Ints& pad) {
  const Ints output_pad = op.output_pad.empty() ? Ints(op.kernel.size(), 0) : op.output_pad;
  return at::convolution(x, in.at(1), optional_operand(in, 2), op.stride, pad, op.dilation, op.transposed, output_pad,
                         op.groups);
}

}  // namespace

at::Tensor run(const Convolution& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  if (op.pad_begin == op.pad_end) return convolve(op, x, in, op.pad_begin);
  // ATen pads both ends alike; models that do not (TensorFlow's SAME) pad first, or crop after.
  const Ints none(op.kernel.size(), 0);
  if (op.transposed) return crop_spatial(convolve(op, x, in, none), op.pad_begin, op.pad_end);
  return convolve(op, pad_spatial(x, op.pad_begin, op.pad_end, 0.0), in, none);
}

namespace {

at::Tensor pool_max(const Pool& op, const at::Tensor& x, const Ints& pad) {
  const Ints dilation = op.dilation.empty() ? Ints(op.kernel.size(), 1) : op.dilation;
  switch (op.kernel.size()) {
    case 1: return at::max_pool1d(x, op.kernel, op.stride, pad, dilation, op.ceil_mode);
    case 2: return at::max_pool2d(x, op.kernel, op.stride, pad, dilation, op.ceil_mode);
    default: return at::max_pool3d(x, op.kernel, op.stride, pad, dilation, op.ceil_mode);
  }
}

at::Tensor pool_average(const Pool& op, const at::Tensor& x, const Ints& pad) {
  switch (op.kernel.size()) {
    case 1: return at::avg_pool1d(x, op.kernel, op.stride, pad, op.ceil_mode, op.count_include_pad);
    case 2: return at::avg_pool2d(x, op.kernel, op.stride, pad, op.ceil_mode, op.count_include_pad);
    default: return at::avg_pool3d(x, op.kernel, op.stride, pad, op.ceil_mode, op.count_include_pad);
  }
}

at::Tensor pool_globally(const Pool& op, const at::Tensor& x) {
  const Ints one(static_cast<std::size_t>(x.dim() - 2), 1);
  const bool average = op.kind == PoolKind::average;
  switch (one.size()) {
    case 1: return average ? at::adaptive_avg_pool1d(x, one) : std::get<0>(at::adaptive_max_pool1d(x, one));
    case 2: return average ? at::adaptive_avg_pool2d(x, one) : std::get<0>(at::adaptive_max_pool2d(x, one));
    default: return average ? at::adaptive_avg_pool3d(x, one) : std::get<0>(at::adaptive_max_pool3d(x, one));
  }
}

// ATen pads both ends alike and by at most half the kernel.
bool pads_as_aten(const Pool& op) {
  if (op.pad_begin != op.pad_end) return false;
  for (std::size_t i = 0; i < op.pad_begin.size(); ++i)
    if (2 * op.pad_begin[i] > op.kernel[i]) return false;
  return true;
}

}  // namespace

at::Tensor run(const Pool& op, const Tensors& in) {
  const at::Tensor& x = in.at(0);
  if (op.global) return pool_globally(op, x);
  const Ints none(op.kernel.size(), 0);
  const Ints pad = op.pad_begin.empty() ? none : op.pad_begin;
  if (op.kind == PoolKind::max) {
    if (pads_as_aten(op)) return pool_max(op, x, pad);
    return pool_max(op, pad_spatial(x, op.pad_begin, op.pad_end, -std::numeric_limits<double>::infinity()), none);
  }
  TORCH_CHECK(std::all_of(op.dilation.begin(), op.dilation.end(), [](std::int64_t d) { return d == 1; }),
              "ATen has no dilated average pooling");
  if (pads_as_aten(op)) return pool_average(op, x, pad);
  const at::Tensor y = pool_average(op, pad_spatial(x, op.pad_begin, op.pad_end, 0.0), none);
  if (op.count_include_pad) return y;
  // The share of each window that is not padding.
  const at::Tensor ones = at::ones_like(x.detach().slice(0, 0, 1).slice(1, 0, 1));
  return y / pool_average(op, pad_spatial(ones, op.pad_begin, op.pad_end, 0.0), none);
}

at::Tensor run(const Pad& op, const Tensors& in) {
  if (all_zero(op.begin) && all_zero(op.end)) return in.at(0);
  return at::constant_pad_nd(in.at(0), aten_padding(op.begin, op.end), 0);
}

at::Tensor run(const Resize& op, const Tensors& in, const Shapes& out) {
  const at::Tensor& x = in.at(0);
  const Ints size(out.at(0).begin() + 2, out.at(0).end());
  switch (op.kind) {
    case ResizeKind::nearest:
      if (size.size() == 1) return at::upsample_nearest1d(x, size);
      return size.size() == 2 ? at::upsample_nearest2d(x, size) : at::upsample_nearest3d(x, size);
    case ResizeKind::linear:
      if (size.size() == 1) return at::upsample_linear1d(x, size, false);
      return size.size() == 2 ? at::upsample_bilinear2d(x, size, false) : at::upsample_trilinear3d(x, size, false);
    case ResizeKind::cubic: break;
  }
  TORCH_CHECK(size.size() == 2, "ATen interpolates cubically in two dimensions only");
  return at::upsample_bicubic2d(x, size, false);
}

}  // namespace sibyl::aten
