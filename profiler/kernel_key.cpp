#include "profiler/kernel_key.h"

#include <fmt/format.h>

#include <variant>

namespace sibyl {

std::string to_string(const KernelKey& key) {
  if (key.pass == Pass::forward) return "forward " + to_string(key.signature);
  std::string mask;
  for (std::size_t i = 0; i < key.signature.inputs.size(); ++i) mask += (key.gradients >> i & 1U) != 0 ? '1' : '0';
  return fmt::format("backward:{} {}", mask, to_string(key.signature));
}

Result<KernelKey> parse_kernel_key(std::string_view text) {
  auto bad = [&](std::string_view why) { return fail(fmt::format("'{}' is not a kernel key: {}", text, why)); };
  constexpr std::string_view backward = "backward:";
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return bad("expected 'forward SIGNATURE' or 'backward:MASK SIGNATURE'");
  const std::string_view pass = text.substr(0, space);

  KernelKey key;
  SIBYL_TRY(key.signature, parse_signature(text.substr(space + 1)));
  if (pass == "forward") return key;
  if (!pass.starts_with(backward)) return bad("the pass is neither 'forward' nor 'backward:MASK'");
  const std::string_view mask = pass.substr(backward.size());
  if (mask.size() != key.signature.inputs.size() || mask.size() > 32)
    return bad("the gradient mask needs one digit for each operand");
  key.pass = Pass::backward;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != '0' && mask[i] != '1') return bad("the gradient mask is made of 0 and 1");
    if (mask[i] == '1') key.gradients |= 1U << i;
  }
  if (key.gradients == 0) return bad("a backward pass computes at least one gradient");
  return key;
}

std::size_t hash_value(const KernelKey& key) {
  std::size_t seed = hash_value(key.signature);
  seed ^= (std::size_t{key.gradients} << 1) + static_cast<std::size_t>(key.pass) + 0x9e3779b97f4a7c15ULL + (seed << 6) +
          (seed >> 2);
  return seed;
}

Work work_of(const KernelKey& key, Backend backend) {
  const TrainingRule rule = training_rule(key.signature, key.gradients, backend);
  return key.pass == Pass::forward ? rule.forward : rule.backward;
}

Bytes operand_bytes(const KernelKey& key) {
  double elements = 0;
  for (const Shape& shape : key.signature.inputs) elements += static_cast<double>(element_count(shape));
  for (const Shape& shape : key.signature.outputs) elements += static_cast<double>(element_count(shape));
  double times = key.pass == Pass::forward ? 1 : 2;
  if (const auto* update = std::get_if<OptimizerUpdate>(&key.signature.attributes)) {
    const bool one_state = update->kind == OptimizerKind::momentum || update->kind == OptimizerKind::lars;
    times = update->kind == OptimizerKind::sgd ? 2 : one_state ? 3 : 4;
  }
  return Bytes{times * elements * size_in_bytes(key.signature.dtype)};
}

Bytes timed_bytes(const KernelKey& key) {
  double made = 0;
  const bool update = std::holds_alternative<OptimizerUpdate>(key.signature.attributes);
  if (key.pass == Pass::forward && !update && !key.signature.inputs.empty())
    made = static_cast<double>(element_count(key.signature.inputs.front()));
  if (key.pass == Pass::backward)
    for (const Shape& shape : key.signature.outputs) made += static_cast<double>(element_count(shape));
  return operand_bytes(key) + Bytes{made * size_in_bytes(key.signature.dtype)};
}

}  // namespace sibyl
