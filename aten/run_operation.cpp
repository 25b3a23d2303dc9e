#include "aten/run_operation.h"

#include <concepts>

#include "aten/operations/families.h"

namespace sibyl::aten {

std::vector<torch::Tensor> run_operation(const Attributes& attributes, const std::vector<torch::Tensor>& inputs,
                                         const std::vector<Shape>& output_shapes) {
  return std::visit(
      [&](const auto& op) -> Tensors {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<Op, OptimizerUpdate>) {
          TORCH_CHECK(false, "an optimizer's update is no operation of a model: it is run by aten/optimizer.h");
        } else if constexpr (requires { { run(op, inputs) } -> std::same_as<Tensors>; }) {
          return run(op, inputs);
        } else if constexpr (requires { run(op, inputs, output_shapes); }) {
          return {run(op, inputs, output_shapes)};
        } else {
          return {run(op, inputs)};
        }
      },
      attributes);
}

}  // namespace sibyl::aten
