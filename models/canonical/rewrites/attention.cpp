// y = dropout(softmax(scale q k^T + mask)) v                                        Vaswani et al., 2017
//
// The scale may stand on the scores, on q, on k, or its root on both, there also before their heads are split. A number
// added to all scores changes nothing (Hugging Face's TensorFlow models add 1e-9). The product may be (k q^T)^T. A mask
// is added, selected by a condition, or multiplied (GPT-2's first form: scores mask - c (1 - mask)). A stored S x S
// mask without heads or batch is taken to be the causal one, unless its elements are known and say otherwise (exporters
// store it as a large buffer, or as if it were a weight). Probabilities that are NaN may be set to 0. k's transposition
// is undone (or merged into the transposition that split its heads). Where k and v were expanded to more heads (grouped
// queries), the expansion is dropped. Products over [B*H, S, D] become one over [B, H, S, D] where a reshape of the
// scores says how many heads there are, or those that fold heads into the batch do (folded_heads.cpp); else they have
// one head each, [B*H, 1, S, D].
#include <algorithm>
#include <cmath>
#include <optional>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"
#include "models/mask.h"

namespace sibyl::rewrites {
namespace {

struct Match {
  OperationId root;  // the product with v
  TensorId q, keys, v, mask;
  bool mask_over_heads = false;  // added to scores with an axis of heads
  bool turned = false;           // the product is k q^T; `q` and `keys` stand for k and q^T
  std::int64_t heads = 1;        // of scores [B*H, S, T] that are reshaped to [B, H, S, T]
  TensorId condition;            // of a selecting mask; keeps scores where it is true
  bool keeps_where_true = true;
  double masked = 0;  // what a selecting mask puts elsewhere
  Attention attributes;
  std::vector<OperationId> used;
  std::vector<OperationId> skipped;  // scales before what moves q or k, which stays
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

// Steps back over reshapes of the scores that fold heads into the batch, or back.
TensorId refolded(const Editor& editor, TensorId t, Match& m) {
  while (editor.produced_by<Reshape>(t)) {
    const Shape &to = editor[t].shape, &from = editor[editor.operand(t, 0)].shape;
    const bool folds = (to.size() == 3 && from.size() == 4) || (to.size() == 4 && from.size() == 3);
    if (!folds || !std::equal(to.end() - 2, to.end(), from.end() - 2)) return t;
    m.heads = (to.size() == 4 ? to : from)[1];
    m.used.push_back(editor.producer(t));
    t = editor.operand(t, 0);
  }
  return t;
}

// Steps back over where(p is NaN, 0, p): a query that a mask leaves without keys takes nothing. p is NaN where it is
// not equal to itself.
TensorId with_nan(const Editor& editor, TensorId t, Match& m) {
  if (!editor.produced_by<Where>(t)) return t;
  const TensorId is_nan = editor.operand(t, 0), p = editor.operand(t, 2);
  const auto zero = scalar_value(editor, editor.operand(t, 1));
  if (!zero || *zero != 0 || !unary(editor, is_nan, UnaryKind::logical_not)) return t;
  const TensorId equal = editor.operand(is_nan, 0);
  if (!binary(editor, equal, BinaryKind::equal) || editor.operand(equal, 0) != p || editor.operand(equal, 1) != p)
    return t;
  m.used.insert(m.used.end(), {editor.producer(t), editor.producer(is_nan), editor.producer(equal)});
  return p;
}

bool exchanges_last_two(const Transpose& transpose) {
  Ints permutation = transpose.permutation;
  if (permutation.size() < 2) return false;
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return std::is_sorted(permutation.begin(), permutation.end());
}

// Steps back over what is done to all scores alike: scales, a constant added, which falls out of the softmax, and the
// transposition of (k q^T)^T = q k^T.
TensorId bare_scores(const Editor& editor, TensorId t, Match& m) {
  while (true) {
    t = refolded(editor, t, m);
    if (const auto* scale = unary(editor, t, UnaryKind::scale_shift))
      m.attributes.scale *= scale->alpha;
    else if (const auto* turn = editor.produced_by<Transpose>(t); turn && exchanges_last_two(*turn))
      m.turned = !m.turned;
    else
      return t;
    m.used.push_back(editor.producer(t));
    t = editor.operand(t, 0);
  }
}

// A scale of q or k may stand before their heads are split, that is before operations that only move elements.
void take_early_scale(const Editor& editor, TensorId t, Match& m) {
  while (editor.sole_consumer(t).valid()) {
    if (const auto* scale = unary(editor, t, UnaryKind::scale_shift)) {
      if (scale->beta != 0) return;
      m.attributes.scale *= scale->alpha;
      m.skipped.push_back(editor.producer(t));
    } else if (!editor.produced_by<Reshape>(t) && !editor.produced_by<Transpose>(t)) {
      return;
    }
    t = editor.operand(t, 0);
  }
}

bool is_causal_shape(const Editor& editor, TensorId mask) {
  const Shape& s = editor[mask].shape;
  return s.size() >= 2 && s.back() > 1 && s[s.size() - 2] == s.back() && element_count(s) == s.back() * s.back();
}

// Large masks' elements are not known, nor those of what the model computes from others.
bool is_causal_mask(const Editor& editor, TensorId mask, MaskForm form) {
  if (!is_causal_shape(editor, mask) || !is_stored(editor, mask)) return false;
  const Tensor& t = editor[mask];
  const bool known = static_cast<std::int64_t>(t.values.size()) == element_count(t.shape);
  return !known || is_causal(t.values, t.shape.back(), form);
}

void add_mask(const Editor& editor, TensorId mask, bool over_heads, Match& m, bool& valid) {
  if (is_causal_mask(editor, mask, MaskForm::added)) {
    m.attributes.causal = true;
    return;
  }
  valid = valid && !m.mask.valid() && !m.condition.valid();
  m.mask = mask;
  m.mask_over_heads = over_heads;
}

void add_condition(const Editor& editor, TensorId condition, bool keeps_where_true, double masked, bool over_heads,
                   Match& m, bool& valid) {
  const MaskForm form = keeps_where_true ? MaskForm::keeps_where_true : MaskForm::keeps_where_false;
  if (is_causal_mask(editor, condition, form)) {
    m.attributes.causal = true;
    return;
  }
  valid = valid && !m.mask.valid() && !m.condition.valid();
  m.condition = condition;
  m.keeps_where_true = keeps_where_true;
  m.masked = masked;
  m.mask_over_heads = over_heads;
}

// The scores of scores mask - c (1 - mask), or an invalid id.
TensorId unmultiplied(const Editor& editor, OperationId difference, Match& m) {
  const TensorId masked = editor[difference].inputs[0];
  if (!binary(editor, masked, BinaryKind::mul)) return {};
  const OperationId product = editor.producer(masked);
  for (const std::size_t scores : {0U, 1U}) {
    const TensorId mask = editor[product].inputs[1 - scores];
    if (!is_causal_mask(editor, mask, MaskForm::keeps_where_true)) continue;
    m.attributes.causal = true;
    m.used.insert(m.used.end(), {difference, product});
    return editor[product].inputs[scores];
  }
  return {};
}

// Steps back over one mask and returns the scores it was put on; an invalid id where `t` is not a masked tensor.
TensorId unmasked(const Editor& editor, TensorId t, Match& m, bool& valid) {
  const OperationId id = editor.producer(t);
  if (!id.valid() || m.turned) return {};
  const auto& in = editor[id].inputs;
  const bool over_heads = editor[t].shape.size() == 4;
  if (std::holds_alternative<Where>(editor[id].attributes)) {
    for (const std::size_t scores : {1U, 2U}) {
      const auto masked = scalar_value(editor, in[3 - scores]);
      if (!masked || *masked > -1e3 || editor[in[scores]].shape != editor[t].shape) continue;
      add_condition(editor, in[0], scores == 1, *masked, over_heads, m, valid);
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
      s = bare_scores(editor, s, trial);
      if (editor.produced_by<MatMul>(s)) {
        add_mask(editor, in[1 - scores], over_heads, m, valid);
        m.used.push_back(id);
        return in[scores];
      }
      s = unmasked(editor, s, trial, ignored);
    }
  }
  return {};
}

// Of operands [B*H, S, D] all of which say it.
std::int64_t heads_of_operands(const Editor& editor, const Match& m) {
  const std::int64_t heads = heads_in_batch(editor, m.q);
  return heads == heads_in_batch(editor, m.keys) && heads == heads_in_batch(editor, m.v) ? heads : 1;
}

std::optional<Match> match(const Editor& editor, OperationId root) {
  if (!std::holds_alternative<MatMul>(editor[root].attributes)) return std::nullopt;
  Match m;
  m.root = root;
  TensorId t = editor[root].inputs[0];
  m.v = editor[root].inputs[1];
  t = refolded(editor, t, m);
  if (const auto* dropout = editor.produced_by<Dropout>(t)) {
    m.attributes.dropout = dropout->ratio;
    m.used.push_back(editor.producer(t));
    t = refolded(editor, editor.operand(t, 0), m);
  }
  t = with_nan(editor, t, m);
  const auto* softmax = editor.produced_by<Softmax>(t);
  const auto rank = static_cast<std::int64_t>(editor[t].shape.size());
  if (!softmax || softmax->log || (softmax->axis != -1 && softmax->axis != rank - 1)) return std::nullopt;
  m.used.push_back(editor.producer(t));
  t = editor.operand(t, 0);

  bool valid = true;
  for (TensorId next = t; next.valid(); next = unmasked(editor, t, m, valid)) t = bare_scores(editor, next, m);
  if (!valid || m.heads < 1 || !editor.produced_by<MatMul>(t)) return std::nullopt;
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
  if (dims == 4 && (m.mask.valid() || m.condition.valid()) && !m.mask_over_heads) return std::nullopt;
  if (dims == 3 && m.heads == 1 && !m.mask_over_heads) m.heads = heads_of_operands(editor, m);
  take_early_scale(editor, m.q, m);
  take_early_scale(editor, m.keys, m);
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

// [B*H, S, D] -> [B, H, S, D]; a mask for all of them, [1, S, T] -> [1, 1, S, T].
Tensor with_head_axis(Tensor t, std::int64_t heads) {
  if (t.shape[0] == 1) heads = 1;
  t.shape[0] /= heads;
  t.shape.insert(t.shape.begin() + 1, heads);
  if (t.batch_axis && *t.batch_axis > 0) ++*t.batch_axis;
  t.name += "/heads";
  return t;
}

TensorId with_head(Editor& editor, OperationId place, TensorId t, std::int64_t heads) {
  if (editor[t].shape.size() != 3) return t;  // a mask without batch
  return editor.insert_before(place, Reshape{}, {t}, with_head_axis(editor[t], heads));
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
  for (const OperationId scale : m.skipped) {
    editor.redirect(editor[scale].outputs[0], editor[scale].inputs[0]);
    m.used.push_back(scale);
  }
  TensorId q = m.q, k = untransposed_keys(editor, m), v = m.v;
  if (m.turned) std::swap(q, k);
  const auto k_shape = shape_before_repeat(editor, k), v_shape = shape_before_repeat(editor, v);
  if (k_shape && k_shape == v_shape)
    k = unrepeated(editor, m.root, k, *k_shape), v = unrepeated(editor, m.root, v, *v_shape);
  if (m.condition.valid()) m.mask = additive_mask(editor, m);

  std::vector<TensorId> inputs = {q, k, v};
  if (m.mask.valid()) inputs.push_back(m.mask);
  if (!flat) {
    editor.fuse(m.root, m.used, m.attributes, std::move(inputs));
    return;
  }
  // The attention runs on four axes; a reshape takes the product's place.
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (i < 3 || !m.mask_over_heads) inputs[i] = with_head(editor, m.root, inputs[i], m.heads);
  const Operation product = editor[m.root];
  Tensor tall = with_head_axis(editor[product.outputs[0]], m.heads);
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
