#include "models/training/training.h"

#include "models/training/rules/rules.h"

namespace sibyl {
namespace rules {
namespace {

const Shape no_shape = {0};

}  // namespace

bool Context::has(std::size_t input) const { return in(input) > 0; }
const Shape& Context::input_shape(std::size_t i) const {
  return i < signature.inputs.size() ? signature.inputs[i] : no_shape;
}
const Shape& Context::output_shape(std::size_t i) const {
  return i < signature.outputs.size() ? signature.outputs[i] : no_shape;
}
double Context::in(std::size_t i) const { return static_cast<double>(element_count(input_shape(i))); }
double Context::out(std::size_t i) const { return static_cast<double>(element_count(output_shape(i))); }

double padded_elements(const Context& c, const Ints& begin, const Ints& end) {
  Shape shape = c.input_shape(0);
  for (std::size_t i = 0; i < begin.size() && i < shape.size(); ++i)
    shape[shape.size() - begin.size() + i] += begin[i] + end[i];
  return static_cast<double>(element_count(shape));
}

}  // namespace rules

TrainingRule training_rule(const Signature& signature, std::uint32_t gradients, Backend backend) {
  const rules::Context context{signature, gradients, backend};
  TrainingRule result = std::visit([&](const auto& op) { return rules::rule(op, context); }, signature.attributes);
  if (gradients == 0) {  // nothing trains through here: no backward, and autograd records nothing
    result.backward = {};
    result.saved.clear();
  }
  return result;
}

}  // namespace sibyl
