#!/usr/bin/python3
"""`sibyl validate`: cases and reference steps are trained, kept and judged; what cannot be run does not take the rest with it.

    validate_test.py SIBYL_BINARY TOOLS/validation/slower.py
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

folder = pathlib.Path(tempfile.mkdtemp())
calibration = folder / "machine.json"


def write(name, *lines):
    path = folder / name
    path.write_text("# a comment\n" + "\n".join(lines) + "\n")
    return path


def sibyl(*words):
    return subprocess.run([sys.argv[1], *map(str, words)], capture_output=True, text=True, cwd=folder)


def validate(cases, *words, expect=0):
    done = sibyl("validate", cases, "--calibration", calibration, "--steps", 2, "--warmup", 1, "--kernel-budget", "1ms", "--cache", "1MB",
                 "--json", *words)
    assert done.returncode == expect, f"{words}: exit code {done.returncode}, not {expect}: {done.stderr}"
    return json.loads(done.stdout) if done.stdout else None, done.stderr


def kept():
    return {step["name"]: step for step in json.loads(calibration.read_text())["steps"]}


case = "zoo:small-cnn-bn --batch 8"
cases = write("cases.txt", case)
references = write("references.txt", *[f"zoo:lenet --batch {b} --optimizer momentum" for b in (2, 4, 8)])

found, _ = validate(cases, "--reference", references, "--rounds", 2, "--save", folder / "results.json")
assert [one["case"] for one in found["cases"]] == [case], found["cases"]
assert found["cases"][0]["steps"] == 4, "two steps in each of two rounds"
assert json.loads((folder / "results.json").read_text()) == found
assert sorted(kept()) == sorted(line for line in references.read_text().splitlines() if not line.startswith("#"))

# The case is predicted with what the references taught, as any prediction on this calibration is.
again = json.loads(sibyl("predict", *case.split(), "--cluster", calibration, "--json").stdout)
assert found["cases"][0]["predicted_s"] == again["step_time_s"]
untaught = json.loads(calibration.read_text())
untaught["steps"] = []
(folder / "untaught.json").write_text(json.dumps(untaught))
alone = json.loads(sibyl("predict", *case.split(), "--cluster", folder / "untaught.json", "--json").stdout)
assert alone["step_time_s"] != again["step_time_s"], "reference steps change predictions"

# On a device that is three times slower steps take three times as long, to the last part and interval. What kernels would take while
# other ranks rest, and out of a cache, is not an emulated device's.
as_timed = json.loads(calibration.read_text())
for kernel in as_timed["kernels"]:
    kernel.pop("alone_s", None)
    kernel.pop("cached_s", None)
(folder / "as_timed.json").write_text(json.dumps(as_timed))
again = json.loads(sibyl("predict", *case.split(), "--cluster", folder / "as_timed.json", "--json").stdout)
shared = json.loads(calibration.read_text())
for condition in ("alone_s", "cached_s"):
    shared["kernels"][0][condition] = shared["kernels"][0]["time_s"] / 2
(folder / "shared.json").write_text(json.dumps(shared))
slower = subprocess.run([sys.executable, sys.argv[2], folder / "shared.json", "3"], capture_output=True, text=True)
assert slower.returncode == 0, slower.stderr
assert "alone_s" not in slower.stdout and "cached_s" not in slower.stdout
(folder / "slower.json").write_text(slower.stdout)
longer = json.loads(sibyl("predict", *case.split(), "--cluster", folder / "slower.json", "--json").stdout)
pairs = [(longer["step_time_s"], again["step_time_s"]), *zip(longer["interval_s"], again["interval_s"]),
         *[(longer["breakdown_s"][part], time) for part, time in again["breakdown_s"].items()]]
assert all(abs(a - 3 * b) <= 1e-9 * a for a, b in pairs), pairs
assert longer["memory_bytes"] == again["memory_bytes"]
(folder / "truncated.json").write_text(slower.stdout[:-100])
for words, code in [(("none.json", "3"), 3), (("truncated.json", "3"), 3), (("slower.json", "x"), 2), (("slower.json", "0"), 2)]:
    refused = subprocess.run([sys.executable, sys.argv[2], *words], capture_output=True, text=True, cwd=folder)
    assert refused.returncode == code and len(refused.stderr.splitlines()) == 1 and not refused.stdout, (words, refused)

# What is kept of a step is the sum of its kernels, whatever had been learnt before. Kernels that were timed often enough are not
# timed again.
before = kept()
validate(cases, "--reference", references, "--rounds", 2)
for name, step in kept().items():
    assert abs(step["predicted_s"] / before[name]["predicted_s"] - 1) < 1e-9, f"{name}: {before[name]} is now {step}"

judged, _ = validate(cases, "--measured", folder / "results.json", "--no-calibrate")
assert judged["cases"][0]["measured_s"] == found["cases"][0]["measured_s"]
again = ("--measured", folder / "results.json", "--no-calibrate", "--max-mean-error")
validate(cases, *again, 1000)
_, said = validate(cases, *again, 1e-9, expect=5)
assert "in the mean" in said, said

# Three samples cannot be divided into two micro-batches: the other case is trained all the same.
broken = write("broken.txt", "zoo:small-cnn-bn --batch 3 --micro-batches 2", case)
rest, said = validate(broken, expect=3)
assert [one["case"] for one in rest["cases"]] == [case]
assert "1 case could not be run" in said and "--batch 3" in said, said
assert [(one["case"], bool(one["why"])) for one in rest["failed"]] == [("zoo:small-cnn-bn --batch 3 --micro-batches 2", True)]
assert found["failed"] == []
# Judged again it is named, too, and what was run is judged; a row of the table for programs is its own. With no run at all there is nothing.
(folder / "rest.json").write_text(json.dumps(rest))
judged, said = validate(broken, "--measured", folder / "rest.json", "--no-calibrate", "--max-mean-error", 1e-9, expect=3)
assert judged["cases"][0]["case"] == case and judged["failed"][0]["case"] == rest["failed"][0]["case"]
assert "1 case could not be judged; " in said and "in the mean" in said, said
rows = sibyl("validate", broken, "--measured", folder / "rest.json", "--no-calibrate", "--calibration", calibration, "--csv")
assert rows.returncode == 3
assert [row["case"] for row in csv.DictReader(rows.stdout.splitlines()) if not row["measured_s"]] == [rest["failed"][0]["case"]]
_, said = validate(write("other.txt", "zoo:lenet --batch 2"), "--measured", folder / "rest.json", "--no-calibrate", expect=3)
assert len(said.strip().splitlines()) == 1 and "no run of" in said, said
_, said = validate(cases, "--reference", broken, "--no-calibrate", expect=3)
assert "1 case could not be run" in said, said

for words, code in [(("--reference", references, "--record"), 2), (("--reference", references, "--measured", "x"), 2),
                    (("--reference", folder / "none.txt"), 3), (("--reference", write("empty.txt")), 3),
                    (("--reference", write("wrong.txt", "zoo:lenet --bach 3")), 3)]:
    steps = kept()
    _, said = validate(cases, *words, expect=code)
    assert len(said.strip().splitlines()) == 1, said
    assert kept() == steps, "a refused command loses nothing"

# The network of the most ranks is measured before each round, and of two samples the mean counts; without the option it is not.
wire = folder / "wire.json"
two = write("two.txt", case + " --devices 2", case)
networked = [two, "--calibration", wire, "--device", f"emulated:{calibration}", "--cache", "1MB", "--steps", 1, "--warmup", 1, "--json"]
assert sibyl("validate", *networked, "--network-budget", "soon").returncode == 2 and not wire.exists()
done = sibyl("validate", *networked, "--rounds", 2, "--network-budget", "1s")
assert done.returncode == 0, done.stderr
collectives = json.loads(wire.read_text())["collectives"]
shortest = [c for c in collectives if c["collective"] == "all_gather" and c["algorithm"] == "automatic" and c["bytes"] == 4]
assert len(shortest) == 2 and all(c["ranks_per_node"] == 2 for c in shortest), shortest
before = wire.read_text()
done = sibyl("validate", *networked, "--rounds", 2)
assert done.returncode == 0, done.stderr
assert wire.read_text() == before
# Once more beside what a file has of it.
done = sibyl("validate", *networked, "--network-budget", "1s")
assert done.returncode == 0, done.stderr
assert len(json.loads(wire.read_text())["collectives"]) > len(json.loads(before)["collectives"])
again = [c for c in json.loads(wire.read_text())["collectives"]
         if c["collective"] == "all_gather" and c["algorithm"] == "automatic" and c["bytes"] == 4]
assert len(again) == 3, again

# Interrupted, it judges and keeps what it has. The trainer here answers from a file; at its second case it interrupts who called it, as
# Ctrl-C on that process alone would (the case still counts), or as a batch system does (the case ends with it).
answer = json.loads(sibyl("train", *case.split(), "--steps", 2, "--warmup", 1, "--json").stdout)
(folder / "answer.json").write_text(json.dumps(answer))
trainer = folder / "trainer.py"
trainer.write_text("""import os, pathlib, signal, sys, time
if "16" in sys.argv:
    os.kill(os.getppid(), getattr(signal, sys.argv[1]))
    if sys.argv[1] == "SIGTERM":
        time.sleep(60)
print(pathlib.Path("answer.json").read_text())
""")
three = write("three.txt", *[f"zoo:small-cnn-bn --batch {batch}" for batch in (8, 16, 32)])
steps = kept()
for name, batches in [("SIGINT", (8, 16)), ("SIGTERM", (8,))]:
    some, said = validate(three, "--reference", references, "--no-calibrate", "--trainer", f"{sys.executable} {trainer} {name}",
                          "--save", folder / "some.json", expect=130)
    assert kept() == steps, "one reference of three does not replace what three had taught"
    assert [one["case"] for one in some["cases"]] == [f"zoo:small-cnn-bn --batch {b}" for b in batches], some["cases"]
    assert json.loads((folder / "some.json").read_text()) == some
    assert "interrupted" in said, said

# So it does where the network cannot be measured anew, in the second round here.
launcher = folder / "launcher.py"
launcher.write_text("""import os, pathlib, signal, sys
how, ranks, *program = sys.argv[1:]
if "network" in program:
    before = pathlib.Path("networks-" + how)
    if before.exists():
        if how != "fails":
            os.kill(os.getppid(), getattr(signal, how))
        sys.exit("no network today")
    before.touch()
os.execvp("mpirun", ["mpirun", "-np", ranks, *program])
""")
for how, code in [("SIGINT", 130), ("fails", 3)]:
    done = sibyl("validate", *networked, "--rounds", 2, "--network-budget", "1s", "--launcher", f"{sys.executable} {launcher} {how} {{ranks}}")
    assert done.returncode == code, done.stderr
    assert len(json.loads(done.stdout)["cases"]) == 2, done.stderr
    assert ("interrupted" if code == 130 else "no longer be measured") in done.stderr, done.stderr
