// From a graph as an exporter wrote it to a graph as a framework runs it.
//
// Exporters decompose: a LayerNorm arrives as nine elementwise nodes, attention as two matrix products and a softmax. Training
// runs each as one kernel, keeps less for backward, and costs less; so canonicalize() finds those patterns and
// puts back the operation that was exported. `Operation::fused` names the nodes each stands for. A pattern is rewritten only
// when nothing else uses the values inside it.
//
// In: a finished graph in the vocabulary of models/operations. An importer may translate node by node: MatMul
// stays MatMul even where its second operand is a parameter, x * 0.5 stays a Binary whose operand is a scalar buffer with
// `values`, Identity is a Reshape of equal shapes. `graph.outputs` lists what must survive (empty: every tensor that
// is produced and not consumed). Out: a finished graph without dead operations or unused tensors. TensorIds change.
//
// Layouts: PyTorch's. Images that a file of TensorFlow's transposes to channels last and back between two convolutions
// stay channels first; weights that are only read in another shape are stored in that shape.
//
// Facts of training: batch-norm always runs in training mode. A file exported for inference has its batch-norms folded
// into the convolutions before them; they are put back where names show it (rewrites/folded_batch_norm.cpp), and
// Graph::assumed says so. Dropout is kept where the file has it.
#pragma once

#include "base/cancelled.h"
#include "base/result.h"
#include "models/canonical/loss.h"
#include "models/graph.h"

namespace sibyl {

// Decomposed in the file, and run so by the framework: these stay apart. Models written in such pieces exist (GPT-2's
// first GELU is eight elementwise calls, TensorFlow's layer norm a mean, a variance and five operations more), and
// attention was products and a softmax before it had a kernel of its own. A bias may be added in the kernel that it
// follows or in one of its own.
struct Apart {
  bool attention = false;
  bool linear_bias = false;
  bool convolution_bias = false;
  bool gelu_tanh = false;
  bool layer_norm = false;  // and RMSNorm
};

// `cancelled` ends it between two patterns, with an Error of code interrupted.
Result<Graph> canonicalize(Graph raw, const Apart& apart = {}, const Cancelled& cancelled = {});

}  // namespace sibyl
