#include "models/onnx/operators/window.h"

#include <fmt/format.h>

#include <algorithm>

namespace sibyl::onnx_import {
namespace {

// Larger windows, strides or pads are nonsense, and sums of them must not overflow.
constexpr std::int64_t largest = std::int64_t{1} << 40;

Result<void> check(const Ints& list, std::string_view name, std::size_t rank, std::int64_t least) {
  if (list.size() != rank)
    return fail(fmt::format("{} has {} entries for {} spatial dimensions", name, list.size(), rank));
  for (const std::int64_t value : list)
    if (value < least || value > largest) return fail(fmt::format("{} holds {}", name, value));
  return {};
}

}  // namespace

Shape spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Result<Window> read_window(const Node& node, const Shape& input, const Ints& kernel) {
  const std::size_t rank = input.size();
  Window window;
  window.kernel = node.integers("kernel_shape").value_or(kernel);
  window.stride = node.integers("strides").value_or(Ints(rank, 1));
  window.dilation = node.integers("dilations").value_or(Ints(rank, 1));
  SIBYL_CHECK(check(window.kernel, "kernel_shape", rank, 1));
  SIBYL_CHECK(check(window.stride, "strides", rank, 1));
  SIBYL_CHECK(check(window.dilation, "dilations", rank, 1));
  for (std::size_t i = 0; i < rank; ++i)
    if (input[i] > largest || window.dilation[i] > largest / window.kernel[i]) return fail("the window is too large");
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t out = (input[i] + window.stride[i] - 1) / window.stride[i];
      const std::int64_t reach = (window.kernel[i] - 1) * window.dilation[i] + 1;
      const std::int64_t total =
          std::max<std::int64_t>(0, (std::max<std::int64_t>(out, 1) - 1) * window.stride[i] + reach - input[i]);
      const std::int64_t less = total / 2, more = total - less;
      window.pad_begin.push_back(auto_pad == "SAME_UPPER" ? less : more);
      window.pad_end.push_back(auto_pad == "SAME_UPPER" ? more : less);
    }
    return window;
  }
  if (!auto_pad.empty() && auto_pad != "NOTSET" && auto_pad != "VALID")
    return fail(fmt::format("auto_pad is '{}', not NOTSET, SAME_UPPER, SAME_LOWER or VALID", auto_pad));
  Ints pads = auto_pad == "VALID" ? Ints(2 * rank, 0) : node.integers("pads").value_or(Ints(2 * rank, 0));
  SIBYL_CHECK(check(pads, "pads", 2 * rank, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.pad_begin.assign(pads.begin(), middle);
  window.pad_end.assign(middle, pads.end());
  return window;
}

std::int64_t positions(const Window& window, std::size_t i, std::int64_t input, bool ceil_mode) {
  const std::int64_t reach = (window.kernel[i] - 1) * window.dilation[i] + 1;
  const std::int64_t room = input + window.pad_begin[i] + window.pad_end[i] - reach;
  if (room < 0) return 0;
  std::int64_t count = room / window.stride[i] + 1;
  if (ceil_mode && room % window.stride[i] != 0) {
    // As PyTorch: a last window that would start in the padding behind the input is left out.
    if (count * window.stride[i] < input + window.pad_begin[i]) ++count;
  }
  return count;
}

}  // namespace sibyl::onnx_import
