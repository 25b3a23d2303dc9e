"""Reads the published CSV files and yields samples and collectives.

A sample is (template, sizes, seconds, citation). The template is a kernel's key with $0, $1, ... where its sizes stand, so that kernels of
one template differ in their sizes alone.
"""

import csv
import math
import os
import re

AICONFIGURATOR = "NVIDIA aiconfigurator (Apache-2.0), systems/data, read 2026-11-21"
NEUSIGHT = "NeuSight, ASPLOS 2025 (MIT), scripts/asplos/data/dataset: PyTorch 2.1, CUDA 12.1, fp32 without TF32, read 2026-11-21"
DEEPBENCH = "Baidu DeepBench (Apache-2.0), results/train, read 2026-11-21: {}"
CONVNET = ("soumith/convnet-benchmarks (MIT), README of 2015-03: cuDNN R2 through Torch, means of 10 runs in whole milliseconds, read 2026-11-22: {}")
FLASH_ATTENTION_3 = ("Shah et al., FlashAttention-3 (arXiv:2407.08608), figures 5 and 6: H100 80GB SXM5, half precision, 16,384 tokens of 2,048 "
                     "features, read 2026-11-24")
SEPARABLE = ("HIT-HPC-Group/Depthwise_Separable_Convolution_Optimization, DCU/*/V100S_*_PyTorch: convolutions of MobileNet-v2 and "
             "EfficientNet-B0 by PyTorch on a V100S, f32, means of 10 runs, read 2026-11-25: {}")
BENANZA = ("rai-project/dlperf (NCSA), results/: cuDNN 7.6 forward at the GPU's base clock, as of Li et al., Benanza, IPDPS 2020 "
           "(arXiv:1911.06922), the quickest algorithm within 4 GiB of workspace, read 2026-11-25: {}")
VOLUMES = ("xwang233/code-snippet (MIT), conv3d-channels-last: Conv3d by PyTorch and cuDNN 8.0.5 with channels last, as its heuristics choose, f16, "
           "means of 200 runs, read 2026-11-25: {}")
ADDING = {"V100": 0.88 * 900e9, "A100": 0.84 * 1555e9}  # bytes a second
# Beside this file: what MEASURED_FOLDER does not hold.
PUBLISHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published")
DEEPBENCH_NOTES = {"NV_V100": "NV_V100, a DGX-1, CUDA 10.1, cuDNN 7.6"}


def rows(folder, name):
    with open(os.path.join(folder, name), newline="") as file:
        yield from csv.DictReader(file)


def is_time(text):
    """A few DeepBench rows carry a remark where the time should be."""
    return re.fullmatch(r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", text) is not None


def seconds(text, unit):
    value = float(text) * unit
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"not a time: {text}")
    return value


def sizes(row, *columns):
    return tuple(int(row[c]) for c in columns)


LINEAR = "forward linear[$0x$2,$1x$2]->[$0x$1]:{}"  # sizes: M, N, K


def gemm_samples(folder, device):
    dtypes = {"bfloat16": "bf16", "fp8": "f8e4m3"}
    for r in rows(folder, "aiconfigurator_gemm.csv"):
        if r["device"] == device and r["dtype"] in dtypes:
            yield LINEAR.format(dtypes[r["dtype"]]), sizes(r, "m", "n", "k"), seconds(r["us"], 1e-6), AICONFIGURATOR


def attention_samples(folder, device):
    """Repeated rows differ in what the file does not state (the type that keys and values are cached in)."""
    for r in rows(folder, "aiconfigurator_attention_fwd.csv"):
        if r["device"] != device or r["dtype"] != "bfloat16":
            continue
        causal = "(causal=1)" if r["kind"] == "context_attention" else ""
        template = f"forward attention{causal}[$0x$1x$3x$4,$0x$2x$3x$4,$0x$2x$3x$4]->[$0x$1x$3x$4]:bf16"
        yield template, sizes(r, "batch", "heads", "kv_heads", "seq", "head_dim"), seconds(r["us"], 1e-6), AICONFIGURATOR


UNARY = {"relu": "unary", "gelu": "unary(kind=gelu)", "tanh": "unary(kind=tanh)",
         "addu": "unary(kind=scale_shift,alpha=1,beta=1)", "mulu": "unary(kind=scale_shift,alpha=2)"}
BINARY = {"add": "binary", "mul": "binary(kind=mul)", "div": "binary(kind=div)", "pow": "binary(kind=pow)"}


def neusight_samples(folder, device):
    """divu and powu are left out: what they divide by and raise to is not stated."""
    templates = {op: f"forward {kind}[$0x$1]->[$0x$1]:f32" for op, kind in UNARY.items()}
    templates |= {op: f"forward {kind}[$0x$1,$0x$1]->[$0x$1]:f32" for op, kind in BINARY.items()}
    templates["softmax"] = "forward softmax(axis=1)[$0x$1]->[$0x$1]:f32"
    templates["ln"] = "forward normalization(kind=layer)[$0x$1,$1,$1]->[$0x$1]:f32"
    for r in rows(folder, "neusight_kernels_fp32.csv"):
        if r["device"] != device:
            continue
        op, time = r["op"], seconds(r["ms"], 1e-3)
        if op == "linear":
            yield LINEAR.format("f32"), sizes(r, "m", "n", "k"), time, NEUSIGHT
        elif op == "bmm":
            yield "forward matmul[$0x$1x$3,$0x$3x$2]->[$0x$1x$2]:f32", sizes(r, "b", "m", "n", "k"), time, NEUSIGHT
        elif op in templates:
            yield templates[op], sizes(r, "b", "h"), time, NEUSIGHT


# fp16_pseudo (P100: stored in f16, computed in f32) is no type that training computes in here, and is left out.
DEEPBENCH_DTYPE = {"fp32": "f32", "fp16_mixed": "f16"}


def deepbench(device):
    return DEEPBENCH.format(DEEPBENCH_NOTES.get(device, device))


def deepbench_gemm_samples(folder, device):
    """cuBLAS is column-major: C[m,n] = op(A) op(B) is, row-major, y[n,m] = x[n,k] w."""
    templates = {"TN": LINEAR, "NN": "forward linear(weight_kn=1)[$0x$2,$2x$1]->[$0x$1]:{}",
                 "NT": "backward:01 linear[$2x$1,$0x$1]->[$2x$0]:{}"}  # dW[n,m] = dy[k,n]^T x[k,m]
    for r in rows(folder, "deepbench_gemm.csv"):
        if r["device"] != device or r["dtype"] not in DEEPBENCH_DTYPE or not is_time(r["ms"]):
            continue
        template = templates.get(r["trans_a"] + r["trans_b"])
        if template:
            yield template.format(DEEPBENCH_DTYPE[r["dtype"]]), sizes(r, "n", "m", "k"), seconds(r["ms"], 1e-3), deepbench(device)


def convolution_samples(folder, name, device, citation):
    """One line holds all three passes of a convolution."""
    columns = ("w", "h", "c", "n", "k", "s_filter_w", "r_filter_h", "pad_w", "pad_h", "stride_w", "stride_h")
    for r in rows(folder, name):
        if r["device"] != device or r["dtype"] not in DEEPBENCH_DTYPE:
            continue
        w, h, c, n, k, s, t, pad_w, pad_h, stride_w, stride_h = sizes(r, *columns)
        p = (h + 2 * pad_h - t) // stride_h + 1
        q = (w + 2 * pad_w - s) // stride_w + 1
        signature = (f"convolution(kernel={t}x{s},stride={stride_h}x{stride_w},dilation=1x1,pad_begin={pad_h}x{pad_w},"
                     f"pad_end={pad_h}x{pad_w})[$0x$1x$2x$3,$4x$1x{t}x{s}]->[$0x$4x$5x$6]:{DEEPBENCH_DTYPE[r['dtype']]}")
        for key, column in (("forward", "fwd_ms"), ("backward:10", "bwd_data_ms"), ("backward:01", "bwd_weight_ms")):
            if is_time(r[column]):
                yield f"{key} {signature}", (n, c, h, w, k, p, q), seconds(r[column], 1e-3), citation


def separable_samples():
    """Depthwise convolutions, and the 1x1 convolutions around them.

    Each time holds the host's call, since nothing else was under way: the shortest of its kind, in which the device does next to
    nothing, is taken off, and what is not twice as long is left out. The backward pass was timed with that of a cross-entropy over the
    result, and had no gradient of the images to find. Of two convolutions with one result, a depthwise and a 1x1, the loss takes the
    same: their difference, with what the 1x1's gradient takes (as long as it does forward), is the depthwise's gradient of the weight.
    """
    table = list(rows(PUBLISHED, "separable_convolutions.csv"))
    call = {kind: min(float(r["forward_us"]) for r in table if r["kind"] == kind) for kind in ("depthwise", "pointwise")}

    def forward(r):
        return float(r["forward_us"]) - call[r["kind"]]

    def result(r):
        return sizes(r, "n", "k") + (int(r["hw"]) // int(r["stride"]),)

    with_loss = {result(r): float(r["loss_and_weight_us"]) - forward(r) for r in table if r["kind"] == "pointwise" and r["loss_and_weight_us"]}
    for r in table:
        n, c, hw, k, window, stride = sizes(r, "n", "c", "hw", "k", "filter", "stride")
        groups = c if r["kind"] == "depthwise" else 1
        pad, after = window // 2, hw // stride
        shared = f",groups={groups}" if groups > 1 else ""
        signature = (f"convolution(kernel={window}x{window},stride={stride}x{stride},dilation=1x1,pad_begin={pad}x{pad},pad_end={pad}x{pad}"
                     f"{shared})[$0x{c}x{hw}x{hw},{k}x{c // groups}x{window}x{window}]->[$0x{k}x{after}x{after}]:f32")
        least = call[r["kind"]]
        if forward(r) >= least:
            yield f"forward {signature}", (n,), forward(r) * 1e-6, SEPARABLE.format("forward")
        if r["kind"] == "depthwise" and r["loss_and_weight_us"] and result(r) in with_loss:
            weight = float(r["loss_and_weight_us"]) - with_loss[result(r)]
            if weight >= max(least, 0.2 * float(r["loss_and_weight_us"])):
                yield f"backward:01 {signature}", (n,), weight * 1e-6, SEPARABLE.format("weight gradients, as differences")


def benanza_samples(device):
    """Forward passes of the layers of ResNet-50, MobileNet-v2 and others on a GPU that is held at its base clock, in f32; batch-norms in
    cuDNN's mode SPATIAL.

    Of a V100 (1312 of 1530 MHz) batch-norms are taken alone. They wait for memory, whose clock is its own: a TITAN V, the same chip at 1200 MHz
    with 0.73 of the memory's rate, reaches the same share of it (0.53 and 0.52). Its f16 convolutions are half again as slow as DeepBench's, and
    ReLUs are cuDNN's own, which frameworks do not run. GPUs at half of their clocks (T4, M60) are not taken."""
    for r in rows(PUBLISHED, "benanza.csv"):
        if r["device"] != device:
            continue
        n, c, h, w = sizes(r, "n", "c", "h", "w")
        time, citation = seconds(r["us"], 1e-6), BENANZA.format(r["kind"])
        if r["kind"] == "batch_norm":
            yield f"forward normalization[$0x$1x$2x$3,$1,$1,$1,$1]->[$0x$1x$2x$3]:{r['dtype']}", (n, c, h, w), time, citation
        else:
            k, window, pad, stride, groups = sizes(r, "k", "filter", "pad", "stride", "groups")
            shared = f",groups={groups}" if groups > 1 else ""
            signature = (f"convolution(kernel={window}x{window},stride={stride}x{stride},dilation=1x1,pad_begin={pad}x{pad},pad_end={pad}x{pad}"
                         f"{shared})[$0x$1x$2x$3,$4x$5x{window}x{window}]->[$0x$4x$6x$7]:{r['dtype']}")
            p, q = ((extent + 2 * pad - window) // stride + 1 for extent in (h, w))
            yield f"forward {signature}", (n, c, h, w, k, c // groups, p, q), time, citation


def volume_samples(device):
    """Convolutions of volumes in f16, the layers of a 3-D U-Net: forward, and both gradients together. A bias is added, too, and has a
    gradient: a pass over the result each, which is not told apart. With channels first the same kernels take the transpositions longer
    that this project prices beside them.

    The script calls backward 200 times on one graph, so that autograd adds each gradient to those before: three passes over x, at the rate of
    NeuSight's additions on these devices, are taken off. That of the weight is too small to count."""
    for r in rows(PUBLISHED, "volumes.csv"):
        if r["device"] != device:
            continue
        n, c, extent, k, window, pad, stride = sizes(r, "n", "c", "dhw", "k", "filter", "pad", "stride")

        def cube(value):
            return f"{value}x{value}x{value}"
        signature = (f"convolution(kernel={cube(window)},stride={cube(stride)},dilation=1x1x1,pad_begin={cube(pad)},pad_end={cube(pad)})"
                     f"[$0x$1x$2x$2x$2,$3x$1x{cube(window)}]->[$0x$3x$4x$4x$4]:f16")
        shape = (n, c, extent, k, (extent + 2 * pad - window) // stride + 1)
        accumulated = 3 * 2 * n * c * extent**3 / ADDING[device]
        for key, time in (("forward", seconds(r["forward_ms"], 1e-3)), ("backward:11", seconds(r["backward_ms"], 1e-3) - accumulated)):
            yield f"{key} {signature}", shape, time, VOLUMES.format(device)


def kernel_samples(folder, names):
    """All samples of the device that the sources call `names`."""
    if device := names.get("aiconfigurator"):
        yield from gemm_samples(folder, device)
        yield from attention_samples(folder, device)
    if device := names.get("neusight"):
        yield from neusight_samples(folder, device)
    if device := names.get("deepbench"):
        yield from deepbench_gemm_samples(folder, device)
        yield from convolution_samples(folder, "deepbench_conv.csv", device, deepbench(device))
    if device := names.get("convnet"):
        yield from convolution_samples(PUBLISHED, "convnet_benchmarks.csv", device, CONVNET.format(device))
    if "separable" in names:
        yield from separable_samples()
    if device := names.get("benanza"):
        yield from benanza_samples(device)
    if device := names.get("norms"):
        yield from (sample for sample in benanza_samples(device) if " normalization[" in sample[0])
    if device := names.get("volumes"):
        yield from volume_samples(device)


def collective_samples(folder, device):
    """`elements` is nccl-tests' count of the whole buffer: taken per rank, all_gather would exceed NVLink's rate 5 times."""
    names = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
             "alltoall": "all_to_all"}
    for r in rows(folder, "aiconfigurator_nccl.csv"):
        if r["device"] == device and r["dtype"] == "half":
            yield {"collective": names[r["collective"]], "algorithm": "automatic", "ranks_per_node": int(r["gpus"]), "nodes": 1,
                   "groups_per_node": 1, "bytes": 2 * int(r["elements"]), "time_s": seconds(r["us"], 1e-6), "spread": 0,
                   "source": f"{AICONFIGURATOR}: NCCL {r['nccl']}"}


def attention_speeds(faster=1.0):
    """What libraries of attention reach on a Hopper SXM, times `faster`: a row for each library, pass and width of heads."""
    for r in rows(PUBLISHED, "flash_attention_3.csv"):
        lengths = [column for column in r if column.isdigit()]
        yield {"library": r["library"], "pass": r["pass"], "causal": r["causal"] == "1", "head_dim": int(r["head_dim"]),
               "sequences": [int(n) for n in lengths], "flops_per_s": [round(float(r[n]) * faster, 1) * 1e12 for n in lengths]}
