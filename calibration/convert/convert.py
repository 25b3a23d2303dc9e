#!/usr/bin/env python3
"""Makes the shipped calibrations from published measurements and datasheets (devices.py).

    python3 calibration/convert/convert.py MEASURED_FOLDER calibration/data [--limit SAMPLES] [--only NAME]

MEASURED_FOLDER holds the CSV files that sources.py names. Samples of the same kernel are merged by their median; samples that no such
device can have taken are left out and counted (checks.py). A family of kernels keeps at most --limit samples, spread evenly over it
(docs/models/compute.md says what that costs); 0 keeps all. Devices that nobody measured are written with their datasheet, and with the
measured devices that their kernels are carried over from.
"""

import argparse
import collections
import json
import os
import statistics
import sys

import checks
import sources
from devices import DEVICES, donors

DATE = "2026-11-21"


def merged(samples):
    by_kernel = collections.defaultdict(list)
    for template, sizes, time, source in samples:
        by_kernel[(template, source, sizes)].append(time)
    return [(template, sizes, statistics.median(times), source) for (template, source, sizes), times in by_kernel.items()]


def scrambled(index):
    """An order that is spread evenly over any structured list: multiplication by the golden ratio, as in Weyl's sequence."""
    return (index * 0.6180339887498949) % 1.0


def thinned(samples, limit):
    """(template, source) -> its rows, sizes first, at most `limit` of them."""
    groups = collections.defaultdict(list)
    for template, sizes, time, source in samples:
        groups[(template, source)].append((*sizes, number(time)))
    kept = {}
    for group in sorted(groups):
        rows = sorted(groups[group])
        if limit and len(rows) > limit:
            chosen = sorted(range(len(rows)), key=scrambled)[:limit]
            rows = [rows[i] for i in sorted(chosen)]
        kept[group] = rows
    return kept


def number(value):
    return float(f"{value:.5g}")


def dense(value):
    return json.dumps(value, separators=(",", ":"))


def array(lines):
    return "[" + ("\n" + ",\n".join(lines) if lines else "") + "]"


def table(group, rows, source):
    head = dense({"key": group[0], "source": source})[:-1]
    return f'{head},"rows":{array([dense(row) for row in rows])}}}'


def calibration(name, folder, limit):
    device, names = DEVICES[name]
    published = merged(sources.kernel_samples(folder, names))
    possible = [s for s in published if checks.is_possible(device, s)]
    groups = thinned(possible, limit)
    collectives = list(sources.collective_samples(folder, names["aiconfigurator"])) if "aiconfigurator" in names else []
    if names and not possible:
        sys.exit(f"{name}: no samples: are the CSV files complete?")
    cited = sorted({source for _, source in groups} | {c["source"] for c in collectives})
    for c in collectives:
        c["source"] = cited.index(c["source"])

    source = "Published measurements, converted by calibration/convert; device figures from datasheets" if names else \
        "Datasheet; no kernel was measured"
    if device["architecture"] == "hopper":
        speeds = list(sources.attention_speeds(device["peak_flops_per_s"]["bf16"] / DEVICES["h100-sxm"][0]["peak_flops_per_s"]["bf16"]))
        device = device | {"attention_speeds": speeds}
        cited.append(sources.FLASH_ATTENTION_3)
    head = {"schema": "sibyl.calibration/1", "date": DATE, "source": source, "machine": {"gpu": device["name"]}, "libraries": {},
            "ranks_per_node": 1, "threads": 1, "device": device, "donors": donors(name), "step_overhead_per_operation_s": 0.0}
    text = "{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in head.items())
    text += ',\n"sources": ' + array([json.dumps(s) for s in cited])
    text += ',\n"kernel_tables": ' + array([table(g, rows, cited.index(g[1])) for g, rows in groups.items()])
    text += ',\n"collectives": ' + array([dense(c) for c in collectives]) + "}\n"
    json.loads(text)  # what is written can be read
    kept = sum(len(rows) for rows in groups.values())
    return text, f"{len(published)} kernels, {len(published) - len(possible)} of them impossible, {kept} kept"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("measured")
    arguments.add_argument("output")
    arguments.add_argument("--limit", type=int, default=4000)
    arguments.add_argument("--only")
    options = arguments.parse_args()
    for name in [options.only] if options.only else DEVICES:
        text, what = calibration(name, options.measured, options.limit)
        with open(os.path.join(options.output, name + ".json"), "w") as file:
            file.write(text)
        print(f"{name}: {what}, {len(text) / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
