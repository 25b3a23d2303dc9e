#!/usr/bin/python3
"""Measures Gloo, as DistributedDataParallel calls it, into a calibration: probe.py CALIBRATION [--budget SECONDS]

    tools/hosts.sh with 2 1gbit -- run -np 2 -- /usr/bin/python3 tools/ddp/probe.py machine.json

Adds to a calibration that sibyl-calibrate has written: all-reduces and broadcasts by size (`collectives`, algorithm gloo) and
how an all-reduce slows the computation beside it and is slowed (`overlap`, algorithm gloo). Those that it has of these
ranks are replaced. No model is trained here. What differs from sibyl-calibrate's probe is the library, and that its threads
run as PyTorch starts them.
"""

import argparse
import itertools
import json
import os
import statistics
import threading
import time

import ranks
import torch
import torch.distributed as dist

KIB, MIB = 1024, 1024 * 1024
REDUCED = [4, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 10 * MIB, 25 * MIB, 64 * MIB, 128 * MIB, 400 * MIB]
SPREAD_OUT = [8, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB]
BUCKET = 25 * MIB
# From here on a message is sent by itself after some computing, from memory that no cache holds, as training sends it; back to
# back it would come out of the caches (docs/models/network.md, Measuring).
APART_FROM, ROTATED = 16 * KIB, 64 * MIB


def timed(once, allowance, most=15):
    """Median and spread of batches of `once`, each long enough that the skew of starting does not count."""

    def batch(repeats):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(repeats):
            once()
        return ranks.slowest([(time.perf_counter() - begin) / repeats])[0]

    batch(1)  # connections are made, memory is touched
    pilot = max(1e-7, min(batch(1), batch(2)))
    repeats = min(max(int(0.01 / pilot), 1), 500)
    batches = min(max(int(allowance / (repeats * pilot)), 3), most)
    return ranks.median_and_spread([batch(repeats) for _ in range(batches)])


def computation():
    """What a backward pass is made of: elementwise, normalisation, convolution, products (profiler/torch/limits.h, typical_work)."""
    aten = torch.ops.aten
    image, filters = torch.rand(2, 128, 28, 28), torch.rand(128, 128, 3, 3)
    mean, one = torch.zeros(128), torch.ones(128)
    words, weight = torch.rand(64, 1024), torch.rand(1024, 1024)

    def compute():
        begin = time.perf_counter()
        active = aten.threshold_backward(image, image, 0)
        normal = aten.native_batch_norm_backward(active, image, one, None, None, mean, one, True, 1e-5, [True] * 3)[0]
        aten.convolution_backward(normal, image, filters, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
        torch.mm(words, weight)
        torch.mm(words.t(), words)
        return time.perf_counter() - begin

    return compute


def timed_apart(once, compute, allowance, most=15):
    """As `timed`, each run after `compute`. Of the ranks the quickest counts: it arrived last."""

    def run():
        compute()
        dist.barrier()
        begin = time.perf_counter()
        once()
        return ranks.quickest([time.perf_counter() - begin])[0]

    run()  # connections are made, memory is touched
    begin = time.perf_counter()
    run()
    pilot = max(1e-7, ranks.slowest([time.perf_counter() - begin])[0])
    runs = min(max(int(allowance / pilot), 5), most)
    return ranks.median_and_spread([run() for _ in range(runs)])


def all_reduce(size):
    """Of buffers that take turns, where messages are sent apart."""
    copies = max(1, ROTATED // size) if size >= APART_FROM else 1
    turns = itertools.cycle([torch.zeros(size // 4) for _ in range(copies)])
    return lambda: dist.all_reduce(next(turns))


def broadcast(size):
    """There and back, for the first rank is done long before the others are; halved by the caller."""
    data = torch.zeros(size, dtype=torch.uint8)

    def once():
        dist.broadcast(data, 0)
        dist.broadcast(data, dist.get_world_size() - 1)

    return once


def probe_collectives(placement, budget):
    tasks = [("all_reduce", size) for size in REDUCED] + [("broadcast", size) for size in SPREAD_OUT]
    tasks.sort(key=lambda task: task[1])  # what the budget cuts off is what formulas extend best
    samples, begin, rate, compute = [], time.perf_counter(), 0.0, computation()
    for number, (kind, size) in enumerate(tasks):
        left = budget - ranks.slowest([time.perf_counter() - begin])[0]
        if left < 0 or 7 * rate * size > left:
            break
        make, halves = (all_reduce, 1) if kind == "all_reduce" else (broadcast, 2)
        allowance = left / (len(tasks) - number)
        if kind == "all_reduce" and size >= APART_FROM:
            seconds, spread = timed_apart(make(size), compute, allowance)
        else:
            seconds, spread = timed(make(size), allowance)
        samples.append(
            {"collective": kind, "algorithm": "gloo", **placement, "bytes": size, "time_s": seconds / halves, "spread": spread}
        )
        if size >= 64 * KIB:
            rate = max(rate / 2, seconds / size)
    return samples


def probe_overlap(budget):
    """Computation beside one all-reduce after the other, against each by itself."""
    share, compute = budget / 3, computation()
    compute()
    dist.barrier()
    begin, alone = time.perf_counter(), []
    while len(alone) < 3 or time.perf_counter() - begin < share:
        alone.append(compute())
    quiet, _ = timed_apart(all_reduce(BUCKET), compute, share)
    messages = min(max(int(share / quiet), 3), 10_000)
    message, talked = all_reduce(BUCKET), []

    def communicate():
        start = time.perf_counter()
        for _ in range(messages):
            message()
        talked.append((time.perf_counter() - start) / messages)

    dist.barrier()
    thread, together = threading.Thread(target=communicate), []
    thread.start()
    while thread.is_alive() or len(together) < 3:
        together.append(compute())
    thread.join()
    if len(together) > 3:
        together.pop()  # it may have outlived the messages
    by_itself, beside, talking = ranks.slowest([statistics.median(alone), statistics.mean(together), talked[0]])
    spread = ranks.slowest([max(ranks.median_and_spread(alone)[1], ranks.median_and_spread(together)[1])])[0]
    return {
        "compute_slowdown": max(1.0, beside / by_itself),
        "communication_slowdown": max(1.0, talking / quiet),
        "spread": spread,
        "algorithm": "gloo",
    }


def merge(file, collectives, overlap):
    with open(file, encoding="utf-8") as stream:
        calibration = json.load(stream)
    for key, samples in (("collectives", collectives), ("overlap", [overlap])):
        kept = [sample for sample in calibration.get(key, []) if sample.get("algorithm") != "gloo"]
        calibration[key] = kept + samples
    calibration.setdefault("libraries", {})["gloo"] = f"of PyTorch {torch.__version__}"
    with open(file + ".part", "w", encoding="utf-8") as stream:
        json.dump(calibration, stream)
    os.replace(file + ".part", file)


def main():
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("calibration")
    p.add_argument("--budget", type=float, default=60.0, help="seconds for collectives")
    p.add_argument("--overlap-budget", type=float, default=9.0, help="seconds for what runs beside computation")
    options = p.parse_args()
    ranks.prepare(threads=1)
    rank, size, nodes = ranks.join()
    if size < 2:
        ranks.refuse("needs two ranks or more")
    placement = {"ranks_per_node": size // nodes, "nodes": nodes, "groups_per_node": 1}
    collectives = probe_collectives(placement, options.budget)
    overlap = probe_overlap(options.overlap_budget)
    if rank == 0:
        merge(options.calibration, collectives, overlap)
    ranks.leave()


if __name__ == "__main__":
    main()
