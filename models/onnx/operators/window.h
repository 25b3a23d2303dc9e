// The sliding window that convolutions and pools share: kernel, stride, dilation and padding of each spatial dimension.
#pragma once

#include "models/onnx/node.h"

namespace sibyl::onnx_import {

struct Window {
  Ints kernel, stride, dilation, pad_begin, pad_end;
};

// From the node's attributes; `kernel` where kernel_shape is absent. Every list has an entry per spatial dimension;
// auto_pad is resolved for `input` (spatial extents only). Error: lists of the wrong length, or values below their
// least.
Result<Window> read_window(const Node& node, const Shape& input, const Ints& kernel);

// Number of positions along one dimension; below 1 the window does not fit.
std::int64_t positions(const Window& window, std::size_t i, std::int64_t input, bool ceil_mode);

Shape spatial(const Shape& shape);  // without batch and channels

}  // namespace sibyl::onnx_import
