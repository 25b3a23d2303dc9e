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
  one_id,
  do_id,
  dq_id,
  dk_id,
  dv_id,
  dq_sum_id,
  first_virtual
};

const Shape scalar_shape{1, 1, 1, 1};
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
  void reshape(const Descriptor& x, const Descriptor& y) {
    Descriptor op(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x).set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    take(op.finalize("another shape"));
  }
  // x[B, H, S, T] as [B, H, T, S], where it lies.
  Descriptor turned(const Descriptor& x, const Shape& shape, cudnnDataType_t type) {
    Shape extents = shape, strides = row_major(shape);
    std::swap(extents[2], extents[3]), std::swap(strides[2], strides[3]);
    const Descriptor y = tensor(next_++, type, extents, strides, true);
    reshape(x, y);
    return y;
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

// As its last two dimensions lie, the other way round.
Descriptor transposed(std::int64_t id, Type type, const Shape& shape) {
  Shape extents = shape, strides = row_major(shape);
  std::swap(extents[2], extents[3]), std::swap(strides[2], strides[3]);
  return tensor(id, data_type(type), extents, strides);
}

// The scores of queries by keys, scaled, and where a query may not see a key as low as can be.
Descriptor causal_scores(Graph& g, const Shapes& n, const Descriptor& q, const Descriptor& k, const Descriptor& scale) {
  const Descriptor raw = g.between(n.scores), scaled = g.between(n.scores), masked = g.between(n.scores);
  g.product(q, k, raw);
  g.apply(CUDNN_POINTWISE_MUL, raw, scale, scaled);
  const Descriptor row = g.between(n.scores, CUDNN_DATA_INT32), column = g.between(n.scores, CUDNN_DATA_INT32);
  const Descriptor seen = g.between(n.scores, CUDNN_DATA_BOOLEAN);
  g.index(scaled, 2, row), g.index(scaled, 3, column);
  g.apply(CUDNN_POINTWISE_CMP_GE, row, column, seen, CUDNN_DATA_BOOLEAN);
  g.choose(scaled, g.scalar(least_id), seen, masked);
  return masked;
}

void causal_forward(Graph& g, const Shapes& n, Type type) {
  const Descriptor q = described(q_id, type, n.q), k = transposed(k_id, type, n.k);
  const Descriptor v = described(v_id, type, n.k), o = described(o_id, type, n.q);
  const Descriptor stats = tensor(stats_id, CUDNN_DATA_FLOAT, n.statistics, row_major(n.statistics));
  const Descriptor masked = causal_scores(g, n, q, k, g.scalar(scale_id));
  const Descriptor most = g.between(n.statistics), sum = g.between(n.statistics), log = g.between(n.statistics);
  const Descriptor below = g.between(n.scores), powers = g.between(n.scores);
  const Descriptor shares = g.between(n.scores, data_type(type));
  g.reduce(CUDNN_REDUCE_TENSOR_MAX, masked, most);
  g.apply(CUDNN_POINTWISE_SUB, masked, most, below);
  g.apply(CUDNN_POINTWISE_EXP, below, powers);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  g.apply(CUDNN_POINTWISE_LOG, sum, log);
  g.apply(CUDNN_POINTWISE_ADD, most, log, stats);
  g.apply(CUDNN_POINTWISE_DIV, powers, sum, shares);
  g.product(shares, v, o);
}

// FlashAttention-2's backward (Dao 2023, algorithm 2), in the order that cuDNN's engines recognise, with the products
// by one that they expect where dropout would be. dQ is summed in f32, which its kernel adds to by atomics, and then
// narrowed.
void causal_backward(Graph& g, const Shapes& n, Type type) {
  const Descriptor q = described(q_id, type, n.q), k = transposed(k_id, type, n.k), v = transposed(v_id, type, n.k);
  const Descriptor o = described(o_id, type, n.q), gradient = described(do_id, type, n.q);
  const Descriptor stats = tensor(stats_id, CUDNN_DATA_FLOAT, n.statistics, row_major(n.statistics));
  const Descriptor scale = g.scalar(scale_id), one = g.scalar(one_id);
  const auto scores = [&] { return g.between(n.scores); };

  const Descriptor along = g.between(n.q), sum = g.between(n.statistics), delta = g.between(n.statistics);
  g.apply(CUDNN_POINTWISE_MUL, gradient, o, along);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, along, sum);
  g.apply(CUDNN_POINTWISE_MUL, sum, one, delta);

  const Descriptor masked = causal_scores(g, n, q, k, scale), below = scores(), shares = scores(), kept = scores();
  g.apply(CUDNN_POINTWISE_SUB, masked, stats, below);
  g.apply(CUDNN_POINTWISE_EXP, below, shares);
  g.apply(CUDNN_POINTWISE_MUL, shares, one, kept);
  g.product(g.turned(kept, n.scores, data_type(type)), gradient, described(dv_id, type, n.k));

  const Descriptor product = scores(), taken = scores(), less = scores(), times = scores(), again = scores();
  const Descriptor dscores = scores();
  g.product(gradient, v, product);
  g.apply(CUDNN_POINTWISE_MUL, product, one, taken);
  g.apply(CUDNN_POINTWISE_SUB, taken, delta, less);
  g.apply(CUDNN_POINTWISE_MUL, less, shares, times);
  g.apply(CUDNN_POINTWISE_MUL, times, one, again);
  g.apply(CUDNN_POINTWISE_MUL, again, scale, dscores);
  g.product(g.turned(dscores, n.scores, data_type(type)), q, described(dk_id, type, n.k));

  const Descriptor keys = g.between(n.k, data_type(type));
  g.reshape(k, keys);
  const Descriptor dq_sum = tensor(dq_sum_id, CUDNN_DATA_FLOAT, n.q, row_major(n.q), false, false, true);
  g.product(dscores, keys, dq_sum);
  g.apply(CUDNN_POINTWISE_IDENTITY, dq_sum, described(dq_id, type, n.q));
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

// `scalars`: what is handed over by value beside the scale.
Step step(const Maker& m, const Graph& graph, std::vector<Bound> bound, float scale, std::vector<Id> scalars) {
  Step result;
  for (const auto& plan : plans(m.target, graph.operations(), {true, 0}, m.settings.best)) {
    const auto run = [=](const Run& r) {
      std::vector<std::int64_t> ids;
      std::vector<void*> data;
      for (const Bound& b : bound) ids.push_back(b.id), data.push_back(r.at(b.buffer));
      float by_value = scale, least = std::numeric_limits<float>::lowest(), one = 1.f;
      ids.push_back(scale_id), data.push_back(&by_value);
      for (const Id id : scalars) ids.push_back(id), data.push_back(id == least_id ? &least : &one);
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
  if (op.ring > 1) throw Refusal("the cudnn backend times attention with all of its keys at once");
  if (m.type != Type::f16 && m.type != Type::bf16) throw Refusal("cuDNN fuses attention in f16 and bf16 only");
  // The graph's mask begins at the first key, the operation's ends at the last query.
  if (op.causal && m.input(1).at(2) - op.behind != m.input(0).at(2))
    throw Refusal(
        "cuDNN's causal mask begins at the first key: the cudnn backend times it where the last query sees as "
        "many keys as there are queries; the torch backend times others");
  if (op.causal && m.backward() && m.input(0).at(1) != m.input(1).at(1))
    throw Refusal("the cudnn backend has no gradient of causal attention with shared keys; the torch backend times it");
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
  Step ahead = step(m, forward, bound, scale, op.causal ? std::vector<Id>{least_id} : std::vector<Id>{});
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
  if (!op.causal) {
    plain_backward(backward, n, m.type);
    p.steps.push_back(step(m, backward, bound, scale, {}));
    return p;
  }
  const Buffer sums{Type::f32, element_count(n.q), Buffer::Fill::zeros, 1};
  const std::size_t sum = p.add(sums);
  bound.push_back({dq_sum_id, sum});
  causal_backward(backward, n, m.type);
  p.launch(
      [sum, bytes = sums.bytes()](const Run& r) { check(cudaMemsetAsync(r.at(sum), 0, bytes, r.stream()), "zeros"); });
  p.steps.push_back(step(m, backward, bound, scale, {least_id, one_id}));
  return p;
}

}  // namespace sibyl::cudnn
