// LayerNorm   (x - m) / sqrt(mean((x - m)^2) + eps) * scale + shift,  m = mean(x)     Ba et al., 2016
// RMSNorm     x / sqrt(mean(x^2) + eps) * scale                                       Zhang and Sennrich, 2019
//
// Means run over the last axes. The root may be followed by a division, a reciprocal and a product, or be a reciprocal root. TensorFlow
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

// The root of the mean square, and what was squared.
struct Root {
  TensorId root;  // sqrt(mean(d^2) + eps), or its reciprocal
  bool reciprocal = false;
  TensorId d;
  std::int64_t axes = 0;
  double epsilon = 0;
  Operations used;
};

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
  const TensorId variance = editor.operand(shifted, 0);
  const std::int64_t axes = mean_axes(editor, variance);
  if (axes == 0) return std::nullopt;
  const TensorId square = editor.operand(variance, 0);
  const TensorId d = squared(editor, square);
  if (!d.valid()) return std::nullopt;
  return Root{editor[id].outputs[0], reciprocal, d, axes, shift->beta,
              {id, editor.producer(shifted), editor.producer(variance), editor.producer(square)}};
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

// d / root, or d times its reciprocal, where d is x centred (layer) or x itself (rms).
std::optional<Norm> match_quotient(const Editor& editor, const Root& root, TensorId x, bool layer) {
  Norm norm{{}, x, {}, {}, root.used};
  TensorId r = root.root;
  OperationId user = editor.sole_consumer(r);
  if (!user.valid()) return std::nullopt;
  bool reciprocal = root.reciprocal;
  if (!reciprocal && unary(editor, editor[user].outputs[0], UnaryKind::reciprocal)) {
    norm.used.push_back(user);
    reciprocal = true;
    r = editor[user].outputs[0];
    user = editor.sole_consumer(r);
    if (!user.valid()) return std::nullopt;
  }
  const auto* op = std::get_if<Binary>(&editor[user].attributes);
  if (!op || op->kind != (reciprocal ? BinaryKind::mul : BinaryKind::div)) return std::nullopt;
  if (!reciprocal && editor[user].inputs[1] != r) return std::nullopt;
  TensorId d = other_operand(editor[user], r);
  if (reciprocal && !layer && spans(editor, d, x, root.axes)) {  // inv = r * scale; x * inv
    norm.scale = d;
    norm.used.push_back(user);
    r = editor[user].outputs[0];
    user = editor.sole_consumer(r);
    if (!user.valid() || !binary(editor, editor[user].outputs[0], BinaryKind::mul)) return std::nullopt;
    d = other_operand(editor[user], r);
  }
  if (layer ? centred(editor, d, root.axes, norm.used) != x : d != x) return std::nullopt;
  norm.last = user;
  extend_with_affine(editor, norm, root.axes, layer);
  return norm;
}

// inv = r [* scale]; x * inv + (shift - m * inv).
std::optional<Norm> match_folded(const Editor& editor, const Root& root, TensorId x) {
  Norm norm{{}, x, {}, {}, root.used};
  if (!root.reciprocal) return std::nullopt;
  TensorId inverse = root.root;
  if (const OperationId user = editor.sole_consumer(inverse); user.valid()) {
    if (!binary(editor, editor[user].outputs[0], BinaryKind::mul)) return std::nullopt;
    norm.scale = other_operand(editor[user], inverse);
    if (!spans(editor, norm.scale, x, root.axes)) return std::nullopt;
    norm.used.push_back(user);
    inverse = editor[user].outputs[0];
  }
  for (const OperationId product : editor.consumers(inverse)) {
    const TensorId y = editor[product].outputs[0];
    const TensorId factor = binary(editor, y, BinaryKind::mul) ? other_operand(editor[product], inverse) : TensorId{};
    const OperationId next = editor.sole_consumer(y);
    if (factor == x && next.valid() && binary(editor, editor[next].outputs[0], BinaryKind::add)) {
      norm.last = next;
    } else if (factor.valid() && mean_axes(editor, factor) == root.axes && editor.operand(factor, 0) == x &&
               next.valid() && binary(editor, editor[next].outputs[0], BinaryKind::sub) && editor[next].inputs[1] == y) {
      norm.shift = editor[next].inputs[0];
      norm.used.insert(norm.used.end(), {editor.producer(factor), next});
    } else {
      return std::nullopt;
    }
    norm.used.push_back(product);
  }
  if (!norm.last.valid() || !norm.shift.valid() || !spans(editor, norm.shift, x, root.axes)) return std::nullopt;
  return norm;
}

bool fuse(Editor& editor, const Root& root, const std::optional<Norm>& norm, NormalizationKind kind) {
  if (!norm) return false;
  std::vector<TensorId> inputs = {norm->x};
  if (norm->scale.valid() || norm->shift.valid()) inputs.push_back(norm->scale);
  if (norm->shift.valid()) inputs.push_back(norm->shift);
  return editor.fuse(norm->last, norm->used, Normalization{kind, root.axes, 1, root.epsilon, 0.1}, std::move(inputs));
}

}  // namespace

void norms(Editor& editor) {
  for (const OperationId id : editor.order()) {
    if (!editor.alive(id)) continue;
    auto root = match_root(editor, id);
    if (!root) continue;
    Root layer = *root;
    if (const TensorId x = centred(editor, layer.d, layer.axes, layer.used); x.valid()) {
      if (fuse(editor, layer, match_quotient(editor, layer, x, true), NormalizationKind::layer)) continue;
      if (fuse(editor, layer, match_folded(editor, layer, x), NormalizationKind::layer)) continue;
    }
    fuse(editor, *root, match_quotient(editor, *root, root->d, false), NormalizationKind::rms);
  }
}

}  // namespace sibyl::rewrites
