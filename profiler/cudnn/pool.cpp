// Pooling, by cuDNN. Over the whole picture it is a mean, as PyTorch runs it.
#include "profiler/cudnn/images.h"
#include "profiler/cudnn/legacy.h"
#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

struct Pooling : PoolingDescriptor {
  explicit Pooling(const Pool& op) {
    std::vector<int> window, pad, stride;
    for (const auto v : spatial(op.kernel, 1)) window.push_back(static_cast<int>(v));
    for (const auto v : spatial(op.pad_begin, 0)) pad.push_back(static_cast<int>(v));
    for (const auto v : spatial(op.stride, 1)) stride.push_back(static_cast<int>(v));
    const cudnnPoolingMode_t mode = op.kind == PoolKind::max ? CUDNN_POOLING_MAX
                                    : op.count_include_pad   ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                                             : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    check(cudnnSetPoolingNdDescriptor(handle, mode, CUDNN_PROPAGATE_NAN, static_cast<int>(window.size()), window.data(),
                                      pad.data(), stride.data()),
          "a pooling");
  }
};

Program global(const Pool& op, const Maker& m) {
  if (op.kind == PoolKind::max) throw Refusal("the cudnn backend has no maximum over whole pictures");
  const Shape& x = m.input(0);
  const std::int64_t planes = x.at(0) * x.at(1), pixels = element_count(x) / std::max<std::int64_t>(1, planes);
  Program p;
  if (!m.backward()) {
    p.warm = p.add(m.values(x));
    const std::size_t y = p.add(m.result(m.output()));
    if (m.settings.layout == Layout::nhwc)
      add_sum(p, Sum::mean, m.type, 0, y, x[0], pixels, x[1]);
    else
      add_sum(p, Sum::mean, m.type, 0, y, planes, pixels, 1);
    return p;
  }
  const std::size_t dy = p.add(m.values(m.output())), dx = p.add(m.result(x));
  p.warm = dy;
  // The gradient is expanded, and divided as it is copied.
  Strides s;
  s.rank = 2, s.extent[0] = planes, s.extent[1] = pixels, s.a[0] = 1;
  const std::int64_t n = element_count(x);
  p.launch([=, type = m.type](const Run& r) {
    binary(static_cast<int>(BinaryKind::div), type, r.at(dy), r.at(dy), r.at(dx), n, s, false, r.stream());
  });
  return p;
}

}  // namespace

Program program(const Pool& op, const Maker& m) {
  if (op.global) return global(op, m);
  for (const std::int64_t d : op.dilation)
    if (d != 1) throw Refusal("cuDNN pools without dilation only");
  const auto pooling = std::make_shared<Pooling>(op);
  const auto x_shape = std::make_shared<TensorDescriptor>(m.type, at_least_four(m.input(0)), m.settings.layout);
  const auto y_shape = std::make_shared<TensorDescriptor>(m.type, at_least_four(m.output()), m.settings.layout);
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), y = p.add(m.values(m.output()));
  const auto forward = [=](const Run& r) {
    const float one = 1.f, zero = 0.f;
    check(cudnnPoolingForward(r.libraries.cudnn(), pooling->handle, &one, x_shape->handle, r.at(x), &zero,
                              y_shape->handle, r.at(y)),
          "pooling");
  };
  if (!m.backward()) {
    p.warm = x;
    p.launch(forward);
    return p;
  }
  const std::size_t dy = p.add(m.values(m.output())), dx = p.add(m.result(m.input(0)));
  p.before.push_back({forward, 0, {}});
  p.warm = dy;
  p.launch([=](const Run& r) {
    const float one = 1.f, zero = 0.f;
    check(cudnnPoolingBackward(r.libraries.cudnn(), pooling->handle, &one, y_shape->handle, r.at(y), y_shape->handle,
                               r.at(dy), x_shape->handle, r.at(x), &zero, x_shape->handle, r.at(dx)),
          "pooling's gradient");
  });
  return p;
}

}  // namespace sibyl::cudnn
