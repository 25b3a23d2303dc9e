// Layout: what copies copies, what views runs nothing. Look-ups and their gradients.
#include <algorithm>
#include <numeric>

#include "profiler/cudnn/images.h"
#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

void zero(Program& p, std::size_t buffer) {
  const std::size_t bytes = p.buffers[buffer].bytes();
  p.launch([=](const Run& r) { check(cudaMemsetAsync(r.at(buffer), 0, bytes, r.stream()), "zeros"); });
}

void copy_strided(Program& p, Type type, std::size_t x, std::size_t y, const Strides& s) {
  std::int64_t n = 1;
  for (int d = 0; d < s.rank; ++d) n *= s.extent[d];
  p.launch([=](const Run& r) { strided_copy(type, r.at(x), r.at(y), n, s, r.stream()); });
}

Strides strides(const Shape& extents, const Shape& a, const Shape& b) {
  if (extents.size() > most_dimensions) throw Refusal("the cudnn backend copies in at most 8 dimensions");
  Strides s;
  s.rank = static_cast<int>(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) s.extent[d] = extents[d], s.a[d] = a[d], s.b[d] = b[d];
  return s;
}

// A part of a whole tensor, copied out of it or into it.
void copy_part(Program& p, Type type, std::size_t x, std::size_t y, const Shape& part, const Shape& whole, bool into) {
  const Shape of_part = row_major(part), of_whole = row_major(whole);
  copy_strided(p, type, x, y, into ? strides(part, of_part, of_whole) : strides(part, of_whole, of_part));
}

Program view_with_gradient(const Maker& m, const std::vector<Shape>& parts) {
  Program p;
  if (!m.backward()) return p;  // a view: nothing runs
  const std::size_t dx = p.add(m.result(m.input(0)));
  zero(p, dx);
  for (const Shape& part : parts) {
    const std::size_t dy = p.add(m.values(part));
    if (!p.warm) p.warm = dy;
    copy_part(p, m.type, dy, dx, part, m.input(0), true);
  }
  return p;
}

struct Lookup {
  std::int64_t outer = 1, axis = 1, count = 1, inner = 1;
};
Program look_up(const Maker& m, const Lookup& n, const Shape& values) {
  Program p;
  const std::size_t x = p.add(m.values(values));
  const std::size_t ids = p.add({Type::i64, n.count, Buffer::Fill::ids, std::max<std::int64_t>(1, n.axis)});
  const std::size_t y = p.add(m.values({n.outer, n.count, n.inner}));
  const Type type = m.type;
  if (!m.backward()) {
    p.launch([=](const Run& r) {
      take(type, r.at(x), r.as<std::int64_t>(ids), r.at(y), n.outer, n.axis, n.count, n.inner, r.stream());
    });
    return p;
  }
  p.warm = y;
  zero(p, x);
  p.launch([=](const Run& r) {
    take_backward(type, r.at(y), r.as<std::int64_t>(ids), r.at(x), n.outer, n.axis, n.count, n.inner, r.stream());
  });
  return p;
}

// Of a part of the table, as it is done where a rank has no more: ids of rows that are elsewhere are taken for the
// first's, and what they gave is zeroed again.
Program look_up_part(const Maker& m, const Lookup& n, const Shape& values) {
  Program p;
  const std::size_t x = p.add(m.values(values));
  const std::size_t ids = p.add({Type::i64, n.count, Buffer::Fill::ids, std::max<std::int64_t>(1, n.axis)});
  const std::size_t rows = p.add({Type::i64, n.count, Buffer::Fill::nothing, 1});
  const std::size_t elsewhere = p.add({Type::u8, n.count, Buffer::Fill::nothing, 1});
  const std::size_t y = p.add(m.result({n.count, n.inner}));
  const Type type = m.type;
  p.launch(
      [=](const Run& r) { not_below_zero(r.as<std::int64_t>(ids), r.as<std::int64_t>(rows), n.count, r.stream()); });
  p.launch([=](const Run& r) {
    take(type, r.at(x), r.as<std::int64_t>(rows), r.at(y), 1, n.axis, n.count, n.inner, r.stream());
  });
  p.launch(
      [=](const Run& r) { below_zero(r.as<std::int64_t>(ids), r.as<std::uint8_t>(elsewhere), n.count, r.stream()); });
  p.launch(
      [=](const Run& r) { zero_rows(type, r.as<std::uint8_t>(elsewhere), r.at(y), n.count, n.inner, r.stream()); });
  return p;
}

}  // namespace

Program program(const Transpose& op, const Maker& m) {
  const Shape& x_shape = m.backward() ? m.output() : m.input(0);
  Ints order = op.permutation;
  if (m.backward())
    for (std::size_t i = 0; i < order.size(); ++i)
      order[static_cast<std::size_t>(op.permutation[i])] = static_cast<std::int64_t>(i);
  Program p;
  const std::size_t x = p.add(m.values(x_shape)), y = p.add(m.result(m.backward() ? m.input(0) : m.output()));
  p.warm = x;
  // Leading dimensions that stay, and two blocks of neighbours that change places, are matrices to be transposed.
  const auto rank = static_cast<std::int64_t>(order.size());
  std::int64_t stay = 0, cut = 0;
  while (stay < rank && order[static_cast<std::size_t>(stay)] == stay) ++stay;
  if (stay < rank) cut = order[static_cast<std::size_t>(stay)];
  bool rotation = stay < rank;
  for (std::int64_t i = stay; i < rank; ++i) {
    const std::int64_t expected = i - stay < rank - cut ? cut + (i - stay) : stay + (i - stay) - (rank - cut);
    rotation = rotation && order[static_cast<std::size_t>(i)] == expected;
  }
  const auto product = [&](std::int64_t from, std::int64_t to) {
    return std::accumulate(x_shape.begin() + from, x_shape.begin() + to, std::int64_t{1}, std::multiplies<>());
  };
  if (rotation) {
    const std::int64_t batch = product(0, stay), rows = product(stay, cut), columns = product(cut, rank);
    p.launch([=, type = m.type](const Run& r) {
      transpose_matrices(type, r.at(x), r.at(y), batch, rows, columns, r.stream());
    });
    return p;
  }
  Shape extents, from;
  const Shape of_x = row_major(x_shape);
  for (const std::int64_t d : order) {
    extents.push_back(x_shape[static_cast<std::size_t>(d)]);
    from.push_back(of_x[static_cast<std::size_t>(d)]);
  }
  copy_strided(p, m.type, x, y, strides(extents, from, row_major(extents)));
  return p;
}

Program program(const Concat&, const Maker& m) {
  Program p;
  const std::size_t whole = p.add(m.values(m.output()));
  for (std::size_t i = 0; i < m.key.signature.inputs.size(); ++i) {
    if (m.backward() && !m.wants(i)) continue;
    const std::size_t part = p.add(m.values(m.input(i)));
    if (!m.backward() && !p.warm) p.warm = part;
    copy_part(p, m.type, m.backward() ? whole : part, m.backward() ? part : whole, m.input(i), m.output(),
              !m.backward());
  }
  if (m.backward()) p.warm = whole;
  return p;
}

Program program(const Slice&, const Maker& m) { return view_with_gradient(m, {m.output()}); }
Program program(const Split&, const Maker& m) { return view_with_gradient(m, m.key.signature.outputs); }
Program program(const Reshape&, const Maker&) { return {}; }

Program program(const Pad&, const Maker& m) {
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), y = p.add(m.values(m.output()));
  p.warm = m.backward() ? y : x;
  if (!m.backward()) zero(p, y);
  copy_part(p, m.type, m.backward() ? y : x, m.backward() ? x : y, m.input(0), m.output(), !m.backward());
  return p;
}

Program program(const Expand&, const Maker& m) {
  Program p;
  if (!m.backward() || m.input(0) == m.output()) return p;
  const std::size_t dy = p.add(m.values(m.output()));
  p.warm = dy;
  add_sum_to_shape(p, m.type, dy, p.add(m.result(m.input(0))), m.output(), m.input(0));
  return p;
}

Program program(const Resize& op, const Maker& m) {
  if (op.kind == ResizeKind::cubic || m.backward() || m.input(0).size() != 4)
    throw Refusal("the cudnn backend resizes pictures forward, nearest or linear");
  const Shape &x_shape = m.input(0), &y_shape = m.output();
  Program p;
  const std::size_t x = p.add(m.values(x_shape)), y = p.add(m.result(y_shape));
  p.warm = x;
  p.launch([=, type = m.type, linear = op.kind == ResizeKind::linear](const Run& r) {
    resize(linear, type, r.at(x), r.at(y), x_shape[0] * x_shape[1], x_shape[2], x_shape[3], y_shape[2], y_shape[3],
           r.stream());
  });
  return p;
}

Program program(const Gather& op, const Maker& m) {
  const Shape& x = m.input(0);
  Lookup n;
  n.count = element_count(m.input(1));
  for (std::size_t d = 0; d < x.size(); ++d) {
    const auto axis = static_cast<std::size_t>(std::max<std::int64_t>(0, op.axis));
    (d < axis ? n.outer : d == axis ? n.axis : n.inner) *= x[d];
  }
  return look_up(m, n, x);
}

Program program(const Embedding& op, const Maker& m) {
  const Shape& table = m.input(0);
  const Lookup n{1, table.at(0), element_count(m.input(1)), table.at(1)};
  return op.partial && !m.backward() ? look_up_part(m, n, table) : look_up(m, n, table);  // backward skips ids below 0
}

}  // namespace sibyl::cudnn
