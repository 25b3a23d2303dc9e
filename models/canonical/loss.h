// What a training step minimises.
#pragma once

#include "base/result.h"
#include "models/graph.h"

namespace sibyl {

enum class LossKind {
  automatic,      // the model's own, else by the output's shape cross-entropy over classes or tokens or squared error
  cross_entropy,
  mean_squared_error,
  none,           // leave the model as it is: no backward
};

// Adds a loss on the first output of a finished, canonical graph that is floating point and depends on a parameter: a
// `targets` input (index_bound = number of classes), the loss operation, and graph.loss; the result is finished. What
// `automatic` chooses:
//   [N, C], C >= 2                                -> cross-entropy over axis 1, targets [N]
//   [N, C, spatial...], two or more spatial axes, unless an input has that very shape (an autoencoder, a denoiser)
//                                                 -> cross-entropy over axis 1 (a class for each pixel), targets [N,
//                                                 spatial...]
//   [B, S, V] of a linear layer in a model with an embedding -> cross-entropy over the last axis, targets [B, S]; also
//                                                    where they were scaled, capped (c tanh(x / c)) or cast since
//   anything else                                 -> mean squared error, targets of the output's shape
// Under cross-entropy, a Softmax, LogSoftmax or Sigmoid that ends the model is dropped: the loss takes logits.
// Further [N, C] outputs of the first's shape are auxiliary classifiers (GoogLeNet, Inception) and train with weight
// 0.3; what only other outputs need is removed. Where that first output is one number for the whole batch, the model
// ends in its own loss: `automatic` takes it, and Graph::assumed says so. LossKind::none returns the graph as it is.
//
// Errors: no output depends on a parameter, or cross-entropy is asked of an output without an axis of classes.
Result<Graph> attach_loss(Graph graph, LossKind kind);

}  // namespace sibyl
