// Mixtures of experts: com.microsoft's MoE, which holds routing, experts and what is between them in one operator, and
// ONNX's TopK.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

Result<Lowering> top_k(const Node& node) {
  SIBYL_TRY(const std::size_t axis, node.front_axis(node.integer("axis", -1)));
  SIBYL_TRY(const auto listed, node.listed("k", 1));
  Ints k = listed.value_or(Ints{node.integer("k", 1)});
  if (axis + 1 != node.shape(0).size()) return unsupported("it looks along another axis than the last");
  if (k.size() != 1 || k[0] < 1 || k[0] > node.shape(0)[axis])
    return fail(fmt::format("it takes the greatest {} of {}", k.empty() ? 0 : k[0], node.shape(0)[axis]));
  Shape shape = node.shape(0);
  shape[axis] = k[0];
  Lowering lowering = single(node, TopK{k[0], node.integer("largest", 1) != 0}, {0}, shape, node.dtype(0));
  lowering.outputs.push_back({DType::i64, shape, {}});
  lowering.steps[0].outputs.push_back({Operand::From::output, 1});
  return lowering;
}

// The parts of com.microsoft's MoE, whose documentation is their source: router_probs are scores, of which the operator
// itself takes the softmax; fc1, fc2 and fc3 have a weight [E, N, K] and maybe a bias each.
class Mixture {
 public:
  explicit Mixture(const Node& node) : node_(node), steps_(node) {}

  Result<Lowering> lower() {
    SIBYL_CHECK(measure());
    const Operand x = steps_.reshape(steps_.input(0), {tokens_, width_});
    const auto [weights, experts] = route();
    const DType type = steps_.fact(x).dtype;
    const auto sent =
        steps_.add_all(Dispatch{group_, capacity_}, {x, experts},
                       {{type, {experts_, tokens_ / group_ * capacity_, width_}, {}}, {DType::i64, {tokens_, k_}, {}}});
    SIBYL_TRY(const Operand hidden, activated(sent[0]));
    SIBYL_TRY(const Operand y, layer(hidden, 4));
    if (steps_.fact(y).shape.back() != width_)
      return fail("its experts make " + to_string(steps_.fact(y).shape) + " of tokens " + to_string(node_.shape(0)));
    const Operand mixed = steps_.add(Combine{group_, capacity_}, {y, sent[1], weights}, {tokens_, width_});
    return std::move(steps_).result(steps_.reshape(mixed, node_.shape(0)));
  }

 private:
  // A sample's tokens are a group: with a batch of B, T tokens are B groups.
  Result<void> measure() {
    const Shape &x = node_.shape(0), &router = node_.shape(1);
    if (x.size() < 2 || router.size() < 2)
      return fail("its input is " + to_string(x) + " and its router's is " + to_string(router));
    width_ = x.back(), tokens_ = element_count(x) / std::max<std::int64_t>(1, width_);
    experts_ = router.back(), k_ = node_.integer("k", 1);
    if (tokens_ < 1 || experts_ < 1 || element_count(router) / experts_ != tokens_)
      return fail("the router's scores " + to_string(router) + " are not those of the tokens of " + to_string(x));
    if (k_ < 1 || k_ > experts_) return fail(fmt::format("it chooses {} of {} experts", k_, experts_));
    const std::int64_t batch = node_.batches()[node_.side()];
    group_ = node_.batch_axis(0) && tokens_ % batch == 0 ? tokens_ / batch : tokens_;
    const double even = static_cast<double>(group_) * static_cast<double>(k_) / static_cast<double>(experts_);
    constexpr double rounding = 1e-9;
    capacity_ = std::clamp(to_integer(std::ceil(even * node_.capacity_factor() - rounding)), std::int64_t{1}, group_);
    return {};
  }

  struct Routes {
    Operand weights, experts;
  };
  Routes route() {
    const Operand scores = steps_.reshape(steps_.input(1), {tokens_, experts_});
    const DType type = steps_.fact(scores).dtype;
    const Operand probabilities = steps_.add(Softmax{1}, {scores}, {tokens_, experts_});
    const auto chosen =
        steps_.add_all(TopK{k_}, {probabilities}, {{type, {tokens_, k_}, {}}, {DType::i64, {tokens_, k_}, {}}});
    if (node_.integer("normalize_routing_weights", 0) == 0) return {chosen[0], chosen[1]};
    const Operand sum = steps_.add(Reduce{ReduceKind::sum, {1}, true}, {chosen[0]}, {tokens_, 1});
    return {steps_.add(Binary{BinaryKind::div}, {chosen[0], sum}, {tokens_, k_}), chosen[1]};
  }

  // The linear layer whose weight is operand `weight` and whose bias is the one behind it. Older versions of the
  // operator wrote weights [E, K, N].
  Result<Operand> layer(Operand x, std::size_t weight) {
    const Shape& rows = steps_.fact(x).shape;
    if (!node_.has(weight)) return fail(fmt::format("it has no weight in place {}", weight));
    const Shape& w = node_.shape(weight);
    const bool fits = w.size() == 3 && w[0] == experts_ && (w[2] == rows[2] || w[1] == rows[2]);
    if (!fits) return fail("a weight " + to_string(w) + " does not fit tokens " + to_string(rows));
    const bool weight_kn = w[2] != rows[2];
    const Shape result{rows[0], rows[1], w[weight_kn ? 2 : 1]};
    std::vector<Operand> operands{x, steps_.input(weight)};
    if (node_.has(weight + 1)) {
      if (node_.shape(weight + 1) != Shape{experts_, result[2]})
        return fail("a bias " + to_string(node_.shape(weight + 1)) + " does not fit " + to_string(result));
      operands.push_back(steps_.input(weight + 1));
    }
    return steps_.add(GroupedLinear{weight_kn}, std::move(operands), result);
  }

  Operand unary(UnaryKind kind, Operand x, double alpha = 0.0, double beta = 0.0) {
    return steps_.add(Unary{kind, alpha, beta}, {x}, steps_.fact(x).shape);
  }
  Result<Operand> product(Operand a, Operand b) {
    const Shape &first = steps_.fact(a).shape, &second = steps_.fact(b).shape;
    if (first != second) return fail("its gate is " + to_string(first) + " and what it gates " + to_string(second));
    return steps_.add(Binary{BinaryKind::mul}, {a, b}, first);
  }

  // What goes into the last layer. A third layer's result is multiplied with the activation of the first's.
  Result<Operand> activated(Operand x) {
    SIBYL_TRY(const Operand first, layer(x, 2));
    const std::string activation = node_.text("activation_type", "relu");
    if (activation == "swiglu") return gated(x, first);
    static const std::map<std::string, UnaryKind> kinds = {
        {"relu", UnaryKind::relu}, {"gelu", UnaryKind::gelu}, {"silu", UnaryKind::silu}};
    const auto kind = kinds.find(activation);
    if (kind == kinds.end() && activation != "identity") return fail("its activation is '" + activation + "'");
    const Operand gate = kind == kinds.end() ? first : unary(kind->second, first);
    if (!node_.has(6)) return gate;
    SIBYL_TRY(const Operand third, layer(x, 6));
    return product(gate, third);
  }

  // G sigmoid(alpha G) (L + beta), G and L being clipped.
  Result<Operand> gated(Operand x, Operand first) {
    Operand gate = first, linear;
    if (node_.integer("swiglu_fusion", 0) != 0 && steps_.fact(first).shape.back() % 2 != 0)
      return fail("its first layer makes " + to_string(steps_.fact(first).shape) +
                  ", which is no gate and as much again");
    switch (node_.integer("swiglu_fusion", 0)) {
      case 0: {
        SIBYL_TRY(linear, layer(x, 6));
        break;
      }
      case 1: gate = every_second(first, 0), linear = every_second(first, 1); break;
      default: gate = half(first, 0), linear = half(first, 1);
    }
    if (node_.attribute("swiglu_limit") != nullptr) {
      constexpr double most = 3.4028234663852886e38;
      const double limit = node_.number("swiglu_limit", most);
      gate = unary(UnaryKind::clip, gate, -most, limit);
      linear = unary(UnaryKind::clip, linear, -limit, limit);
    }
    const double alpha = node_.number("activation_alpha", 1.0), beta = node_.number("activation_beta", 0.0);
    if (beta != 0.0) linear = unary(UnaryKind::scale_shift, linear, 1.0, beta);
    if (alpha == 1.0) return product(unary(UnaryKind::silu, gate), linear);
    const Operand scaled = unary(UnaryKind::scale_shift, gate, alpha, 0.0);
    SIBYL_TRY(const Operand swish, product(gate, unary(UnaryKind::sigmoid, scaled)));
    return product(swish, linear);
  }

  Operand every_second(Operand both, std::int64_t first) {
    Shape shape = steps_.fact(both).shape;
    const std::int64_t width = shape.back() / 2;
    shape.back() = width;
    Shape pairs = shape;
    pairs.push_back(2);
    const Operand paired = steps_.reshape(both, pairs);
    pairs.back() = 1;
    return steps_.reshape(steps_.add(Slice{{3}, {first}, {first + 1}, {1}}, {paired}, pairs), shape);
  }

  // Views of one: sharing looks for a Split to cut each of its parts.
  Operand half(Operand both, std::size_t which) {
    if (halves_.empty()) {
      Shape shape = steps_.fact(both).shape;
      shape.back() /= 2;
      const Fact part{steps_.fact(both).dtype, shape, {}};
      halves_ = steps_.add_all(Split{2, {shape.back(), shape.back()}}, {both}, {part, part});
    }
    return halves_[which];
  }

  const Node& node_;
  Steps steps_;
  std::int64_t tokens_ = 0, width_ = 0, experts_ = 0, k_ = 1, group_ = 1, capacity_ = 1;
  std::vector<Operand> halves_;
};

Result<Lowering> mixture(const Node& node) {
  if (node.integer("use_sparse_mixer", 0) != 0) return unsupported("its router is a sparse mixer");
  return Mixture(node).lower();
}

}  // namespace

std::span<const Operator> expert_operators() {
  static constexpr Operator table[] = {
      {"TopK", top_k},
      {"MoE", mixture, 3, "com.microsoft"},
  };
  return table;
}

}  // namespace sibyl::onnx_import
