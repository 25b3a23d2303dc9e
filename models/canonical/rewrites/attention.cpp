// y = dropout(softmax(scale q k^T + mask)) v                                        Vaswani et al., 2017
//
// The scale may stand on the scores, on q, on k, or its root on both. A mask is added, selected by a condition, or
// multiplied (GPT-2's first form: scores mask - c (1 - mask)). A stored S x S mask without heads or batch is taken to
// be the causal one: its values are not looked at (exporters store them as a large buffer, or as if they were a
// weight). k's transposition is undone (or merged into the transposition that split its heads). Where k and v were
// expanded to more heads (grouped queries), the expansion is dropped. Products over [B*H, S, D] become one head each of
// [B*H, 1, S, D].
#include <algorithm>
#include <cmath>
#include <optional>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

struct Match {
  OperationId root;  // the product with v
  TensorId q, keys, v, mask;
  TensorId condition;  // of a selecting mask; keeps scores where it is true
  bool keeps_where_true = true;
  double masked = 0;  // what a selecting mask puts elsewhere
  Attention attributes;
  std::vector<OperationId> used;
};

// Steps back over multiplications by a constant.
TensorId unscaled(const Editor& editor, TensorId t, Match& m) {
  while (true) {
    const auto* scale = unary(editor, t, UnaryKind::scale_shift);
    if (!scale || scale->beta != 0) return t;
    m.attributes.scale *= scale->alpha;
    m.used.push_back(editor.producer(t));
    t = editor.operand(t, 0);
  }
}

bool is_causal_shape(const Editor& editor, TensorId mask) {
  const Shape& s = editor[mask].shape;
  return s.size() >= 2 && s.back() > 1 && s[s.size() - 2] == s.back() && element_count(s) == s.back() * s.back();
}

void add_mask(const Editor& editor, TensorId mask, Match& m, bool& valid) {
  if (is_causal_shape(editor, mask) && is_stored(editor, mask)) {
    m.attributes.causal = true;
    return;
  }
  valid = valid && !m.mask.valid() && !m.condition.valid();
  m.mask = mask;
}

void add_condition(const Editor& editor, TensorId condition, bool keeps_where_true, double masked, Match& m,
                   bool& valid) {
  if (is_causal_shape(editor, condition) && is_stored(editor, condition)) {
    m.attributes.causal = true;
    return;
  }
  valid = valid && !m.mask.valid() && !m.condition.valid();
  m.condition = condition;
  m.keeps_where_true = keeps_where_true;
  m.masked = masked;
}

// The scores of scores mask - c (1 - mask), or an invalid id.
TensorId unmultiplied(const Editor& editor, OperationId difference, Match& m) {
  const TensorId masked = editor[difference].inputs[0];
  if (!binary(editor, masked, BinaryKind::mul)) return {};
  const OperationId product = editor.producer(masked);
  for (const std::size_t scores : {0U, 1U}) {
    const TensorId mask = editor[product].inputs[1 - scores];
    if (!is_causal_shape(editor, mask) || !is_stored(editor, mask)) continue;
    m.attributes.causal = true;
    m.used.insert(m.used.end(), {difference, product});
    return editor[product].inputs[scores];
  }
  return {};
}

// Steps back over one mask and returns the scores it was put on; an invalid id where `t` is not a masked tensor.
TensorId unmasked(const Editor& editor, TensorId t, Match& m, bool& valid) {
  const OperationId id = editor.producer(t);
  if (!id.valid()) return {};
  const auto& in = editor[id].inputs;
  if (std::holds_alternative<Where>(editor[id].attributes)) {
    for (const std::size_t scores : {1U, 2U}) {
      const auto masked = scalar_value(editor, in[3 - scores]);
      if (!masked || *masked > -1e3 || editor[in[scores]].shape != editor[t].shape) continue;
      add_condition(editor, in[0], scores == 1, *masked, m, valid);
      m.used.push_back(id);
      return in[scores];
    }
    return {};
  }
  if (binary(editor, t, BinaryKind::sub) && is_causal_shape(editor, in[1]) && is_stored(editor, in[1]))
    return unmultiplied(editor, id, m);
  if (!binary(editor, t, BinaryKind::add)) return {};
  // The scores are the operand that a product made; both being one would be no mask.
  for (const std::size_t scores : {0U, 1U}) {
    Match trial;
    bool ignored = true;
    TensorId s = in[scores];
    if (editor[s].shape != editor[t].shape) continue;
    for (int step = 0; step < 3 && s.valid(); ++step) {
      s = unscaled(editor, s, trial);
      if (editor.produced_by<MatMul>(s)) {
        add_mask(editor, in[1 - scores], m, valid);
        m.used.push_back(id);
        return in[scores];
      }
      s = unmasked(editor, s, trial, ignored);
    }
  }
  return {};
}

std::optional<Match> match(const Editor& editor, OperationId root) {
  if (!std::holds_alternative<MatMul>(editor[root].attributes)) return std::nullopt;
  Match m;
  m.root = root;
  TensorId t = editor[root].inputs[0];
  m.v = editor[root].inputs[1];
  if (const auto* dropout = editor.produced_by<Dropout>(t)) {
    m.attributes.dropout = dropout->ratio;
    m.used.push_back(editor.producer(t));
    t = editor.operand(t, 0);
  }
  const auto* softmax = editor.produced_by<Softmax>(t);
  const auto rank = static_cast<std::int64_t>(editor[t].shape.size());
  if (!softmax || softmax->log || (softmax->axis != -1 && softmax->axis != rank - 1)) return std::nullopt;
  m.used.push_back(editor.producer(t));
  t = editor.operand(t, 0);

  bool valid = true;
  for (TensorId next = t; next.valid(); next = unmasked(editor, t, m, valid)) t = unscaled(editor, next, m);
  if (!valid || !editor.produced_by<MatMul>(t)) return std::nullopt;
  m.used.push_back(editor.producer(t));
  m.q = unscaled(editor, editor.operand(t, 0), m);
  m.keys = unscaled(editor, editor.operand(t, 1), m);
  const std::size_t dims = editor[m.q].shape.size();
  if ((dims != 3 && dims != 4) || editor[m.keys].shape.size() != dims || editor[m.v].shape.size() != dims)
    return std::nullopt;
  for (std::size_t i = 0; i + 2 < dims; ++i)  // a broadcast product is not attention over heads
    if (editor[m.q].shape[i] != editor[m.keys].shape[i] || editor[m.q].shape[i] != editor[m.v].shape[i])
      return std::nullopt;
  if (editor[m.q].shape.back() != editor[m.v].shape.back()) return std::nullopt;
  return m;
}

// k[..., T, D] of keys[..., D, T]: the transposition that made the keys with its last two axes exchanged, or a new one.
TensorId untransposed_keys(Editor& editor, Match& m) {
  const OperationId place = m.root;
  TensorId source = m.keys;
  const std::size_t rank = editor[m.keys].shape.size();
  Ints permutation(rank);
  for (std::size_t i = 0; i < rank; ++i) permutation[i] = static_cast<std::int64_t>(i);
  if (const auto* made = editor.produced_by<Transpose>(m.keys)) {
    permutation = made->permutation;
    source = editor.operand(m.keys, 0);
  }
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  if (std::is_sorted(permutation.begin(), permutation.end())) {
    if (!editor.sole_consumer(m.keys).valid()) return source;
    m.used.push_back(editor.producer(m.keys));
    return unscaled(editor, source, m);
  }

  Tensor k = editor[m.keys];
  std::swap(k.shape[rank - 1], k.shape[rank - 2]);
  if (k.batch_axis && *k.batch_axis + 2 >= rank) k.batch_axis = *k.batch_axis == rank - 1 ? rank - 2 : rank - 1;
  k.name = editor[m.root].name + "/k";
  return editor.insert_before(place, Transpose{permutation}, {source}, std::move(k));
}

// [B, Hkv, T, D] where `t` [B, H, T, D] repeats a tensor of that shape: Reshape(Expand([B, Hkv, 1, T, D])).
std::optional<Shape> shape_before_repeat(const Editor& editor, TensorId t) {
  if (!editor.produced_by<Reshape>(t)) return std::nullopt;
  const TensorId expanded = editor.operand(t, 0);
  if (!editor.produced_by<Expand>(expanded)) return std::nullopt;
  const Shape& from = editor[editor.operand(expanded, 0)].shape;
  const Shape& to = editor[expanded].shape;
  if (from.size() != 5 || to.size() != 5 || from[2] != 1 || editor[t].shape.size() != 4) return std::nullopt;
  const bool repeats = from[0] == to[0] && from[1] == to[1] && from[3] == to[3] && from[4] == to[4] &&
                       editor[t].shape == Shape{to[0], to[1] * to[2], to[3], to[4]};
  return repeats ? std::optional(Shape{from[0], from[1], from[3], from[4]}) : std::nullopt;
}

TensorId unrepeated(Editor& editor, OperationId place, TensorId t, const Shape& shape) {
  const TensorId single = editor.operand(editor.operand(t, 0), 0);
  const TensorId source = editor.produced_by<Reshape>(single) ? editor.operand(single, 0) : single;
  if (editor[source].shape == shape) return source;
  Tensor heads = editor[t];
  heads.name += "/unrepeated";
  heads.shape = shape;
  return editor.insert_before(place, Reshape{}, {source}, std::move(heads));
}

// A mask to add from one that selects: where(keep, 0, masked).
TensorId additive_mask(Editor& editor, const Match& m) {
  auto constant = [&](double value, const char* suffix) {
    Tensor t;
    t.name = editor[m.root].name + suffix;
    t.dtype = editor[m.q].dtype;
    t.kind = TensorKind::buffer;
    t.values = {value};
    return editor.add(std::move(t));
  };
  const TensorId zero = constant(0, "/mask/kept"), low = constant(m.masked, "/mask/masked");
  Tensor mask = editor[m.condition];
  mask.name = editor[m.root].name + "/mask";
  mask.dtype = editor[m.q].dtype;
  const std::vector<TensorId> inputs = {m.condition, m.keeps_where_true ? zero : low, m.keeps_where_true ? low : zero};
  return editor.insert_before(m.root, Where{}, inputs, std::move(mask));
}

// [B*H, S, D] -> [B*H, 1, S, D].
Tensor with_head_axis(Tensor t) {
  t.shape.insert(t.shape.begin() + 1, 1);
  if (t.batch_axis && *t.batch_axis > 0) ++*t.batch_axis;
  t.name += "/heads";
  return t;
}

TensorId with_head(Editor& editor, OperationId place, TensorId t) {
  if (editor[t].shape.size() != 3) return t;  // a mask without batch
  return editor.insert_before(place, Reshape{}, {t}, with_head_axis(editor[t]));
}

// Refuses before anything is inserted: what would vanish is used elsewhere.
bool is_private(const Editor& editor, const Match& m) {
  return std::all_of(m.used.begin(), m.used.end(), [&](OperationId id) {
    const TensorId out = editor[id].outputs[0];
    const auto users = editor.consumers(out);
    return !editor.is_output(out) && std::all_of(users.begin(), users.end(), [&](OperationId user) {
      return user == m.root || std::find(m.used.begin(), m.used.end(), user) != m.used.end();
    });
  });
}

void rewrite(Editor& editor, Match m) {
  const bool flat = editor[m.q].shape.size() == 3;
  TensorId k = untransposed_keys(editor, m), v = m.v;
  const auto k_shape = shape_before_repeat(editor, k), v_shape = shape_before_repeat(editor, v);
  if (k_shape && k_shape == v_shape)
    k = unrepeated(editor, m.root, k, *k_shape), v = unrepeated(editor, m.root, v, *v_shape);
  if (m.condition.valid()) m.mask = additive_mask(editor, m);

  std::vector<TensorId> inputs = {m.q, k, v};
  if (m.mask.valid()) inputs.push_back(m.mask);
  if (!flat) {
    editor.fuse(m.root, m.used, m.attributes, std::move(inputs));
    return;
  }
  // The attention runs on four axes; a reshape takes the product's place.
  for (TensorId& in : inputs) in = with_head(editor, m.root, in);
  const Operation product = editor[m.root];
  Tensor tall = with_head_axis(editor[product.outputs[0]]);
  tall.kind = TensorKind::activation;
  const TensorId attended = editor.add(std::move(tall));
  const OperationId attention =
      editor.insert_before(m.root, Operation{product.name, m.attributes, std::move(inputs), {attended}, {}});
  if (editor.fuse(m.root, m.used, Reshape{}, {attended})) editor.hand_over_fused(m.root, attention);
}

}  // namespace

void attentions(Editor& editor) {
  for (const OperationId id : editor.order()) {
    if (!editor.alive(id)) continue;
    if (auto m = match(editor, id); m && is_private(editor, *m)) rewrite(editor, std::move(*m));
  }
}

}  // namespace sibyl::rewrites
