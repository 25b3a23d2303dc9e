// Losses that a model holds itself.
#include "models/onnx/operators/families.h"

namespace sibyl::onnx_import {
namespace {

// NegativeLogLikelihoodLoss takes log-probabilities; log-softmax leaves those as they are, so the cross-entropy of them
// is the same number.
Result<Lowering> cross_entropy(const Node& node) {
  const std::string reduction = node.text("reduction", "mean");
  if (reduction != "mean") return unsupported("a loss that is no mean (reduction '" + reduction + "')");
  if (node.has(2)) return unsupported("it weighs its classes");
  const Shape& scores = node.shape(0);
  Shape places = scores;
  if (places.size() > 1) places.erase(places.begin() + 1);
  if (scores.size() < 2 || node.shape(1) != places)
    return fail("scores " + to_string(scores) + " and classes " + to_string(node.shape(1)) + " do not fit together");
  Lowering lowering = single(node, CrossEntropy{1}, {0, 1}, {}, node.dtype(0));
  if (node.output_count() > 1) {  // and the log-probabilities
    lowering.steps.insert(lowering.steps.begin(),
                          Step{Softmax{1, true}, {{Operand::From::input, 0}}, {{Operand::From::output, 1}}});
    lowering.outputs.push_back({node.dtype(0), scores, {}});
  }
  return lowering;
}

}  // namespace

std::span<const Operator> loss_operators() {
  static constexpr Operator table[] = {
      {"SoftmaxCrossEntropyLoss", cross_entropy, 2},
      {"NegativeLogLikelihoodLoss", cross_entropy, 2},
  };
  return table;
}

}  // namespace sibyl::onnx_import
