// Fused attention through cuDNN's graph interface.
//
// Without a mask: cuDNN's own operation for it, forward and backward (since 9.19). Causal: forward as the graph of
// products, comparisons and a softmax that cuDNN's flash-attention engines recognise; its backward is refused here, and
// left to the torch backend. Element types are f16 and bf16, as the engines have it.
#include <array>
#include <limits>

#include "profiler/cudnn/graph.h"
#include "profiler/cudnn/images.h"
#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

// Tensors that the host's pointers are given for.
enum Id : std::int64_t {
  q_id = 1,
  k_id,
  v_id,
  o_id,
  stats_id,
  scale_id,
  least_id,
  do_id,
  dq_id,
  dk_id,
  dv_id,
  first_virtual
};

const Shape scalar_shape{1, 1, 1, 1};
Shape row_major(const Shape& shape) { return strides_of(shape, Layout::nchw); }

// A graph under construction: operations, and the tensors that lie between them.
class Graph {
 public:
  Descriptor scalar(std::int64_t id) { return tensor(id, CUDNN_DATA_FLOAT, scalar_shape, scalar_shape, false, true); }
  Descriptor between(const Shape& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(next_++, type, shape, row_major(shape), true);
  }

  void product(const Descriptor& a, const Descriptor& b, const Descriptor& c) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize("a product");
    Descriptor op(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a).set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c).set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    take(op.finalize("a product"));
  }
  void reduce(cudnnReduceTensorOp_t by, const Descriptor& x, const Descriptor& y) {
    Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &by);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).finalize("a reduction");
    Descriptor op(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x).set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    take(op.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how).finalize("a reduction"));
  }
  void apply(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor& y) {
    point(mode, x, nullptr, nullptr, y);
  }
  void apply(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor& b, const Descriptor& y,
             cudnnDataType_t in = CUDNN_DATA_FLOAT) {
    point(mode, x, &b, nullptr, y, in);
  }
  // y is x where the mask holds, else b.
  void choose(const Descriptor& x, const Descriptor& b, const Descriptor& mask, const Descriptor& y) {
    point(CUDNN_POINTWISE_BINARY_SELECT, x, &b, &mask, y);
  }
  void index(const Descriptor& like, std::int64_t axis, const Descriptor& y) {
    point(CUDNN_POINTWISE_GEN_INDEX, like, nullptr, nullptr, y, CUDNN_DATA_INT32, axis);
  }
  void take(Descriptor& operation) { operations_.push_back(std::move(operation)); }
  [[nodiscard]] const std::vector<Descriptor>& operations() const { return operations_; }

 private:
  void point(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b, const Descriptor* mask,
             const Descriptor& y, cudnnDataType_t in = CUDNN_DATA_FLOAT, std::int64_t axis = -1) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, in);
    if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    how.finalize("an elementwise operation");
    Descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (mask) op.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *mask);
    take(op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).finalize("an elementwise operation"));
  }

  std::vector<Descriptor> operations_;
  std::int64_t next_ = first_virtual;
};

struct Shapes {
  Shape q, k, scores, statistics;  // [B, H, S, D], [B, Hkv, T, D], [B, H, S, T], [B, H, S, 1]
};

Descriptor described(std::int64_t id, Type type, const Shape& shape) {
  return tensor(id, data_type(type), shape, row_major(shape));
}

void causal_forward(Graph& g, const Shapes& n, Type type) {
  Shape k_transposed = n.k, strides = row_major(n.k);
  std::swap(k_transposed[2], k_transposed[3]), std::swap(strides[2], strides[3]);
  const Descriptor q = described(q_id, type, n.q), k = tensor(k_id, data_type(type), k_transposed, strides);
  const Descriptor v = described(v_id, type, n.k), o = described(o_id, type, n.q);
  const Descriptor stats = tensor(stats_id, CUDNN_DATA_FLOAT, n.statistics, row_major(n.statistics));
  const Descriptor scale = g.scalar(scale_id), least = g.scalar(least_id);
  const Descriptor raw = g.between(n.scores), scaled = g.between(n.scores), masked = g.between(n.scores);
  g.product(q, k, raw);
  g.apply(CUDNN_POINTWISE_MUL, raw, scale, scaled);
  const Descriptor row = g.between(n.scores, CUDNN_DATA_INT32), column = g.between(n.scores, CUDNN_DATA_INT32);
  const Descriptor seen = g.between(n.scores, CUDNN_DATA_BOOLEAN);
  g.index(scaled, 2, row), g.index(scaled, 3, column);
  g.apply(CUDNN_POINTWISE_CMP_GE, row, column, seen, CUDNN_DATA_BOOLEAN);
  g.choose(scaled, least, seen, masked);
  const Descriptor most = g.between(n.statistics), sum = g.between(n.statistics), log = g.between(n.statistics);
  const Descriptor below = g.between(n.scores), powers = g.between(n.scores),
                   shares = g.between(n.scores, data_type(type));
  g.reduce(CUDNN_REDUCE_TENSOR_MAX, masked, most);
  g.apply(CUDNN_POINTWISE_SUB, masked, most, below);
  g.apply(CUDNN_POINTWISE_EXP, below, powers);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  g.apply(CUDNN_POINTWISE_LOG, sum, log);
  g.apply(CUDNN_POINTWISE_ADD, most, log, stats);
  g.apply(CUDNN_POINTWISE_DIV, powers, sum, shares);
  g.product(shares, v, o);
}

#if CUDNN_VERSION >= 91900
void plain_forward(Graph& g, const Shapes& n, Type type) {
  const Descriptor stats = tensor(stats_id, CUDNN_DATA_FLOAT, n.statistics, row_major(n.statistics));
  Descriptor op(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, described(q_id, type, n.q));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, described(k_id, type, n.k));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, described(v_id, type, n.k));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, described(o_id, type, n.q));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, stats);
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, g.scalar(scale_id));
  g.take(op.finalize("attention"));
}
void plain_backward(Graph& g, const Shapes& n, Type type) {
  const Descriptor stats = tensor(stats_id, CUDNN_DATA_FLOAT, n.statistics, row_major(n.statistics));
  Descriptor op(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, described(q_id, type, n.q));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, described(k_id, type, n.k));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, described(v_id, type, n.k));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, described(o_id, type, n.q));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, described(do_id, type, n.q));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, stats);
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, g.scalar(scale_id));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, described(dq_id, type, n.q));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, described(dk_id, type, n.k));
  op.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, described(dv_id, type, n.k));
  g.take(op.finalize("attention's gradient"));
}
#else
void plain_forward(Graph&, const Shapes&, Type) { throw Refusal("attention without a mask needs cuDNN 9.19 or newer"); }
void plain_backward(Graph&, const Shapes&, Type) { throw Refusal("attention's gradient needs cuDNN 9.19 or newer"); }
#endif

// A tensor of the graph, and the buffer that it is.
struct Bound {
  std::int64_t id;
  std::size_t buffer;
};

Step step(const Maker& m, const Graph& graph, std::vector<Bound> bound, float scale, bool masked) {
  Step result;
  for (const auto& plan : plans(m.target, graph.operations(), {true, 0}, m.settings.best)) {
    const auto run = [=](const Run& r) {
      std::vector<std::int64_t> ids;
      std::vector<void*> data;
      for (const Bound& b : bound) ids.push_back(b.id), data.push_back(r.at(b.buffer));
      float by_value = scale, least = std::numeric_limits<float>::lowest();
      ids.push_back(scale_id), data.push_back(&by_value);
      if (masked) ids.push_back(least_id), data.push_back(&least);
      plan->execute(r.libraries, ids, data, r.workspace);
    };
    result.choices.push_back({run, plan->workspace(), plan->name()});
  }
  return result;
}

}  // namespace

Program program(const Attention& op, const Maker& m) {
  if (m.has(3) || op.dropout > 0)
    throw Refusal("the cudnn backend times attention without dropout, and with no mask but the causal one");
  if (m.type != Type::f16 && m.type != Type::bf16) throw Refusal("cuDNN fuses attention in f16 and bf16 only");
  if (op.causal && m.backward())
    throw Refusal("the cudnn backend has no gradient of causal attention; the torch backend times it");
  const Shape& q_shape = m.input(0);
  const Shapes n{q_shape,
                 m.input(1),
                 {q_shape.at(0), q_shape.at(1), q_shape.at(2), m.input(1).at(2)},
                 {q_shape.at(0), q_shape.at(1), q_shape.at(2), 1}};
  Program p;
  std::vector<Bound> bound{{q_id, p.add(m.values(n.q))},
                           {k_id, p.add(m.values(n.k))},
                           {v_id, p.add(m.values(n.k))},
                           {o_id, p.add(m.values(n.q))},
                           {stats_id, p.add({Type::f32, element_count(n.statistics), Buffer::Fill::values, 1})}};
  const auto scale = static_cast<float>(op.scale);
  Graph forward;
  (op.causal ? causal_forward : plain_forward)(forward, n, m.type);
  Step ahead = step(m, forward, bound, scale, op.causal);
  if (!m.backward()) {
    p.warm = bound.front().buffer;
    p.steps.push_back(std::move(ahead));
    return p;
  }
  p.before.push_back(ahead.choices.front());
  bound.push_back({do_id, p.add(m.values(n.q))});
  p.warm = bound.back().buffer;
  bound.push_back({dq_id, p.add(m.result(n.q))});
  bound.push_back({dk_id, p.add(m.result(n.k))});
  bound.push_back({dv_id, p.add(m.result(n.k))});
  Graph backward;
  plain_backward(backward, n, m.type);
  p.steps.push_back(step(m, backward, bound, scale, false));
  return p;
}

}  // namespace sibyl::cudnn
