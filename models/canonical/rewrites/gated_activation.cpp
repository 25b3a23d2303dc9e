// An activation y = P(x, f(Q(x))) with polynomials P and Q is recognised by f and the coefficients of both, so every
// order in which an exporter writes the arithmetic is the same pattern:
//   GELU       x/2 + x/2 erf(x / sqrt 2)                                 Hendrycks and Gimpel, 2016
//   GELU tanh  x/2 + x/2 tanh(sqrt(2/pi) (x + 0.044715 x^3))
//   SiLU       x sigmoid(x)
//   HardSwish  x hard_sigmoid(x; 1/6, 1/2), x clip(x + 3, 0, 6) / 6, or
//              x clip(x / 6 + 1/2, 0, 1)                                 Howard et al., 2019
//   hard sigmoid  the same without x; or clip(x / 5 + 1/2, 0, 1)         Keras 2
//   Mish       x tanh(softplus(x))                                       Misra, 2019
#include <cmath>
#include <numbers>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

struct Pattern {
  Unary inner;        // f
  Polynomial within;  // Q
  Polynomial around;  // P
  Unary becomes;
};

const std::vector<Pattern>& patterns() {
  static const double slope = std::sqrt(2 / std::numbers::pi);
  static const Polynomial x = {{{1, 0}, 1.0}}, g = {{{0, 1}, 1.0}}, x_times_g = {{{1, 1}, 1.0}},
                          half = {{{1, 0}, 0.5}, {{1, 1}, 0.5}}, x_plus_3 = {{{1, 0}, 1.0}, {{0, 0}, 3.0}},
                          sixth = {{{1, 0}, 1.0 / 6}, {{0, 0}, 0.5}}, fifth = {{{1, 0}, 0.2}, {{0, 0}, 0.5}};
  static const std::vector<Pattern> all = {
      {{UnaryKind::erf, 0, 0}, {{{1, 0}, std::numbers::sqrt2 / 2}}, half, {UnaryKind::gelu}},
      {{UnaryKind::tanh, 0, 0}, {{{1, 0}, slope}, {{3, 0}, 0.044715 * slope}}, half, {UnaryKind::gelu_tanh}},
      {{UnaryKind::sigmoid, 0, 0}, x, x_times_g, {UnaryKind::silu}},
      {{UnaryKind::hard_sigmoid, 1.0 / 6, 0.5}, x, x_times_g, {UnaryKind::hard_swish}},
      {{UnaryKind::clip, 0, 6}, x_plus_3, {{{1, 1}, 1.0 / 6}}, {UnaryKind::hard_swish}},
      {{UnaryKind::clip, 0, 1}, sixth, x_times_g, {UnaryKind::hard_swish}},
      {{UnaryKind::clip, 0, 6}, x_plus_3, {{{0, 1}, 1.0 / 6}}, {UnaryKind::hard_sigmoid, 1.0 / 6, 0.5}},
      {{UnaryKind::clip, 0, 1}, sixth, g, {UnaryKind::hard_sigmoid, 1.0 / 6, 0.5}},
      {{UnaryKind::clip, 0, 1}, fifth, g, {UnaryKind::hard_sigmoid, 0.2, 0.5}},
  };
  return all;
}

// Follows the result of f forward, one consumer at a time, to the operation where the whole is P(x, f). x is given.
bool fuse_around(Editor& editor, OperationId f, TensorId x, const std::vector<OperationId>& within,
                 const Polynomial& around, const Unary& becomes) {
  const TensorId g = editor[f].outputs[0];
  TensorId t = g;
  if (near(around, {{{0, 1}, 1.0}})) return editor.fuse(f, within, becomes, {x});
  for (int step = 0; step < 5; ++step) {
    const OperationId root = editor.sole_consumer(t);
    if (!root.valid() || editor[root].outputs.size() != 1) return false;
    t = editor[root].outputs[0];
    std::vector<OperationId> absorbed;
    const auto polynomial = as_polynomial(editor, t, x, g, absorbed);
    if (!polynomial) continue;
    if (!near(*polynomial, around)) continue;
    absorbed.insert(absorbed.end(), within.begin(), within.end());
    absorbed.push_back(f);
    return editor.fuse(root, std::move(absorbed), becomes, {x});
  }
  return false;
}

bool fuse_pattern(Editor& editor, OperationId f, const Pattern& pattern) {
  const TensorId z = editor[f].inputs[0];
  for (const TensorId x : polynomial_sources(editor, z)) {
    std::vector<OperationId> within;
    const auto polynomial = as_polynomial(editor, z, x, {}, within);
    if (polynomial && near(*polynomial, pattern.within) &&
        fuse_around(editor, f, x, within, pattern.around, pattern.becomes))
      return true;
  }
  return false;
}

}  // namespace

void gated_activations(Editor& editor, bool gelu_tanh_apart) {
  for (const OperationId id : editor.order()) {
    if (!editor.alive(id)) continue;
    const auto* op = std::get_if<Unary>(&editor[id].attributes);
    if (!op) continue;
    const Unary f = *op;
    if (f.kind == UnaryKind::tanh && unary(editor, editor[id].inputs[0], UnaryKind::softplus)) {
      const TensorId z = editor[id].inputs[0];
      if (fuse_around(editor, id, editor.operand(z, 0), {editor.producer(z)}, {{{1, 1}, 1.0}}, {UnaryKind::mish}))
        continue;
    }
    for (const Pattern& pattern : patterns()) {
      if (gelu_tanh_apart && pattern.becomes.kind == UnaryKind::gelu_tanh) continue;
      if (f.kind == pattern.inner.kind && near(f.alpha, pattern.inner.alpha) && near(f.beta, pattern.inner.beta) &&
          fuse_pattern(editor, id, pattern))
        break;
    }
  }
}

}  // namespace sibyl::rewrites
