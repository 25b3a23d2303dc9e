// Batch, instance and response normalisation and softmax by cuDNN; layer, RMS and group normalisation by kernels of one
// block a row, as cuDNN's older interface has none; cross-entropy as PyTorch runs it: a log-softmax, then a look-up.
#include "profiler/cudnn/legacy.h"
#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

// x[samples, channels, pixels…] normalised by channel.
Program by_channel(const Normalization& op, const Maker& m, const Shape& shape) {
  // As PyTorch chooses: the persistent kernels where channels lie innermost.
  const bool nhwc = m.settings.layout == Layout::nhwc;
  const cudnnBatchNormMode_t mode = nhwc ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
  const Shape image = at_least_four(shape), channel{1, image.at(1), 1, 1};
  Shape per_channel(image.size(), 1);
  per_channel[1] = image[1];
  const auto x_shape = std::make_shared<TensorDescriptor>(m.type, image, m.settings.layout);
  const auto c_shape = std::make_shared<TensorDescriptor>(Type::f32, per_channel, Layout::nchw);
  Program p;
  const Buffer channel_values{Type::f32, image[1], Buffer::Fill::values, 1};
  const std::size_t x = p.add(m.values(shape)), y = p.add(m.values(shape));  // y: the result, or its gradient
  std::size_t c[6];  // scale, shift, running mean and variance, this batch's
  for (std::size_t& buffer : c) buffer = p.add(channel_values);
  const std::array<std::size_t, 6> at{c[0], c[1], c[2], c[3], c[4], c[5]};
  const bool running = op.kind == NormalizationKind::batch;
  const double epsilon = std::max(op.epsilon, CUDNN_BN_MIN_EPSILON), momentum = op.momentum;
  if (!m.backward()) {
    p.warm = x;
    p.launch([=](const Run& r) {
      const float one = 1.f, zero = 0.f;
      check(cudnnBatchNormalizationForwardTraining(r.libraries.cudnn(), mode, &one, &zero, x_shape->handle, r.at(x),
                                                   x_shape->handle, r.at(y), c_shape->handle, r.at(at[0]), r.at(at[1]),
                                                   momentum, running ? r.at(at[2]) : nullptr,
                                                   running ? r.at(at[3]) : nullptr, epsilon, r.at(at[4]), r.at(at[5])),
            "batch normalisation");
    });
    return p;
  }
  const std::size_t dx = p.add(m.result(shape)), dscale = p.add(channel_values), dshift = p.add(channel_values);
  p.warm = y;
  p.launch([=](const Run& r) {
    const float one = 1.f, zero = 0.f;
    check(cudnnBatchNormalizationBackward(r.libraries.cudnn(), mode, &one, &zero, &one, &zero, x_shape->handle, r.at(x),
                                          x_shape->handle, r.at(y), x_shape->handle, r.at(dx), c_shape->handle,
                                          r.at(at[0]), r.at(dscale), r.at(dshift), epsilon, r.at(at[4]), r.at(at[5])),
          "batch normalisation's gradient");
  });
  return p;
}

// x[rows, length]; `repeat` neighbours share a scale.
struct Rows {
  std::int64_t rows = 1, length = 1, repeat = 1;
};

Program by_row(const Normalization& op, const Maker& m, const Rows& n) {
  const bool centred = op.kind != NormalizationKind::rms, has_shift = m.has(2);
  const std::int64_t parameters = m.has(1) ? element_count(m.input(1)) : n.length / n.repeat;
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), y = p.add(m.values(m.input(0)));
  const std::size_t scale = p.add(m.values({std::max(parameters, n.length / n.repeat)}));
  const std::size_t shift = p.add(m.values({std::max(parameters, n.length / n.repeat)}));
  const std::size_t statistics = p.add({Type::f32, 2 * n.rows, Buffer::Fill::values, 1});
  const Type type = m.type;
  if (!m.backward()) {
    p.warm = x;
    p.launch([=](const Run& r) {
      normalize_rows(centred, type, r.at(x), r.at(scale), has_shift ? r.at(shift) : nullptr, r.at(y),
                     r.as<float>(statistics), n.rows, n.length, n.repeat, r.stream());
    });
    return p;
  }
  p.warm = y;
  if (m.wants(0)) {
    const std::size_t dx = p.add(m.result(m.input(0)));
    p.launch([=](const Run& r) {
      normalize_rows_backward(centred, type, r.at(x), r.at(y), r.at(scale), r.as<float>(statistics), r.at(dx), n.rows,
                              n.length, n.repeat, r.stream());
    });
  }
  if (m.wants(1) || m.wants(2)) {
    const std::size_t dscale = p.add(m.result({n.length})), dshift = p.add(m.result({n.length}));
    p.launch(
        [=](const Run& r) {
          normalize_rows_parameters(type, r.at(x), r.at(y), r.as<float>(statistics), r.at(dscale),
                                    has_shift ? r.at(dshift) : nullptr, n.rows, n.length,
                                    static_cast<float*>(r.workspace), r.stream());
        },
        parameters_workspace(n.rows, n.length));
  }
  return p;
}

// Softmax over the middle of x[outer, length, inner].
struct Middle {
  std::int64_t outer = 1, length = 1, inner = 1;
};
Middle around(const Shape& shape, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis);
  Middle middle;
  for (std::size_t d = 0; d < shape.size(); ++d)
    (d < at ? middle.outer : d == at ? middle.length : middle.inner) *= shape[d];
  return middle;
}

std::function<void(const Run&)> softmax_forward(const Maker& m, const Middle& n, bool log, std::size_t x,
                                                std::size_t y) {
  const auto shape = std::make_shared<TensorDescriptor>(m.type, Shape{n.outer, n.length, n.inner, 1}, Layout::nchw);
  const auto algorithm = log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
  return [=](const Run& r) {
    const float one = 1.f, zero = 0.f;
    check(cudnnSoftmaxForward(r.libraries.cudnn(), algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, &one, shape->handle, r.at(x),
                              &zero, shape->handle, r.at(y)),
          "softmax");
  };
}
std::function<void(const Run&)> softmax_backward(const Maker& m, const Middle& n, bool log, std::size_t y,
                                                 std::size_t dy, std::size_t dx) {
  const auto shape = std::make_shared<TensorDescriptor>(m.type, Shape{n.outer, n.length, n.inner, 1}, Layout::nchw);
  const auto algorithm = log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
  return [=](const Run& r) {
    const float one = 1.f, zero = 0.f;
    check(cudnnSoftmaxBackward(r.libraries.cudnn(), algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, &one, shape->handle, r.at(y),
                               shape->handle, r.at(dy), &zero, shape->handle, r.at(dx)),
          "softmax's gradient");
  };
}

}  // namespace

Program program(const Normalization& op, const Maker& m) {
  const Shape& x = m.input(0);
  switch (op.kind) {
    case NormalizationKind::batch: return by_channel(op, m, x);
    case NormalizationKind::instance: {
      Shape flat = x;  // each sample's channels are channels of one sample, as PyTorch has it
      flat[1] *= flat[0], flat[0] = 1;
      return by_channel(op, m, flat);
    }
    case NormalizationKind::group: {
      const std::int64_t rows = x.at(0) * op.groups,
                         pixels = element_count(x) / std::max<std::int64_t>(1, x[0] * x.at(1));
      return by_row(op, m,
                    {rows, element_count(x) / std::max<std::int64_t>(1, rows), std::max<std::int64_t>(1, pixels)});
    }
    case NormalizationKind::rms:
      if (!op.in_one_kernel) throw Refusal("the cudnn backend times RMS norms that are one kernel (--fused-pointwise)");
      break;
    case NormalizationKind::layer: break;
  }
  std::int64_t length = 1;
  for (std::int64_t i = 0; i < op.axes && i < static_cast<std::int64_t>(x.size()); ++i)
    length *= x[x.size() - 1 - static_cast<std::size_t>(i)];
  return by_row(op, m, {element_count(x) / std::max<std::int64_t>(1, length), length, 1});
}

Program program(const LocalResponseNorm& op, const Maker& m) {
  const auto norm = std::make_shared<LrnDescriptor>();
  check(cudnnSetLRNDescriptor(norm->handle, static_cast<unsigned>(op.size), op.alpha, op.beta, op.k), "normalisation");
  const auto shape = std::make_shared<TensorDescriptor>(m.type, at_least_four(m.input(0)), m.settings.layout);
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), y = p.add(m.values(m.input(0)));
  p.warm = x;
  const auto forward = [=](const Run& r) {
    const float one = 1.f, zero = 0.f;
    check(cudnnLRNCrossChannelForward(r.libraries.cudnn(), norm->handle, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one,
                                      shape->handle, r.at(x), &zero, shape->handle, r.at(y)),
          "response normalisation");
  };
  if (!m.backward()) {
    p.launch(forward);
    return p;
  }
  const std::size_t dy = p.add(m.values(m.input(0))), dx = p.add(m.result(m.input(0)));
  p.before.push_back({forward, 0, {}});
  p.warm = dy;
  p.launch([=](const Run& r) {
    const float one = 1.f, zero = 0.f;
    check(cudnnLRNCrossChannelBackward(r.libraries.cudnn(), norm->handle, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one,
                                       shape->handle, r.at(y), shape->handle, r.at(dy), shape->handle, r.at(x), &zero,
                                       shape->handle, r.at(dx)),
          "response normalisation's gradient");
  });
  return p;
}

Program program(const Softmax& op, const Maker& m) {
  const Middle n = around(m.input(0), op.axis);
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), y = p.add(m.values(m.input(0)));
  if (!m.backward()) {
    p.warm = x;
    p.launch(softmax_forward(m, n, op.log, x, y));
    return p;
  }
  p.warm = x;  // as the gradient that arrives
  p.launch(softmax_backward(m, n, op.log, y, x, p.add(m.result(m.input(0)))));
  return p;
}

Program program(const CrossEntropy& op, const Maker& m) {
  const Middle n = around(m.input(0), op.class_axis);
  const std::int64_t places = n.outer * n.inner;
  Program p;
  const std::size_t z = p.add(m.values(m.input(0))), logs = p.add(m.values(m.input(0)));
  const std::size_t targets = p.add({Type::i64, places, Buffer::Fill::ids, n.length});
  const Type type = m.type;
  if (!m.backward()) {
    const std::size_t losses = p.add(m.result({places})), loss = p.add(m.result({}));
    p.warm = z;
    p.launch(softmax_forward(m, n, true, z, logs));
    p.launch([=](const Run& r) {
      pick(type, r.at(logs), r.as<std::int64_t>(targets), r.at(losses), n.outer, n.length, n.inner, r.stream());
    });
    add_sum(p, Sum::mean, type, losses, loss, 1, places, 1);
    return p;
  }
  const std::size_t dlogs = p.add(m.result(m.input(0)));
  const std::size_t bytes = p.buffers[dlogs].bytes();
  p.launch([=](const Run& r) {
    check(cudaMemsetAsync(r.at(dlogs), 0, bytes, r.stream()), "zeros");
    pick_backward(type, r.as<std::int64_t>(targets), r.at(dlogs), n.outer, n.length, n.inner, r.stream());
  });
  p.launch(softmax_backward(m, n, true, logs, dlogs, p.add(m.result(m.input(0)))));
  return p;
}

}  // namespace sibyl::cudnn
