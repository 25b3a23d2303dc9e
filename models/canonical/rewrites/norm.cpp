// LayerNorm   (x - m) / sqrt(mean((x - m)^2) + eps) * scale + shift,  m = mean(x)     Ba et al., 2016
// RMSNorm     x / sqrt(mean(x^2) + eps) * scale                                       Zhang and Sennrich, 2019
//
// The mean square about m is also taken as mean(x^2) - m^2. Means run over the last axes. The root may divide, or its
// reciprocal multiply: a power of -1/2, or a root and a reciprocal, as tf2onnx writes TensorFlow's Rsqrt. TensorFlow
// folds the scale in: inv = rsqrt(...) * scale; x * inv + (shift - m * inv).
#include <algorithm>
#include <optional>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

using Operations = std::vector<OperationId>;

// How many trailing axes `t` is a mean over, if it is one; 0 otherwise.
std::int64_t mean_axes(const Editor& editor, TensorId t) {
  const auto* reduce = editor.produced_by<Reduce>(t);
  if (!reduce || reduce->kind != ReduceKind::mean || !reduce->keep_dims || reduce->axes.empty()) return 0;
  const auto rank = static_cast<std::int64_t>(editor[editor.operand(t, 0)].shape.size());
  Ints axes = reduce->axes;
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  const auto count = static_cast<std::int64_t>(axes.size());
  for (std::int64_t i = 0; i < count; ++i)
    if (axes[static_cast<std::size_t>(i)] != rank - count + i) return 0;
  return count;
}

TensorId squared(const Editor& editor, TensorId t) {
  if (const auto* u = unary(editor, t, UnaryKind::pow); u && u->alpha == 2) return editor.operand(t, 0);
  if (binary(editor, t, BinaryKind::mul) && editor.operand(t, 0) == editor.operand(t, 1)) return editor.operand(t, 0);
  return {};
}

// What `t` = x - mean(x) is centred from.
TensorId centred(const Editor& editor, TensorId t, std::int64_t axes, Operations& used) {
  if (!t.valid() || !binary(editor, t, BinaryKind::sub)) return {};
  const TensorId x = editor.operand(t, 0), mean = editor.operand(t, 1);
  if (mean_axes(editor, mean) != axes || editor.operand(mean, 0) != x) return {};
  used.push_back(editor.producer(t));
  used.push_back(editor.producer(mean));
  return x;
}

// The root of the mean square, and what was squared; or of a variance mean(d^2) - mean(d)^2.
struct Root {
  TensorId root;  // sqrt(mean(d^2) + eps), or its reciprocal
  bool reciprocal = false;
  double epsilon = 0;
  Operations used;
  TensorId d{};
  std::int64_t axes = 0;
  bool of_variance = false;
};

bool match_mean_square(const Editor& editor, TensorId t, Root& root) {
  root.axes = mean_axes(editor, t);
  if (root.axes == 0) return false;
  const TensorId square = editor.operand(t, 0);
  root.d = squared(editor, square);
  if (!root.d.valid()) return false;
  root.used.insert(root.used.end(), {editor.producer(t), editor.producer(square)});
  return true;
}

// mean(d^2) - mean(d)^2, as Flax and Keras's backends but TensorFlow's take it; Flax cuts off what is below 0.
bool match_variance(const Editor& editor, TensorId t, Root& root) {
  if (unary(editor, t, UnaryKind::relu)) {
    root.used.push_back(editor.producer(t));
    t = editor.operand(t, 0);
  }
  if (!binary(editor, t, BinaryKind::sub) || !match_mean_square(editor, editor.operand(t, 0), root)) return false;
  const TensorId square = editor.operand(t, 1), mean = squared(editor, square);
  if (!mean.valid() || mean_axes(editor, mean) != root.axes || editor.operand(mean, 0) != root.d) return false;
  root.used.insert(root.used.end(), {editor.producer(t), editor.producer(square), editor.producer(mean)});
  root.of_variance = true;
  return true;
}

std::optional<Root> match_root(const Editor& editor, OperationId id) {
  const auto* op = std::get_if<Unary>(&editor[id].attributes);
  if (!op) return std::nullopt;
  const bool power = op->kind == UnaryKind::pow;
  const bool square_root = op->kind == UnaryKind::sqrt || (power && op->alpha == 0.5);
  const bool reciprocal = op->kind == UnaryKind::rsqrt || (power && op->alpha == -0.5);
  if (!square_root && !reciprocal) return std::nullopt;
  const TensorId shifted = editor[id].inputs[0];
  const auto* shift = unary(editor, shifted, UnaryKind::scale_shift);
  if (!shift || shift->alpha != 1 || !(shift->beta > 0)) return std::nullopt;
  Root root{editor[id].outputs[0], reciprocal, shift->beta, {id, editor.producer(shifted)}};
  const TensorId square = editor.operand(shifted, 0);
  if (!match_mean_square(editor, square, root) && !match_variance(editor, square, root)) return std::nullopt;
  const OperationId next = reciprocal ? OperationId{} : editor.sole_consumer(root.root);
  if (next.valid() && unary(editor, editor[next].outputs[0], UnaryKind::reciprocal)) {
    root.root = editor[next].outputs[0];
    root.reciprocal = true;
    root.used.push_back(next);
  }
  return root;
}

// A matched norm, growing along its affine steps.
struct Norm {
  OperationId last;
  TensorId x, scale, shift;
  Operations used;
};

// True if `t` can be a scale or shift over the last `axes` extents of x.
bool spans(const Editor& editor, TensorId t, TensorId x, std::int64_t axes) {
  const Shape& full = editor[x].shape;
  return editor[t].shape == Shape(full.end() - axes, full.end());
}

void extend_with_affine(const Editor& editor, Norm& norm, std::int64_t axes, bool with_shift) {
  auto step = [&](BinaryKind kind) -> TensorId {
    const TensorId y = editor[norm.last].outputs[0];
    const OperationId next = editor.sole_consumer(y);
    if (!next.valid() || !binary(editor, editor[next].outputs[0], kind)) return {};
    const TensorId factor = other_operand(editor[next], y);
    if (factor == y || !spans(editor, factor, norm.x, axes)) return {};
    norm.used.push_back(norm.last);
    norm.last = next;
    return factor;
  };
  if (!norm.scale.valid()) norm.scale = step(BinaryKind::mul);
  if (with_shift && norm.scale.valid()) norm.shift = step(BinaryKind::add);
}

// What multiplies: the reciprocal root, with the scale where that is folded in (r * scale, scale / root); an invalid id
// where the root divides.
TensorId factor_of(const Editor& editor, const Root& root, Norm& norm) {
  const TensorId alone = root.reciprocal ? root.root : TensorId{};
  const OperationId user = editor.sole_consumer(root.root);
  const auto* op = user.valid() ? std::get_if<Binary>(&editor[user].attributes) : nullptr;
  if (!op || op->kind != (root.reciprocal ? BinaryKind::mul : BinaryKind::div)) return alone;
  if (!root.reciprocal && editor[user].inputs[1] != root.root) return alone;
  const TensorId scale = other_operand(editor[user], root.root);
  if (scale == norm.x || scale == root.d || !spans(editor, scale, norm.x, root.axes)) return alone;
  norm.scale = scale;
  norm.used.push_back(user);
  return editor[user].outputs[0];
}

// d / root, or d times its reciprocal, where d is x centred (layer) or x itself (rms).
std::optional<Norm> match_quotient(const Editor& editor, const Root& root, TensorId x, bool layer) {
  Norm norm{{}, x, {}, {}, root.used};
  const TensorId factor = factor_of(editor, root, norm), r = factor.valid() ? factor : root.root;
  const OperationId user = editor.sole_consumer(r);
  const auto* op = user.valid() ? std::get_if<Binary>(&editor[user].attributes) : nullptr;
  if (!op || op->kind != (factor.valid() ? BinaryKind::mul : BinaryKind::div)) return std::nullopt;
  if (!factor.valid() && editor[user].inputs[1] != r) return std::nullopt;
  const TensorId d = other_operand(editor[user], r);
  if (layer ? centred(editor, d, root.axes, norm.used) != x : d != x) return std::nullopt;
  norm.last = user;
  extend_with_affine(editor, norm, root.axes, layer);
  return norm;
}

// x * inv + (shift - m * inv), or x * inv + ((-m) * inv + shift) as Keras 3; without a shift x * inv - m * inv or
// x * inv + (-m) * inv.
std::optional<Norm> match_folded(const Editor& editor, const Root& root, TensorId x) {
  Norm norm{{}, x, {}, {}, root.used};
  const TensorId factor = factor_of(editor, root, norm);
  if (!factor.valid()) return std::nullopt;
  TensorId scaled, centre;  // x * inv and m * inv
  bool negated = false;
  for (const OperationId product : editor.consumers(factor)) {
    const TensorId y = editor[product].outputs[0];
    if (!binary(editor, y, BinaryKind::mul)) return std::nullopt;
    norm.used.push_back(product);
    TensorId other = other_operand(editor[product], factor);
    if (other == x) {
      scaled = y;
      continue;
    }
    if (unary(editor, other, UnaryKind::neg)) {
      negated = true;
      norm.used.push_back(editor.producer(other));
      other = editor.operand(other, 0);
    }
    if (mean_axes(editor, other) != root.axes || editor.operand(other, 0) != x) return std::nullopt;
    norm.used.push_back(editor.producer(other));
    centre = y;
  }
  norm.last = scaled.valid() && centre.valid() ? editor.sole_consumer(scaled) : OperationId{};
  if (!norm.last.valid()) return std::nullopt;
  const TensorId y = editor[norm.last].outputs[0], rest = other_operand(editor[norm.last], scaled);
  if (rest == centre && !negated && binary(editor, y, BinaryKind::sub) && editor.operand(y, 0) == scaled) return norm;
  if (!binary(editor, y, BinaryKind::add)) return std::nullopt;
  if (rest == centre && negated) return norm;
  if (negated && binary(editor, rest, BinaryKind::add))
    norm.shift = other_operand(editor[editor.producer(rest)], centre);
  else if (!negated && binary(editor, rest, BinaryKind::sub) && editor.operand(rest, 1) == centre)
    norm.shift = editor.operand(rest, 0);
  else
    return std::nullopt;
  norm.used.push_back(editor.producer(rest));
  return spans(editor, norm.shift, x, root.axes) ? std::optional(norm) : std::nullopt;
}

bool fuse(Editor& editor, const Normalization& kind, const std::optional<Norm>& norm) {
  if (!norm) return false;
  std::vector<TensorId> inputs = {norm->x};
  if (norm->scale.valid() || norm->shift.valid()) inputs.push_back(norm->scale);
  if (norm->shift.valid()) inputs.push_back(norm->shift);
  return editor.fuse(norm->last, norm->used, kind, std::move(inputs));
}

// LayerNorm as Keras runs it where its epsilon lets it: x[..., E] as one sample of as many channels as there are rows,
// [1, rows, E, 1], through a batch-norm that takes its statistics from the batch and whose own scale and shift are
// constants; then a scale and a shift over E.
void rewrite_rows(Editor& editor, OperationId id) {
  const auto* norm = std::get_if<Normalization>(&editor[id].attributes);
  if (!norm || norm->kind != NormalizationKind::batch) return;
  const auto& in = editor[id].inputs;
  const TensorId rows = in[0];
  if (!editor.produced_by<Reshape>(rows) || editor[rows].shape.size() < 3) return;
  if (editor[rows].shape[0] != 1 || editor[rows].batch_axis == 0U) return;
  if (in.size() < 5 || !is_constant(editor, in[1]) || !is_constant(editor, in[2])) return;
  if (!editor.producer(in[3]).valid() || !editor.producer(in[4]).valid()) return;  // stored ones are a batch-norm's
  const TensorId x = editor.operand(rows, 0);
  const OperationId back = editor.sole_consumer(editor[id].outputs[0]);
  if (!back.valid() || !std::holds_alternative<Reshape>(editor[back].attributes)) return;
  const Shape& full = editor[x].shape;
  if (editor[editor[back].outputs[0]].shape != full || editor[rows].shape[1] == 0) return;
  const std::int64_t extent = element_count(full) / editor[rows].shape[1];
  std::int64_t axes = 0, product = 1;
  while (product < extent && axes < static_cast<std::int64_t>(full.size()))
    product *= full[full.size() - static_cast<std::size_t>(++axes)];
  if (axes == 0 || product != extent) return;
  Norm found{back, x, {}, {}, {id}};
  const double epsilon = norm->epsilon;
  extend_with_affine(editor, found, axes, true);
  fuse(editor, Normalization{NormalizationKind::layer, axes, 1, epsilon, 0.1}, found);
}

}  // namespace

void norms(Editor& editor) {
  for (const OperationId id : editor.order()) {
    if (!editor.alive(id)) continue;
    rewrite_rows(editor, id);
    auto root = match_root(editor, id);
    if (!root) continue;
    const auto kind = [&](NormalizationKind which) { return Normalization{which, root->axes, 1, root->epsilon, 0.1}; };
    Root layer = *root;
    const TensorId x = layer.of_variance ? layer.d : centred(editor, layer.d, layer.axes, layer.used);
    if (x.valid()) {
      if (fuse(editor, kind(NormalizationKind::layer), match_quotient(editor, layer, x, true))) continue;
      if (fuse(editor, kind(NormalizationKind::layer), match_folded(editor, layer, x))) continue;
    }
    if (!root->of_variance) fuse(editor, kind(NormalizationKind::rms), match_quotient(editor, *root, root->d, false));
  }
}

}  // namespace sibyl::rewrites
