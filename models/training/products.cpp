#include "models/training/products.h"

#include <variant>

namespace sibyl {
namespace {

// Operands 0 and 1 are multiplied, and a bias would be operand 2.
bool is_product(const Attributes& attributes) {
  return std::holds_alternative<Convolution>(attributes) || std::holds_alternative<Linear>(attributes) ||
         std::holds_alternative<MatMul>(attributes) || std::holds_alternative<GroupedLinear>(attributes);
}

ProductWork of_attention(const Signature& signature, std::uint32_t gradients, Backend backend) {
  const Shape &q = signature.inputs.at(0), &k = signature.inputs.at(1);
  if (q.size() != 4 || k.size() != 4) return {};
  const std::int64_t ring = std::get<Attention>(signature.attributes).ring;
  const double one =
      2.0 * static_cast<double>(q[0] * q[1]) * static_cast<double>(q[2] * q[3]) * static_cast<double>(k[2] * ring);
  const bool keeps_scores = backend == Backend::cpu && ring == 1;
  return {Flops{2 * one}, Flops{gradients == 0 ? 0.0 : (keeps_scores ? 4 : 5) * one}};
}

}  // namespace

ProductWork product_work(const Signature& signature, std::uint32_t gradients, Backend backend) {
  if (std::holds_alternative<Attention>(signature.attributes)) return of_attention(signature, gradients, backend);
  if (!is_product(signature.attributes)) return {};
  Signature unbiased = signature;
  if (unbiased.inputs.size() > 2) unbiased.inputs.resize(2);
  const TrainingRule rule = training_rule(unbiased, gradients & 3U, backend);
  return {rule.forward.flops, rule.backward.flops};
}

}  // namespace sibyl
