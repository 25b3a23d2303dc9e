#!/usr/bin/env python3
"""Checks of tools/gpu, which need neither a GPU nor a build: check.py CHECK TOOLS"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

CHECK, TOOLS = sys.argv[1], pathlib.Path(sys.argv[2])
FOLDER = tempfile.TemporaryDirectory(prefix="sibyl_gpu_script_")
OUT = pathlib.Path(FOLDER.name)


def run(*words, expect=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60)
    if done.returncode != expect:
        sys.exit(f"{words} exited {done.returncode}, not {expect}:\n{done.stdout}{done.stderr}")
    return done


def check(condition, message):
    if not condition:
        sys.exit(message)


def cases():
    return [line for line in (TOOLS / "cases.txt").read_text().splitlines() if line and not line.startswith("#")]


def dry_run():
    said = run(TOOLS / "run.sh", "--dry-run", "--out", OUT / "out", "--bin", "/programs").stdout
    check(not (OUT / "out").exists(), "a dry run wrote something")
    models = {case.split()[0] for case in cases()}
    check(len(models) >= 12, f"only {len(models)} models are trained")
    for case in cases():
        model, batch = case.split()[0], case.split("--batch ")[1].split()[0]
        train = [l for l in said.splitlines() if "sibyl-train" in l and f"{case} --device cuda" in l]
        check(len(train) == 1, f"{case}: trained {len(train)} times")
        for backend in ("--backend cudnn", "--device cuda"):
            timed = [l for l in said.splitlines()
                     if "calibrate compute" in l and backend in l and f"--for {model} --batches {batch} " in l]
            check(timed, f"{case}: not calibrated with {backend}")
        # Predicted before it is trained.
        before = said[:said.index(train[0])]
        check(f"predict {case} --cluster" in before, f"{case}: trained before it was predicted")


def refuses():
    check("is neither a step" in run(TOOLS / "run.sh", "trian", expect=2).stderr, "a wrong step was taken")
    check("needs a value" in run(TOOLS / "run.sh", "--out", expect=2).stderr, "--out without a folder was taken")
    run(TOOLS / "run.sh", "--limit", "soon", "--dry-run", expect=2)


def compares():
    # 110 ms against 100 is 10 % off, 90 against 100 is 10 % off the other way; memory 3 GiB against 4: 25 %.
    case = "zoo:resnet50 --batch 64 --optimizer momentum"
    name = "resnet50_batch-64_optimizer-momentum"
    (OUT / "cases.txt").write_text(f"# a comment\n{case}\nzoo:vgg16 --batch 8\n")
    for calibration, step in (("torch", 0.110), ("cudnn", 0.090)):
        folder = OUT / "predictions" / calibration
        folder.mkdir(parents=True)
        (folder / f"{name}.json").write_text(json.dumps({"step_time_s": step, "memory_bytes": {"total": 3 * 2**30}}))
    (OUT / "measured").mkdir()
    (OUT / "measured" / f"{name}.json").write_text(json.dumps({"step_time_s": 0.1, "peak_memory_bytes": 4 * 2**30}))
    text = run(sys.executable, TOOLS / "compare.py", OUT, OUT / "cases.txt").stdout
    check("| torch | 1 | 10.0 | 10.0 | 10.0 | 25.0 | 25.0 |" in text, text)
    check("| sweep | 0 |" in text, text)
    rows = list(csv.DictReader(open(OUT / "comparison.csv")))
    check(len(rows) == 2 and abs(float(rows[0]["cudnn_error_s"]) - 0.1) < 1e-9, str(rows))
    check(rows[1]["measured_s"] == "", "a case that was not trained has a time")


{"dry_run": dry_run, "refuses": refuses, "compares": compares}[CHECK]()
