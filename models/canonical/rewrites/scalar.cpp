#include <cmath>
#include <limits>
#include <optional>

#include "models/canonical/match.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl::rewrites {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Unary affine(double alpha, double beta) { return {UnaryKind::scale_shift, alpha, beta}; }

// x OP c
std::optional<Unary> with_right(BinaryKind kind, double c) {
  switch (kind) {
    case BinaryKind::add: return affine(1, c);
    case BinaryKind::sub: return affine(1, -c);
    case BinaryKind::mul: return affine(c, 0);
    case BinaryKind::div: return affine(1 / c, 0);
    case BinaryKind::pow: return Unary{UnaryKind::pow, c, 0};
    case BinaryKind::max: return c == 0 ? Unary{UnaryKind::relu, 0, 0} : Unary{UnaryKind::clip, c, infinity};
    case BinaryKind::min: return Unary{UnaryKind::clip, -infinity, c};
    default: return std::nullopt;
  }
}

// c OP x
std::optional<Unary> with_left(BinaryKind kind, double c) {
  switch (kind) {
    case BinaryKind::add:
    case BinaryKind::mul:
    case BinaryKind::max:
    case BinaryKind::min: return with_right(kind, c);
    case BinaryKind::sub: return affine(-1, c);
    case BinaryKind::div: return c == 1 ? std::optional(Unary{UnaryKind::reciprocal, 0, 0}) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

void scalar_operands(Editor& editor) {
  for (const OperationId id : editor.order()) {
    const auto* op = std::get_if<Binary>(&editor[id].attributes);
    if (!op || !is_floating(editor[editor[id].outputs[0]].dtype)) continue;
    for (const std::size_t scalar : {1U, 0U}) {
      const TensorId x = editor[id].inputs[1 - scalar];
      const auto c = scalar_value(editor, editor[id].inputs[scalar]);
      if (!c || !std::isfinite(*c) || editor[x].shape != editor[editor[id].outputs[0]].shape) continue;
      const auto replacement = scalar == 1 ? with_right(op->kind, *c) : with_left(op->kind, *c);
      if (!replacement || (op->kind == BinaryKind::div && *c == 0)) continue;
      editor.fuse(id, {}, *replacement, {x});
      break;
    }
  }
}

}  // namespace sibyl::rewrites
