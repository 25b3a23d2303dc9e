// Convolutions through cuDNN's graph interface: forward, the gradient of the data, the gradient of the filter, in any
// number of spatial dimensions, groups and dilations. The bias is a kernel of its own, as PyTorch runs it.
#include <array>

#include "profiler/cudnn/graph.h"
#include "profiler/cudnn/images.h"
#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

enum class Kind { forward, data, filter };

struct Attributes_ {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};

Attributes_ attributes_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    case Kind::data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case Kind::filter: break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

Descriptor convolution(const Convolution& op) {
  const Ints none(op.kernel.size(), 0);
  Descriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const auto mode = CUDNN_CROSS_CORRELATION;
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(std::max<std::size_t>(2, op.kernel.size())));
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(op.dilation, 1));
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(op.stride, 1));
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(op.pad_begin, 0));
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(op.pad_end, 0));
  c.finalize("a convolution");
  return c;
}

// Buffers of the program, and their shapes as an untransposed convolution sees them.
struct Operands {
  std::size_t x, w, y;
  Shape x_shape, w_shape, y_shape;
};

Step step(const Convolution& op, const Maker& m, Kind kind, const Operands& o) {
  const Attributes_ a = attributes_of(kind);
  const cudnnDataType_t type = data_type(m.type);
  const auto described = [&](std::int64_t id, const Shape& shape) {
    const Shape extents = at_least_four(shape);
    return tensor(id, type, extents, strides_of(extents, m.settings.layout));
  };
  const Descriptor x = described(1, o.x_shape), w = described(2, o.w_shape), y = described(3, o.y_shape);
  const Descriptor shape = convolution(op);
  const float one = 1.f, zero = 0.f;
  std::vector<Descriptor> operations;
  operations.emplace_back(a.operation);
  Descriptor& operation = operations.back();
  operation.set(a.alpha, CUDNN_TYPE_FLOAT, &one).set(a.beta, CUDNN_TYPE_FLOAT, &zero);
  operation.set(a.convolution, shape).set(a.x, x).set(a.w, w).set(a.y, y).finalize("a convolution of these shapes");

  // PyTorch keeps f32 convolutions from tensor cores unless TF32 is allowed.
  const bool plain_f32 = m.type == Type::f32 && !computes_in_tf32(m.key);
  Step result;
  for (const auto& plan : plans(m.target, operations, {!plain_f32, 0}, m.settings.best)) {
    const auto run = [plan, o](const Run& r) {
      const std::array<std::int64_t, 3> ids{1, 2, 3};
      const std::array<void*, 3> data{r.at(o.x), r.at(o.w), r.at(o.y)};
      plan->execute(r.libraries, ids, data, r.workspace);
    };
    result.choices.push_back({run, plan->workspace(), plan->name()});
  }
  return result;
}

// y += bias, one value a channel.
void add_bias(Program& p, const Maker& m, std::size_t bias, std::size_t y) {
  const Shape& shape = m.output();
  const Strides s = channel_broadcast(shape, m.settings.layout);
  const std::int64_t n = element_count(shape);
  p.launch([=, type = m.type](const Run& r) {
    binary(static_cast<int>(BinaryKind::add), type, r.at(y), r.at(bias), r.at(y), n, s, false, r.stream());
  });
}

// The sum of dy over samples and pixels.
void add_bias_gradient(Program& p, const Maker& m, std::size_t dy) {
  const Shape& shape = m.output();
  const std::size_t result = p.add(m.result({shape[1]}));
  const std::int64_t n = shape[0], channels = shape[1],
                     pixels = element_count(shape) / std::max<std::int64_t>(1, n * channels);
  if (m.settings.layout == Layout::nhwc) return add_sum(p, Sum::plain, m.type, dy, result, 1, n * pixels, channels);
  const std::size_t partial = p.add(m.result({n, channels}));
  add_sum(p, Sum::plain, m.type, dy, partial, n * channels, pixels, 1);
  add_sum(p, Sum::plain, m.type, partial, result, 1, n, channels);
}

}  // namespace

Program program(const Convolution& op, const Maker& m) {
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), w = p.add(m.values(m.input(1)));
  const std::size_t y = p.add(m.values(m.output()));  // the result; in backward its gradient
  // A transposed convolution is the gradient of the data of the one that maps its result to its operand.
  const Operands o = op.transposed ? Operands{y, w, x, m.output(), m.input(1), m.input(0)}
                                   : Operands{x, w, y, m.input(0), m.input(1), m.output()};
  if (!m.backward()) {
    p.steps.push_back(step(op, m, op.transposed ? Kind::data : Kind::forward, o));
    if (m.has(2)) add_bias(p, m, p.add(m.values(m.input(2))), y);
    p.warm = x;
    return p;
  }
  p.warm = y;
  if (m.wants(0)) {
    Operands of_x = o;
    (op.transposed ? of_x.y : of_x.x) = p.add(m.result(m.input(0)));
    p.steps.push_back(step(op, m, op.transposed ? Kind::forward : Kind::data, of_x));
  }
  if (m.wants(1)) {
    Operands of_w = o;
    of_w.w = p.add(m.result(m.input(1)));
    p.steps.push_back(step(op, m, Kind::filter, of_w));
  }
  if (m.wants(2)) add_bias_gradient(p, m, y);
  return p;
}

}  // namespace sibyl::cudnn
