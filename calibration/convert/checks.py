"""No kernel computes faster than its device's peak, nor moves data faster than its memory. A sample that does was not what its
source says it was (or was timed wrongly), and is left out.

Convolutions with fewer multiplications than the direct sum are allowed for: Winograd's F(4x4, 3x3) needs a quarter of them (Lavin & Gray,
2016), the best that cuDNN, MIOpen and MKL use for windows of 3x3 and more at stride 1. What fits the last-level cache twice
over need not come from memory.
"""

import math
import re

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1}
WINOGRAD = 4.0


def shapes(text, sizes):
    text = re.sub(r"\$(\d+)", lambda m: str(sizes[int(m.group(1))]), text)
    return [[int(extent) for extent in shape.split("x")] for shape in text.split(",")]


def multiply_adds(kind, attributes, inputs, outputs):
    """Of the least work that the operation can be done with; 0 where it is bound by memory anyway."""
    x, y = inputs[0], outputs[0]
    if kind in ("linear", "matmul"):
        return math.prod(y) * x[-1]
    if kind == "attention":
        return 2 * math.prod(x) * inputs[1][2] / (2 if "causal=1" in attributes else 1)
    if kind == "convolution":
        weight = inputs[1]
        fast = WINOGRAD if weight[2] * weight[3] > 1 and "stride=1x1" in attributes else 1.0
        return math.prod(y) * math.prod(weight[1:]) / fast
    return 0


def least_time(device, template, sizes):
    """Seconds that the device's datasheet allows."""
    head, rest = template.split("[", 1)
    body, dtype = rest.rsplit(":", 1)
    before, after = body.split("->")
    inputs, outputs = shapes(before[:-1], sizes), shapes(after.strip("[]"), sizes)
    kind, _, attributes = head.split(" ", 1)[1].partition("(")
    peak = device["peak_flops_per_s"].get(dtype, device["peak_flops_per_s"]["f32"])
    moved = ELEMENT_BYTES[dtype] * sum(math.prod(s) for s in inputs + outputs)
    from_memory = max(0.0, moved - 2 * device["cache_bytes"])
    return max(2 * multiply_adds(kind, attributes, inputs, outputs) / peak, from_memory / device["memory_bandwidth_bytes_per_s"])


def is_possible(device, sample):
    template, sizes, time, _ = sample
    return time >= least_time(device, template, sizes)
