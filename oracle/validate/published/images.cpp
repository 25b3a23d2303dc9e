#include "oracle/validate/published/images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace sibyl::published {

Ints stated_extents(const std::string& text) {
  constexpr std::int64_t most = 65536;
  Ints extents;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t extent = 0;
    const auto [next, problem] = std::from_chars(at, end, extent);
    if (problem != std::errc{} || extent < 1 || extent > most) return {};
    extents.push_back(extent);
    if (next == end) return extents;
    if (*next != 'x' && *next != 'X') return {};
    at = next + 1;
  }
  return {};
}

Shape image_shape(const Graph& graph) {
  constexpr std::size_t least_axes = 4;  // batch, channels and two of the image
  for (const Tensor& tensor : graph.tensors())
    if (tensor.kind == TensorKind::input && tensor.dtype == DType::f32 && tensor.shape.size() >= least_axes)
      return tensor.shape;
  return {};
}

Result<Ints> image_extents(const Ints& stated, const Shape& image) {
  const auto axes = static_cast<std::ptrdiff_t>(image.size()) - 2;
  const auto given = static_cast<std::ptrdiff_t>(stated.size());
  if (given == 1) return Ints(static_cast<std::size_t>(axes), stated.front());
  const bool channels = given == axes + 1 && stated.front() == image[1];
  if (!channels && given != axes)
    return fail(fmt::format("images of {}: the network takes {}", fmt::join(stated, "x"),
                            fmt::join(image.begin() + 1, image.end(), "x")));
  return Ints(stated.end() - axes, stated.end());
}

}  // namespace sibyl::published
