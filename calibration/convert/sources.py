"""Reads the published CSV files and yields samples: (kernel key, seconds, citation) and collectives as dictionaries."""

import csv
import math
import os
import re

AICONFIGURATOR = "NVIDIA aiconfigurator (Apache-2.0), systems/data, read 2026-11-21"
NEUSIGHT = "NeuSight, ASPLOS 2025 (MIT), scripts/asplos/data/dataset: PyTorch 2.1, CUDA 12.1, fp32 without TF32, read 2026-11-21"
NEUSIGHT_V100 = NEUSIGHT + "; taken on V100 PCIe 32GB, which has the same HBM2 at 900 GB/s: memory-bound kernels only"
DEEPBENCH = "Baidu DeepBench (Apache-2.0), results/train NV_V100: DGX-1 V100, CUDA 10.1, cuDNN 7.6, read 2026-11-21"


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


def linear(m, n, k, dtype):
    return f"forward linear[{m}x{k},{n}x{k}]->[{m}x{n}]:{dtype}"


def gemm_samples(folder, device):
    dtypes = {"bfloat16": "bf16", "fp8": "f8e4m3"}
    for r in rows(folder, "aiconfigurator_gemm.csv"):
        if r["device"] == device and r["dtype"] in dtypes:
            yield linear(r["m"], r["n"], r["k"], dtypes[r["dtype"]]), seconds(r["us"], 1e-6), AICONFIGURATOR


def attention_samples(folder, device):
    for r in rows(folder, "aiconfigurator_attention_fwd.csv"):
        if r["device"] != device or r["dtype"] != "bfloat16":
            continue
        causal = "(causal=1)" if r["kind"] == "context_attention" else ""
        q = "x".join((r["batch"], r["heads"], r["seq"], r["head_dim"]))
        k = "x".join((r["batch"], r["kv_heads"], r["seq"], r["head_dim"]))
        yield f"forward attention{causal}[{q},{k},{k}]->[{q}]:bf16", seconds(r["us"], 1e-6), AICONFIGURATOR


UNARY = {"relu": "unary", "gelu": "unary(kind=gelu)", "tanh": "unary(kind=tanh)",
         "addu": "unary(kind=scale_shift,alpha=1,beta=1)", "mulu": "unary(kind=scale_shift,alpha=2)"}
BINARY = {"add": "binary", "mul": "binary(kind=mul)", "div": "binary(kind=div)", "pow": "binary(kind=pow)"}


def neusight_samples(folder, device, memory_bound_only, citation):
    """divu and powu are left out: what they divide by and raise to is not stated."""
    for r in rows(folder, "neusight_kernels_fp32.csv"):
        if r["device"] != device:
            continue
        op, time = r["op"], seconds(r["ms"], 1e-3)
        x = f"{r['b']}x{r['h']}"
        if op == "linear" and not memory_bound_only:
            yield linear(r["m"], r["n"], r["k"], "f32"), time, citation
        elif op == "bmm" and not memory_bound_only:
            b, m, n, k = r["b"], r["m"], r["n"], r["k"]
            yield f"forward matmul[{b}x{m}x{k},{b}x{k}x{n}]->[{b}x{m}x{n}]:f32", time, citation
        elif op in UNARY:
            yield f"forward {UNARY[op]}[{x}]->[{x}]:f32", time, citation
        elif op in BINARY:
            yield f"forward {BINARY[op]}[{x},{x}]->[{x}]:f32", time, citation
        elif op == "softmax":
            yield f"forward softmax(axis=1)[{x}]->[{x}]:f32", time, citation
        elif op == "ln":
            yield f"forward normalization(kind=layer)[{x},{r['h']},{r['h']}]->[{x}]:f32", time, citation


DEEPBENCH_DTYPE = {"fp32": "f32", "fp16_mixed": "f16"}


def deepbench_gemm_samples(folder, device):
    """cuBLAS is column-major: C[m,n] = op(A) op(B) is, row-major, y[n,m] = x[n,k] w."""
    for r in rows(folder, "deepbench_gemm.csv"):
        if r["device"] != device or r["dtype"] not in DEEPBENCH_DTYPE or not is_time(r["ms"]):
            continue
        m, n, k, dtype = r["m"], r["n"], r["k"], DEEPBENCH_DTYPE[r["dtype"]]
        time = seconds(r["ms"], 1e-3)
        layout = r["trans_a"] + r["trans_b"]
        if layout == "TN":
            yield linear(n, m, k, dtype), time, DEEPBENCH
        elif layout == "NN":
            yield f"forward linear(weight_kn=1)[{n}x{k},{k}x{m}]->[{n}x{m}]:{dtype}", time, DEEPBENCH
        elif layout == "NT":  # dW[n,m] = dy[k,n]^T x[k,m]
            yield f"backward:01 linear[{k}x{m},{n}x{m}]->[{k}x{n}]:{dtype}", time, DEEPBENCH


def deepbench_convolution_samples(folder, device):
    for r in rows(folder, "deepbench_conv.csv"):
        if r["device"] != device or r["dtype"] not in DEEPBENCH_DTYPE:
            continue
        v = {c: int(r[c]) for c in ("w", "h", "c", "n", "k", "s_filter_w", "r_filter_h", "pad_w", "pad_h", "stride_w",
                                    "stride_h")}
        p = (v["h"] + 2 * v["pad_h"] - v["r_filter_h"]) // v["stride_h"] + 1
        q = (v["w"] + 2 * v["pad_w"] - v["s_filter_w"]) // v["stride_w"] + 1
        pad = f"{v['pad_h']}x{v['pad_w']}"
        window = f"{v['r_filter_h']}x{v['s_filter_w']}"
        signature = (f"convolution(kernel={window},stride={v['stride_h']}x{v['stride_w']},dilation=1x1,pad_begin={pad},"
                     f"pad_end={pad})[{v['n']}x{v['c']}x{v['h']}x{v['w']},{v['k']}x{v['c']}x{window}]"
                     f"->[{v['n']}x{v['k']}x{p}x{q}]:{DEEPBENCH_DTYPE[r['dtype']]}")
        for key, column in (("forward", "fwd_ms"), ("backward:10", "bwd_data_ms"), ("backward:01", "bwd_weight_ms")):
            if is_time(r[column]):
                yield f"{key} {signature}", seconds(r[column], 1e-3), DEEPBENCH


def collective_samples(folder, device):
    """`elements` is nccl-tests' count of the whole buffer: taken per rank, all_gather would exceed NVLink's rate 5 times."""
    names = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
             "alltoall": "all_to_all"}
    for r in rows(folder, "aiconfigurator_nccl.csv"):
        if r["device"] == device and r["dtype"] == "half":
            yield {"collective": names[r["collective"]], "algorithm": "automatic", "ranks_per_node": int(r["gpus"]), "nodes": 1,
                   "groups_per_node": 1, "bytes": 2 * int(r["elements"]), "time_s": seconds(r["us"], 1e-6), "spread": 0,
                   "source": f"{AICONFIGURATOR}: NCCL {r['nccl']}"}
