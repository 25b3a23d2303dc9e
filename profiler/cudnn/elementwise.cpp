// Elementwise operations, dropout, casts, copies, reductions and the squared error.
#include <algorithm>

#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

// The strides of operands that broadcast to `result`, aligned at the last dimension.
Strides broadcast(const Shape& result, const Shape& a, const Shape& b) {
  if (result.size() > most_dimensions) throw Refusal("the cudnn backend broadcasts in at most 8 dimensions");
  Strides s;
  s.rank = static_cast<int>(result.size());
  const auto strides = [&](const Shape& shape, std::int64_t* to) {
    std::int64_t stride = 1;
    for (std::size_t back = 0; back < shape.size() && back < result.size(); ++back) {
      const std::int64_t extent = shape[shape.size() - 1 - back];
      to[result.size() - 1 - back] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
  };
  for (std::size_t d = 0; d < result.size(); ++d) s.extent[d] = result[d];
  strides(a, s.a), strides(b, s.b);
  return s;
}

Sum sum_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum: return Sum::plain;
    case ReduceKind::mean: return Sum::mean;
    case ReduceKind::max: return Sum::maximum;
    case ReduceKind::min: return Sum::minimum;
    case ReduceKind::prod: return Sum::product;
    case ReduceKind::l1: return Sum::absolute;
    case ReduceKind::l2: return Sum::squares;
    case ReduceKind::argmax:
    case ReduceKind::argmin: break;
  }
  throw Refusal("the cudnn backend has no kernel for it");
}

}  // namespace

void add_sum(Program& p, Sum sum, Type type, std::size_t x, std::size_t y, std::int64_t outer, std::int64_t length,
             std::int64_t inner) {
  p.launch(
      [=](const Run& r) {
        reduce(sum, type, r.at(x), r.at(y), outer, length, inner, static_cast<float*>(r.workspace), r.stream());
      },
      reduce_workspace(outer, length, inner));
}

// Dimension by dimension, from the back: each that `to` lacks, or has as 1.
void add_sum_to_shape(Program& p, Type type, std::size_t dy, std::size_t result, const Shape& from, const Shape& to) {
  Shape now = from;
  std::size_t at = dy;
  for (std::size_t back = 0; back < from.size(); ++back) {
    const std::size_t d = from.size() - 1 - back;
    const bool kept = back < to.size() && to[to.size() - 1 - back] == from[d];
    if (kept || from[d] == 1) continue;
    std::int64_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < d; ++i) outer *= now[i];
    for (std::size_t i = d + 1; i < now.size(); ++i) inner *= now[i];
    // Neighbouring dimensions that go are one.
    std::int64_t length = now[d];
    std::size_t first = d;
    while (first > 0 && (back + (d - first) + 1 >= to.size() || to[to.size() - 1 - (back + (d - first) + 1)] == 1)) {
      --first;
      length *= now[first], outer /= std::max<std::int64_t>(1, now[first]);
    }
    for (std::size_t i = first; i <= d; ++i) now[i] = 1;
    const bool last = element_count(now) == element_count(to);
    const std::size_t target = last ? result : p.add({type, element_count(now), Buffer::Fill::nothing, 1});
    add_sum(p, Sum::plain, type, at, target, outer, length, inner);
    if (last) return;
    at = target;
    back += d - first;
  }
}

Program program(const Unary& op, const Maker& m) {
  const std::int64_t n = element_count(m.input(0));
  const auto alpha = static_cast<float>(op.alpha), beta = static_cast<float>(op.beta);
  const int kind = static_cast<int>(op.kind);
  Program p;
  const std::size_t x = p.add(m.values(m.input(0)));
  if (!m.backward()) {
    const std::size_t y = p.add(m.result(m.output()));
    p.warm = x;
    p.launch([=, type = m.type](const Run& r) { unary(kind, alpha, beta, type, r.at(x), r.at(y), n, r.stream()); });
    return p;
  }
  const std::size_t dy = p.add(m.values(m.output())), dx = p.add(m.result(m.input(0)));
  p.warm = dy;
  p.launch([=, type = m.type](const Run& r) {
    unary_backward(kind, alpha, beta, type, r.at(x), r.at(dy), r.at(dx), n, r.stream());
  });
  if (m.wants(1) && m.has(1)) {  // prelu's slope
    const std::size_t slope = p.add(m.result(m.input(1)));
    add_sum_to_shape(p, m.type, dx, slope, m.input(0), m.input(1));
  }
  return p;
}

Program program(const Binary& op, const Maker& m) {
  const Shape &a_shape = m.input(0), &b_shape = m.input(1), &y_shape = m.output();
  const std::int64_t n = element_count(y_shape);
  const bool plain = a_shape == y_shape && b_shape == y_shape;
  const int kind = static_cast<int>(op.kind);
  const Strides strides = broadcast(y_shape, a_shape, b_shape);
  Program p;
  const std::size_t a = p.add(m.values(a_shape)), b = p.add(m.values(b_shape));
  if (!m.backward()) {
    const std::size_t y = p.add(m.result(y_shape));
    p.warm = a;
    p.launch([=, type = m.type](const Run& r) {
      binary(kind, type, r.at(a), r.at(b), r.at(y), n, strides, plain, r.stream());
    });
    return p;
  }
  const std::size_t dy = p.add(m.values(y_shape));
  p.warm = dy;
  const bool linear = op.kind == BinaryKind::add || op.kind == BinaryKind::sub;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (!m.wants(i)) continue;
    const Shape& shape = m.input(i);
    std::size_t gradient = dy;
    // A sum hands its gradient through (a difference negates one); the others multiply it by what they need.
    if (!linear || (op.kind == BinaryKind::sub && i == 1)) {
      gradient = p.add(m.result(y_shape));
      const std::size_t other = i == 0 ? b : a;
      const Strides s = broadcast(y_shape, y_shape, m.input(1 - i));
      const bool whole = m.input(1 - i) == y_shape;
      const int with = static_cast<int>(op.kind == BinaryKind::div ? BinaryKind::div : BinaryKind::mul);
      p.launch([=, type = m.type](const Run& r) {
        binary(with, type, r.at(dy), r.at(other), r.at(gradient), n, s, whole, r.stream());
      });
    }
    if (shape != y_shape && element_count(shape) != n)
      add_sum_to_shape(p, m.type, gradient, p.add(m.result(shape)), y_shape, shape);
  }
  return p;
}

Program program(const Where&, const Maker& m) {
  const std::int64_t n = element_count(m.output());
  if (m.input(0) != m.output() || m.input(1) != m.output() || m.input(2) != m.output())
    throw Refusal("the cudnn backend chooses between tensors of one shape");
  Program p;
  const std::size_t condition = p.add({Type::u8, n, Buffer::Fill::flags, 1});
  const std::size_t a = p.add(m.values(m.output())), b = p.add(m.values(m.output())), y = p.add(m.result(m.output()));
  p.warm = a;
  const int launches = m.backward() ? (m.wants(1) ? 1 : 0) + (m.wants(2) ? 1 : 0) : 1;  // one for each gradient
  for (int i = 0; i < launches; ++i)
    p.launch([=, type = m.type](const Run& r) {
      where(type, r.as<std::uint8_t>(condition), r.at(a), r.at(b), r.at(y), n, r.stream());
    });
  return p;
}

Program program(const Dropout& op, const Maker& m) {
  const std::int64_t n = element_count(m.input(0));
  const auto keep = static_cast<float>(1.0 - op.ratio);
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), y = p.add(m.result(m.input(0)));
  const std::size_t mask = p.add({Type::u8, n, Buffer::Fill::flags, 1});
  p.warm = x;
  p.launch([=, type = m.type, back = m.backward()](const Run& r) {
    if (back)
      dropout_backward(type, keep, r.at(x), r.as<std::uint8_t>(mask), r.at(y), n, r.stream());
    else
      dropout(type, keep, r.at(x), r.at(y), r.as<std::uint8_t>(mask), n, 1, r.stream());
  });
  return p;
}

Program program(const Cast& op, const Maker& m) {
  const Type from = m.backward() ? type_of(op.to) : m.type, to = m.backward() ? m.type : type_of(op.to);
  const std::int64_t n = element_count(m.input(0));
  Program p;
  const std::size_t x = p.add({from, n, Buffer::Fill::values, 1}), y = p.add({to, n, Buffer::Fill::nothing, 1});
  p.warm = x;
  p.launch([=](const Run& r) { cast(from, to, r.at(x), r.at(y), n, r.stream()); });
  return p;
}

// On a GPU a contiguous copy is the copy engine's or a kernel's at the same speed; frameworks ask CUDA for it.
Program program(const Copy&, const Maker& m) {
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), y = p.add(m.result(m.input(0)));
  const std::size_t bytes = p.buffers[x].bytes();
  p.warm = x;
  p.launch([=](const Run& r) {
    check(cudaMemcpyAsync(r.at(y), r.at(x), bytes, cudaMemcpyDeviceToDevice, r.stream()), "a copy");
  });
  return p;
}

Program program(const MeanSquaredError&, const Maker& m) {
  const std::int64_t n = element_count(m.input(0));
  const Type type = m.type;
  Program p;
  const std::size_t y = p.add(m.values(m.input(0))), target = p.add(m.values(m.input(0)));
  const std::size_t difference = p.add(m.result(m.input(0))), loss = p.add(m.result({}));
  p.warm = y;
  const Point op = m.backward() ? Point::scaled_difference : Point::squared_difference;
  p.launch([=](const Run& r) {
    point(op, type, 2.f / static_cast<float>(std::max<std::int64_t>(1, n)), r.at(y), r.at(target), nullptr,
          r.at(difference), n, r.stream());
  });
  if (!m.backward()) add_sum(p, Sum::mean, type, difference, loss, 1, n, 1);
  return p;
}

Program program(const Reduce& op, const Maker& m) {
  const Shape& x_shape = m.input(0);
  Shape to = x_shape;
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : op.axes)
    axes.push_back(static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x_shape.size()) : axis));
  if (axes.empty())
    for (std::size_t d = 0; d < x_shape.size(); ++d) axes.push_back(d);
  for (const std::size_t axis : axes) to.at(axis) = 1;
  Program p;
  if (m.backward()) {  // expanded and scaled
    const std::size_t dy = p.add(m.values(to)), dx = p.add(m.result(x_shape));
    const Strides s = broadcast(x_shape, to, to);
    const std::int64_t n = element_count(x_shape);
    p.warm = dy;
    p.launch([=, type = m.type](const Run& r) {
      binary(static_cast<int>(BinaryKind::mul), type, r.at(dy), r.at(dy), r.at(dx), n, s, false, r.stream());
    });
    return p;
  }
  const Sum sum = sum_of(op.kind);
  const std::size_t x = p.add(m.values(x_shape)), y = p.add(m.result(to));
  p.warm = x;
  std::sort(axes.begin(), axes.end());
  const bool neighbours = axes.back() - axes.front() + 1 == axes.size();
  if (!neighbours) {
    add_sum_to_shape(p, m.type, x, y, x_shape, to);
    return p;
  }
  std::int64_t outer = 1, length = 1, inner = 1;
  for (std::size_t d = 0; d < x_shape.size(); ++d)
    (d < axes.front() ? outer : d > axes.back() ? inner : length) *= x_shape[d];
  add_sum(p, sum, m.type, x, y, outer, length, inner);
  return p;
}

}  // namespace sibyl::cudnn
