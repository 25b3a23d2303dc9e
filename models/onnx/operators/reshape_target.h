// The shape a Reshape gives, and its repair where the export baked the batch into the target.
#pragma once

#include "models/onnx/node.h"

namespace sibyl::onnx_import {

// ONNX's reading of a target: 0 copies the operand's extent (unless `allow_zero`), one -1 takes what is left.
Result<Shape> resolve_target(const Shape& input, const Ints& target, bool allow_zero);

// Where the batch may have gone, likeliest first. `input` and `output` are a reshape's shapes at a batch of `batch`,
// `axis` the input's batch axis, `target` the reshape's constant target. A reshape keeps row-major order, so the batch
// stays behind the same number of elements: it is in the output's axis that begins there, or that spans it. The input's
// axis may itself hold more than the batch, before it or behind it, so axes that begin anywhere inside are candidates,
// too. In this order: an axis that equals the batch; the -1 of the target; an axis that begins with it; an axis that
// holds it.
std::vector<std::size_t> batch_axes_after(const Shape& input, std::size_t axis, const Shape& output, const Ints& target,
                                          std::int64_t batch);

// The result's shape on the node's side for a target constant in both batches: resolved at the reference batch, with
// its batch axis scaled.
Result<Shape> reshape_constant_target(const Node& node, const Ints& target, bool allow_zero);

}  // namespace sibyl::onnx_import
