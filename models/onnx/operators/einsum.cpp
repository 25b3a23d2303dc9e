#include "models/onnx/operators/einsum.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace sibyl::onnx_import {
namespace {

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

// "bij,bjk->bik"; without an arrow the labels that occur once, sorted, are the result.
std::optional<Equation> parse(std::string text) {
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  Equation equation;
  std::string operand;
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      equation.operands.push_back(operand);
      operand.clear();
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      operand += c;
    } else {
      return std::nullopt;
    }
  }
  equation.operands.push_back(operand);
  if (arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    return equation;
  }
  std::map<char, int> count;
  for (const std::string& labels : equation.operands)
    for (const char c : labels) ++count[c];
  for (const auto& [label, times] : count)
    if (times == 1) equation.result += label;
  return equation;
}

bool repeats(const std::string& labels) { return std::set<char>(labels.begin(), labels.end()).size() != labels.size(); }

bool has(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

Ints permutation(const std::string& from, const std::string& to) {
  Ints result;
  for (const char c : to) result.push_back(static_cast<std::int64_t>(from.find(c)));
  return result;
}

// The labels of a product a b: those of both that stay, those that are summed, and those of one alone.
struct Roles {
  std::string batch, summed, rows, columns;
};

std::optional<Roles> roles_of(const std::string& a, const std::string& b, const std::string& result) {
  Roles roles;
  for (const char c : a) {
    if (has(b, c))
      (has(result, c) ? roles.batch : roles.summed) += c;
    else if (has(result, c))
      roles.rows += c;
    else
      return std::nullopt;  // a plain sum over a label of one operand
  }
  for (const char c : b) {
    if (has(a, c)) continue;
    if (!has(result, c)) return std::nullopt;
    roles.columns += c;
  }
  return roles;
}

struct Arrangement {
  Roles roles;
  std::size_t first;  // which operand stands on the left
  std::string order;  // labels of the product
};

// The operands change places where that spares a transposition of the result (keys before queries, as Keras writes its
// attention). A weight alone stands on the right.
std::optional<Arrangement> arrangement_of(const std::vector<std::string>& operands, const std::string& result,
                                          std::array<bool, 2> weight) {
  std::optional<Arrangement> best;
  for (const std::size_t first : {0U, 1U}) {
    if (weight[first] && !weight[1 - first]) continue;
    auto roles = roles_of(operands[first], operands[1 - first], result);
    if (!roles) return std::nullopt;
    std::sort(roles->batch.begin(), roles->batch.end(),
              [&](char a, char b) { return result.find(a) < result.find(b); });
    const std::string order = roles->batch + roles->rows + roles->columns;
    if (!best || (best->order != result && order == result)) best = Arrangement{*roles, first, order};
  }
  return best;
}

}  // namespace

Result<Lowering> einsum(const Node& node) {
  const std::string text = node.text("equation", "");
  const auto equation = parse(text);
  if (!equation || equation->operands.size() > 2) return unsupported("the equation '" + text + "'");
  if (equation->operands.size() != node.input_count())
    return fail("the equation '" + text + "' does not match the operands");
  std::map<char, std::int64_t> extent;
  for (std::size_t i = 0; i < equation->operands.size(); ++i) {
    const std::string& labels = equation->operands[i];
    if (repeats(labels)) return unsupported("the equation '" + text + "'");
    if (!node.has(i) || labels.size() != node.shape(i).size())
      return fail("the equation '" + text + "' does not match the operands");
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      const auto [known, fresh] = extent.emplace(labels[axis], node.shape(i)[axis]);
      if (!fresh && known->second != node.shape(i)[axis])
        return fail("the equation '" + text + "' does not match the operands' shapes");
    }
  }
  const std::string& result = equation->result;
  if (repeats(result) || std::any_of(result.begin(), result.end(), [&](char c) { return !extent.contains(c); }))
    return fail("the equation '" + text + "' is malformed");
  Steps steps(node);
  const std::string& a = equation->operands[0];
  if (equation->operands.size() == 1) {
    if (result.size() != a.size()) return unsupported("the equation '" + text + "'");
    return std::move(steps).result(steps.transpose(steps.input(0), permutation(a, result)));
  }
  const auto chosen = arrangement_of(equation->operands, result, {node.is_weight(0), node.is_weight(1)});
  if (!chosen) return unsupported("the equation '" + text + "'");
  const auto& [roles, first, order] = *chosen;
  const std::string &p = equation->operands[first], &q = equation->operands[1 - first];

  const auto extents = [&](const std::string& labels) {
    Shape shape;
    for (const char c : labels) shape.push_back(extent[c]);
    return shape;
  };
  if (!is_sane(extents(order))) return fail("the result has more than 2^62 elements");
  const std::int64_t m = product(extents(roles.rows)), k = product(extents(roles.summed)),
                     n = product(extents(roles.columns));
  // A linear layer takes rows along any number of axes; a product of activations takes them along one.
  const bool layer = roles.batch.empty() && node.is_weight(1 - first) && !roles.rows.empty();
  Shape left = extents(layer ? roles.rows : roles.batch), right = extents(roles.batch), product_shape = left;
  if (!layer) left.push_back(m), product_shape.push_back(m);
  left.push_back(k);
  right.insert(right.end(), {k, n});
  product_shape.push_back(n);
  const Operand x =
      steps.reshape(steps.transpose(steps.input(first), permutation(p, roles.batch + roles.rows + roles.summed)), left);
  const Operand y = steps.reshape(
      steps.transpose(steps.input(1 - first), permutation(q, roles.batch + roles.summed + roles.columns)), right);
  const Operand z = steps.reshape(steps.add(MatMul{}, {x, y}, product_shape), extents(order));
  return std::move(steps).result(steps.transpose(z, permutation(order, result)));
}

}  // namespace sibyl::onnx_import
