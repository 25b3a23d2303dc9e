#!/usr/bin/python3
"""Measures Gloo, as DistributedDataParallel calls it, into a calibration: probe.py CALIBRATION [--budget SECONDS]

    tools/hosts.sh with 2 1gbit -- run -np 2 -- /usr/bin/python3 tools/ddp/probe.py machine.json

Adds to a calibration that sibyl-calibrate has written: all-reduces and broadcasts by size (`collectives`, algorithm gloo) and
how an all-reduce slows the computation beside it and is slowed (`overlap`, algorithm gloo). Those that it has of these
ranks are replaced. No model is trained here. What differs from sibyl-calibrate's probe is the library, and that its threads
run as PyTorch starts them.
"""

import argparse
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


def all_reduce(size):
    data = torch.zeros(size // 4)
    return lambda: dist.all_reduce(data)


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
    samples, begin, rate = [], time.perf_counter(), 0.0
    for number, (kind, size) in enumerate(tasks):
        left = budget - ranks.slowest([time.perf_counter() - begin])[0]
        if left < 0 or 7 * rate * size > left:
            break
        make, halves = (all_reduce, 1) if kind == "all_reduce" else (broadcast, 2)
        seconds, spread = timed(make(size), left / (len(tasks) - number))
        samples.append(
            {"collective": kind, "algorithm": "gloo", **placement, "bytes": size, "time_s": seconds / halves, "spread": spread}
        )
        if size >= 64 * KIB:
            rate = max(rate / 2, seconds / size)
    return samples


def probe_overlap(budget):
    """Computation, half of it bound by arithmetic and half by memory, beside one all-reduce after the other."""
    a, b = torch.ones(512, 512), torch.ones(512, 512)
    x, y = torch.ones(4 * MIB), torch.ones(4 * MIB)

    def compute():
        begin = time.perf_counter()
        torch.mm(a, b)
        torch.add(x, y)
        return time.perf_counter() - begin

    share = budget / 3
    compute()
    dist.barrier()
    begin, alone = time.perf_counter(), []
    while len(alone) < 3 or time.perf_counter() - begin < share:
        alone.append(compute())
    quiet, _ = timed(all_reduce(BUCKET), share)
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
    dist.barrier()


if __name__ == "__main__":
    main()
