#include "models/canonical/match.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace sibyl {
namespace {

std::optional<double> apply(const Unary& op, double x) {
  switch (op.kind) {
    case UnaryKind::sqrt: return std::sqrt(x);
    case UnaryKind::rsqrt: return 1 / std::sqrt(x);
    case UnaryKind::reciprocal: return 1 / x;
    case UnaryKind::neg: return -x;
    case UnaryKind::pow: return std::pow(x, op.alpha);
    case UnaryKind::scale_shift: return op.alpha * x + op.beta;
    default: return std::nullopt;
  }
}

std::optional<double> apply(const Binary& op, double a, double b) {
  switch (op.kind) {
    case BinaryKind::add: return a + b;
    case BinaryKind::sub: return a - b;
    case BinaryKind::mul: return a * b;
    case BinaryKind::div: return a / b;
    case BinaryKind::pow: return std::pow(a, b);
    default: return std::nullopt;
  }
}

std::optional<double> scalar(const Editor& editor, TensorId id, int depth) {
  if (!id.valid() || depth == 0 || element_count(editor[id].shape) != 1) return std::nullopt;
  const OperationId producer = editor.producer(id);
  if (!producer.valid()) {
    const Tensor& t = editor[id];
    return t.kind == TensorKind::buffer && t.values.size() == 1 ? std::optional(t.values[0]) : std::nullopt;
  }
  const Operation& op = editor[producer];
  const auto a = scalar(editor, op.inputs[0], depth - 1);
  if (!a) return std::nullopt;
  if (std::holds_alternative<Reshape>(op.attributes) || std::holds_alternative<Cast>(op.attributes)) return a;
  if (const auto* u = std::get_if<Unary>(&op.attributes)) return apply(*u, *a);
  if (const auto* b = std::get_if<Binary>(&op.attributes))
    if (const auto second = scalar(editor, op.inputs[1], depth - 1)) return apply(*b, *a, *second);
  return std::nullopt;
}

Polynomial product(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  for (const auto& [m, c] : a)
    for (const auto& [n, d] : b) result[{m.first + n.first, m.second + n.second}] += c * d;
  return result;
}

Polynomial sum(Polynomial a, const Polynomial& b, double factor) {
  for (const auto& [n, d] : b) a[n] += factor * d;
  return a;
}

// True for the operations as_polynomial() looks through.
bool is_polynomial(const Attributes& attributes) {
  if (const auto* u = std::get_if<Unary>(&attributes))
    return u->kind == UnaryKind::scale_shift || u->kind == UnaryKind::neg ||
           (u->kind == UnaryKind::pow && (u->alpha == 2 || u->alpha == 3));
  if (const auto* b = std::get_if<Binary>(&attributes))
    return b->kind == BinaryKind::add || b->kind == BinaryKind::sub || b->kind == BinaryKind::mul;
  return false;
}

bool is_elementwise_or_move(const Attributes& attributes) {
  return std::holds_alternative<Unary>(attributes) || std::holds_alternative<Binary>(attributes) ||
         std::holds_alternative<Where>(attributes) || std::holds_alternative<Cast>(attributes) ||
         std::holds_alternative<Reshape>(attributes) || std::holds_alternative<Transpose>(attributes) ||
         std::holds_alternative<Slice>(attributes) || std::holds_alternative<Expand>(attributes);
}

// Whether all that `id` is computed from, by operations that may be passed, is as wanted.
bool all_sources(const Editor& editor, TensorId id, const std::function<bool(const Tensor&)>& wanted,
                 const std::function<bool(const Attributes&)>& passes) {
  std::set<std::size_t> seen;
  std::vector<TensorId> pending = {id};
  while (!pending.empty()) {
    const TensorId t = pending.back();
    pending.pop_back();
    if (!t.valid() || !seen.insert(t.index()).second) continue;
    const OperationId producer = editor.producer(t);
    if (!producer.valid()) {
      if (!wanted(editor[t])) return false;
      continue;
    }
    if (!passes(editor[producer].attributes)) return false;
    pending.insert(pending.end(), editor[producer].inputs.begin(), editor[producer].inputs.end());
  }
  return true;
}

}  // namespace

bool near(double value, double expected) {
  return std::abs(value - expected) <= 1e-3 * std::max(1e-3, std::abs(expected));
}

std::optional<double> scalar_value(const Editor& editor, TensorId id) { return scalar(editor, id, 8); }

bool is_constant(const Editor& editor, TensorId id) {
  return all_sources(
      editor, id, [&](const Tensor& source) { return source.kind == TensorKind::buffer; },
      [](const Attributes&) { return true; });
}

bool is_stored(const Editor& editor, TensorId id) {
  return all_sources(
      editor, id, [&](const Tensor& source) { return source.kind != TensorKind::input; }, is_elementwise_or_move);
}

TensorId other_operand(const Operation& operation, TensorId id) {
  return operation.inputs[operation.inputs[0] == id ? 1 : 0];
}

bool keeps_order(const Tensor& x, const Ints& permutation) {
  std::int64_t last = -1;
  for (const std::int64_t axis : permutation) {
    const auto from = static_cast<std::size_t>(axis);
    if (x.shape[from] == 1 && x.batch_axis != from) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

const Unary* unary(const Editor& editor, TensorId id, UnaryKind kind) {
  const auto* op = editor.produced_by<Unary>(id);
  return op && op->kind == kind ? op : nullptr;
}

const Binary* binary(const Editor& editor, TensorId id, BinaryKind kind) {
  const auto* op = editor.produced_by<Binary>(id);
  return op && op->kind == kind ? op : nullptr;
}

bool near(const Polynomial& value, const Polynomial& expected) {
  auto coefficient = [](const Polynomial& p, std::pair<int, int> term) {
    const auto it = p.find(term);
    return it == p.end() ? 0.0 : it->second;
  };
  return std::all_of(value.begin(), value.end(),
                     [&](const auto& term) { return near(term.second, coefficient(expected, term.first)); }) &&
         std::all_of(expected.begin(), expected.end(),
                     [&](const auto& term) { return near(coefficient(value, term.first), term.second); });
}

std::optional<Polynomial> as_polynomial(const Editor& editor, TensorId t, TensorId x, TensorId g,
                                        std::vector<OperationId>& used, int depth) {
  if (t == x) return Polynomial{{{1, 0}, 1.0}};
  if (t == g) return Polynomial{{{0, 1}, 1.0}};
  const OperationId id = editor.producer(t);
  if (depth == 0 || !id.valid() || !is_polynomial(editor[id].attributes)) return std::nullopt;
  const Operation& op = editor[id];
  used.push_back(id);
  const auto a = as_polynomial(editor, op.inputs[0], x, g, used, depth - 1);
  if (!a) return std::nullopt;
  if (const auto* u = std::get_if<Unary>(&op.attributes)) {
    if (u->kind == UnaryKind::neg) return product(*a, {{{0, 0}, -1.0}});
    if (u->kind == UnaryKind::scale_shift) return sum(product(*a, {{{0, 0}, u->alpha}}), {{{0, 0}, 1.0}}, u->beta);
    const Polynomial square = product(*a, *a);
    return u->alpha == 2 ? square : product(square, *a);
  }
  const auto b = as_polynomial(editor, op.inputs[1], x, g, used, depth - 1);
  if (!b) return std::nullopt;
  const BinaryKind kind = std::get<Binary>(op.attributes).kind;
  return kind == BinaryKind::mul ? product(*a, *b) : sum(*a, *b, kind == BinaryKind::add ? 1 : -1);
}

std::vector<TensorId> polynomial_sources(const Editor& editor, TensorId t, int depth) {
  std::vector<TensorId> found = {t};
  const OperationId id = editor.producer(t);
  if (depth == 0 || !id.valid() || !is_polynomial(editor[id].attributes)) return found;
  for (const TensorId in : editor[id].inputs)
    for (const TensorId source : polynomial_sources(editor, in, depth - 1))
      if (std::find(found.begin(), found.end(), source) == found.end()) found.push_back(source);
  return found;
}

}  // namespace sibyl
