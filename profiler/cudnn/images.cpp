#include "profiler/cudnn/images.h"

namespace sibyl::cudnn {

Shape at_least_four(Shape shape) {
  while (shape.size() < 4)
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, shape.size())), 1);
  return shape;
}

Ints spatial(Ints values, std::int64_t filler) {
  while (values.size() < 2) values.insert(values.begin(), filler);
  return values;
}

Shape strides_of(const Shape& shape, Layout layout) {
  Shape strides(shape.size(), 1);
  std::int64_t stride = 1;
  if (layout == Layout::nhwc && shape.size() > 2) {
    strides[1] = 1;
    stride = shape[1];
    for (std::size_t d = shape.size() - 1; d >= 2; --d) {
      strides[d] = stride;
      stride *= shape[d];
    }
    strides[0] = stride;
    return strides;
  }
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

Strides channel_broadcast(const Shape& shape, Layout layout) {
  const std::int64_t n = shape.at(0), channels = shape.at(1);
  const std::int64_t pixels = element_count(shape) / std::max<std::int64_t>(1, n * channels);
  Strides s;
  s.rank = 3;
  if (layout == Layout::nhwc) {
    s.extent[0] = n, s.extent[1] = pixels, s.extent[2] = channels;
    s.b[2] = 1;
  } else {
    s.extent[0] = n, s.extent[1] = channels, s.extent[2] = pixels;
    s.b[1] = 1;
  }
  s.a[0] = channels * pixels, s.a[1] = s.extent[2], s.a[2] = 1;
  return s;
}

}  // namespace sibyl::cudnn
