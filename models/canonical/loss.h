// What a training step minimises.
#pragma once

#include "base/result.h"
#include "models/graph.h"

namespace sibyl {

enum class LossKind {
  automatic,      // cross-entropy over classes or tokens by the output's shape; mean squared error for the rest
  cross_entropy,
  mean_squared_error,
  none,           // leave the model as it is: no backward
};

// Adds a loss on the first floating-point output of a finished graph: a `targets` input, the loss operation, and
// graph.loss; the result is finished. What `automatic` chooses, for an output that grows with the batch:
//   [N, C], C >= 2                                -> cross-entropy over axis 1, targets [N]
//   [N, C, spatial...], two or more spatial axes  -> cross-entropy over axis 1 (a class for each pixel), targets [N, spatial...]
//   [B, S, V] of a model whose inputs are ids     -> cross-entropy over the last axis, targets [B, S]
//   anything else                                 -> mean squared error, targets of the output's shape
// A Softmax or LogSoftmax over the classes that ends the model is dropped: cross-entropy takes logits. So is a Sigmoid.
// Further outputs (auxiliary heads) do not train and what only they need is removed. LossKind::none returns the graph as it is.
//
// Errors: no floating output that depends on a parameter, or cross-entropy asked of an output without a class axis.
Result<Graph> attach_loss(Graph graph, LossKind kind);

}  // namespace sibyl
