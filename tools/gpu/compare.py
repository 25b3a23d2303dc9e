#!/usr/bin/env python3
"""Predicted against measured, from the folders that run.sh fills.

    compare.py OUT CASES    writes OUT/comparison.md and OUT/comparison.csv, and prints the former

Errors are |predicted / measured - 1|. A case that was not measured, or not predicted from a calibration, is shown so and is
counted nowhere.
"""
import csv
import json
import pathlib
import re
import statistics
import sys

CALIBRATIONS = ["torch", "cudnn", "sweep"]


def name_of(case):
    """As run.sh's name_of."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", re.sub(r" --", "_", case.removeprefix("zoo:")))


def read(path):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def memory_of(prediction):
    return prediction["memory_bytes"]["total"]


def error(predicted, measured):
    return abs(predicted / measured - 1) if measured else None


def rows_of(out, cases):
    for case in cases:
        measured = read(out / "measured" / f"{name_of(case)}.json")
        row = {"case": case, "measured_s": measured and measured["step_time_s"],
               "measured_bytes": measured and measured["peak_memory_bytes"]}
        for calibration in CALIBRATIONS:
            prediction = read(out / "predictions" / calibration / f"{name_of(case)}.json")
            row[f"{calibration}_s"] = prediction and prediction["step_time_s"]
            row[f"{calibration}_bytes"] = prediction and memory_of(prediction)
            for what in ("s", "bytes"):
                both = prediction and measured
                row[f"{calibration}_error_{what}"] = (
                    error(row[f"{calibration}_{what}"], row[f"measured_{what}"]) if both else None)
        yield row


def shown(value, form):
    return "" if value is None else form(value)


def milliseconds(value):
    return shown(value, lambda v: f"{v * 1e3:.2f}")


def gibibytes(value):
    return shown(value, lambda v: f"{v / 2**30:.2f}")


def percent(value):
    return shown(value, lambda v: f"{v * 100:.1f}")


def summary(rows):
    lines = ["| calibration | cases | step: mean % | median | greatest | memory: mean % | greatest |",
             "|---|---|---|---|---|---|---|"]
    for calibration in CALIBRATIONS:
        steps = [r[f"{calibration}_error_s"] for r in rows if r[f"{calibration}_error_s"] is not None]
        memory = [r[f"{calibration}_error_bytes"] for r in rows if r[f"{calibration}_error_bytes"] is not None]
        if steps:
            lines.append(f"| {calibration} | {len(steps)} | {percent(statistics.mean(steps))} | "
                         f"{percent(statistics.median(steps))} | {percent(max(steps))} | "
                         f"{percent(statistics.mean(memory))} | {percent(max(memory))} |")
        else:
            lines.append(f"| {calibration} | 0 | | | | | |")
    return lines


def markdown(rows):
    head = ["case", "measured ms"]
    for calibration in CALIBRATIONS:
        head += [f"{calibration} ms", "%"]
    head += ["measured GiB", "predicted GiB", "%"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row["case"], milliseconds(row["measured_s"])]
        for calibration in CALIBRATIONS:
            cells += [milliseconds(row[f"{calibration}_s"]), percent(row[f"{calibration}_error_s"])]
        first = next((c for c in CALIBRATIONS if row[f"{c}_bytes"] is not None), CALIBRATIONS[0])
        cells += [gibibytes(row["measured_bytes"]), gibibytes(row[f"{first}_bytes"]), percent(row[f"{first}_error_bytes"])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(summary(rows) + [""] + lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    cases = [line.strip() for line in pathlib.Path(sys.argv[2]).read_text().splitlines()
             if line.strip() and not line.lstrip().startswith("#")]
    rows = list(rows_of(out, cases))
    text = markdown(rows)
    (out / "comparison.md").write_text(text)
    with open(out / "comparison.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else ["case"])
        writer.writeheader()
        writer.writerows(rows)
    print(text, end="")


if __name__ == "__main__":
    main()
