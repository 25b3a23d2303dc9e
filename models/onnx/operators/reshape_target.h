// The shape a Reshape gives, and its repair where the export baked the batch into the target.
#pragma once

#include "models/onnx/node.h"

namespace sibyl::onnx_import {

// ONNX's reading of a target: 0 copies the operand's extent (unless `allow_zero`), one -1 takes what is left.
Result<Shape> resolve_target(const Shape& input, const Ints& target, bool allow_zero);

// Where the batch went. `input` and `output` are a reshape's shapes at a batch of `batch`, `axis` the input's batch axis,
// `target` the reshape's constant target. A reshape keeps row-major order, so the batch stays behind the same number
// of elements: it is the output's axis with as much before it. Where several are (extents of 1), in this order: an axis
// that equals the batch; the -1 that holds it; an axis that starts with it; an axis that holds it inside.
// Nothing: no axis can hold the batch.
std::optional<std::size_t> batch_axis_after(const Shape& input, std::size_t axis, const Shape& output, const Ints& target,
                                            std::int64_t batch);

// The result's shape on the node's side for a target constant in both batches: resolved at the reference batch, with its
// batch axis scaled.
Result<Shape> reshape_constant_target(const Node& node, const Ints& target, bool allow_zero);

}  // namespace sibyl::onnx_import
