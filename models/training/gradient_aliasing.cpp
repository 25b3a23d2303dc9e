#include "models/training/gradient_aliasing.h"

namespace sibyl {

bool passes_gradient_through(const Signature& s, std::size_t operand) {
  if (std::holds_alternative<Reshape>(s.attributes) || std::holds_alternative<Copy>(s.attributes)) return true;
  const auto* binary = std::get_if<Binary>(&s.attributes);
  if (!binary || s.inputs.size() != 2 || s.inputs[operand] != s.outputs.front()) return false;  // broadcast: summed anew
  return binary->kind == BinaryKind::add || (binary->kind == BinaryKind::sub && operand == 0);
}

}  // namespace sibyl
