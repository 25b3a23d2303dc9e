#!/usr/bin/env python3
"""Makes the shipped calibrations from published measurements.

    python3 calibration/convert/convert.py MEASURED_FOLDER calibration/data [--limit BYTES] [--only NAME]

MEASURED_FOLDER holds the CSV files that sources.py names. Samples of the same kernel are merged by their median. Where a file would
exceed the limit, samples are thinned evenly inside each family of kernels (docs/models/compute.md says what that costs);
--limit 0 keeps all.
"""

import argparse
import collections
import json
import os
import re
import statistics
import sys

import sources
from devices import DEVICES

DATE = "2026-11-21"


def kernel_samples(folder, names):
    if device := names.get("aiconfigurator"):
        yield from sources.gemm_samples(folder, device)
        yield from sources.attention_samples(folder, device)
    if device := names.get("neusight"):
        yield from sources.neusight_samples(folder, device, False, sources.NEUSIGHT)
    if device := names.get("neusight_memory"):
        yield from sources.neusight_samples(folder, device, True, sources.NEUSIGHT_V100)
    if device := names.get("deepbench"):
        yield from sources.deepbench_gemm_samples(folder, device)
        yield from sources.deepbench_convolution_samples(folder, device)


def merged(samples):
    by_key = collections.defaultdict(list)
    for key, time, source in samples:
        by_key[(key, source)].append(time)
    return [(key, statistics.median(times), source) for (key, source), times in by_key.items()]


def family(key):
    """What is thinned together: pass, operation and attributes, element type."""
    return re.sub(r"\[.*\]->\[.*\]", "", key)


def scrambled(index):
    """An order that is spread evenly over any structured list: multiplication by the golden ratio, as in Weyl's sequence."""
    return (index * 0.6180339887498949) % 1.0


def thinned(samples, limit):
    def size(chosen):
        return sum(len(kernel_line(s, 0)) + 2 for s in chosen)

    groups = collections.defaultdict(list)
    for s in sorted(samples):
        groups[family(s[0])].append(s)
    if limit == 0 or size(samples) <= limit:
        return [s for name in sorted(groups) for s in groups[name]]

    # The largest groups give way: each keeps at most `cap` samples.
    low, high = 0, max(len(g) for g in groups.values())
    while low < high:
        cap = (low + high + 1) // 2
        if size([s for g in groups.values() for s in g[:cap]]) <= limit:
            low = cap
        else:
            high = cap - 1
    kept = []
    for name in sorted(groups):
        order = sorted(range(len(groups[name])), key=scrambled)[:low]
        kept += [groups[name][i] for i in sorted(order)]
    return kept


def number(value):
    return float(f"{value:.5g}")


def kernel_line(sample, source):
    key, time, _ = sample
    return json.dumps({"key": key, "time_s": number(time), "source": source}, separators=(",", ":"))


def calibration(name, folder, limit):
    device, names = DEVICES[name]
    kernels = thinned(merged(kernel_samples(folder, names)), limit)
    collectives = list(sources.collective_samples(folder, names["aiconfigurator"])) if "aiconfigurator" in names else []
    if not kernels:
        sys.exit(f"{name}: no samples: are the CSV files complete?")
    cited = sorted({s[2] for s in kernels} | {c["source"] for c in collectives})
    for c in collectives:
        c["source"] = cited.index(c["source"])

    def array(lines):
        return "[" + ("\n" + ",\n".join(lines) if lines else "") + "]"

    head = {"schema": "sibyl.calibration/1", "date": DATE, "source": "Published measurements, converted by calibration/convert; "
            "device figures from NVIDIA's datasheets", "machine": {"gpu": device["name"]}, "libraries": {}, "ranks_per_node": 1,
            "threads": 1, "device": device, "step_overhead_per_operation_s": 0.0}
    text = "{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in head.items())
    text += ',\n"sources": ' + array([json.dumps(s) for s in cited])
    text += ',\n"kernels": ' + array([kernel_line(s, cited.index(s[2])) for s in kernels])
    text += ',\n"point_to_point": []'
    text += ',\n"collectives": ' + array([json.dumps(c, separators=(",", ":")) for c in collectives])
    text += ',\n"overlap": [],\n"io": []}\n'
    json.loads(text)  # what is written can be read
    return text, len(kernels)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("measured")
    arguments.add_argument("output")
    arguments.add_argument("--limit", type=int, default=2_900_000)
    arguments.add_argument("--only")
    options = arguments.parse_args()
    for name in [options.only] if options.only else DEVICES:
        text, count = calibration(name, options.measured, options.limit)
        with open(os.path.join(options.output, name + ".json"), "w") as file:
            file.write(text)
        print(f"{name}: {count} kernels, {len(text) / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
