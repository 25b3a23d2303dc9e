#!/usr/bin/env python3
"""Checks of tools/gpu, which need neither a GPU nor a build: check.py CHECK TOOLS"""
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CHECK, TOOLS = sys.argv[1], pathlib.Path(sys.argv[2])
FOLDER = tempfile.TemporaryDirectory(prefix="sibyl_gpu_script_")
OUT = pathlib.Path(FOLDER.name)


def run(*words, expect=0, **environment):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60,
                          env=os.environ | environment)
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
    sweep = next(l for l in said.splitlines() if "--sweep" in l)
    # A quarter of what is left of 540 s, less the seconds that the script itself has run.
    budget = int(re.search(r"--budget (\d+)s", sweep)[1])
    check("--sweep quick" in sweep and 120 <= budget <= 135, f"not a quarter of 540 s for {sweep}")
    built = run(TOOLS / "run.sh", "--dry-run", "--out", OUT / "out", "build").stdout
    check("--target gpu_programs" in built, f"all is built: {built}")


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


# Programs that do nothing but say that they were called, in one line of CALLS. What is in FAKE_… they say and return.
FAKES = {
    "sibyl": """
for word; do [ "${before-}" = -o ] && file=$word; before=$word; done
if [ -n "${FAKE_HANG-}" ]; then
  trap 'echo kept > "$file"; exit 130' TERM
  echo $$ > "$FAKE_HANG"
  tenths=0
  while [ $((tenths += 1)) -lt 600 ]; do sleep 0.1; done
fi
if [ "$1" = predict ]; then echo '{"step_time_s": 0.1, "memory_bytes": {"total": 1}}'; exit 0; fi
echo '{"device": {"dispatch_s": 2e-5}}' > "$file"
echo '{}'
echo "${FAKE_CALIBRATE-}" >&2
exit "${FAKE_STATUS-0}"
""",
    "sibyl-calibrate": "",
    "sibyl-train": """
[ -z "${FAKE_TRAIN-}" ] || exit "$FAKE_TRAIN"
echo '{"step_time_s": 0.2, "peak_memory_bytes": 2}'
""",
    "cmake": """
case $* in
  --build*) mkdir -p "$2/bin"; cp "$FAKES"/sibyl* "$2/bin" ;;
  *SIBYL_TRAINER=OFF*) : > "$BUILD/build.ninja" ;;
  *) exit 1 ;;
esac
""",
    "ctest": """
for word; do [ "${before-}" = --output-log ] && echo "1 of 30 failed" > "$word"; before=$word; done
exit 8
""",
}
CASES = ["zoo:resnet50 --batch 64 --precision bf16", "zoo:gpt2 --batch 8 --dim seq=1024"]
NAMES = ["resnet50_batch-64_precision-bf16", "gpt2_batch-8_dim-seq-1024"]


class Fakes:
    """A machine on which all programs are fakes."""

    def __init__(self, *options):
        self.bin, self.calls, self.out = OUT / "bin", OUT / "calls", OUT / "out"
        self.bin.mkdir()
        (OUT / "build").mkdir()
        for name, body in FAKES.items():
            (self.bin / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\n{body}')
            (self.bin / name).chmod(0o755)
        (OUT / "cases.txt").write_text("\n".join(CASES) + "\n")
        self.options = ["--out", self.out, "--cases", OUT / "cases.txt", *options]
        self.said = ""

    def environment(self):
        self.calls.write_text("")
        return {"CALLS": str(self.calls), "FAKES": str(self.bin), "BUILD": str(OUT / "build"),
                "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def run(self, *words, expect=0, **environment):
        """The calls that it made."""
        done = run(TOOLS / "run.sh", *self.options, *words, expect=expect, **self.environment(), **environment)
        self.said = done.stderr
        return self.calls.read_text().splitlines()

    def start(self, *words, **environment):
        """The same, under way, and heeding an interrupt whatever started this check."""
        return subprocess.Popen([str(w) for w in (TOOLS / "run.sh", *self.options, *words)],
                                env=os.environ | self.environment() | environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def first(calls, *parts):
    found = [i for i, call in enumerate(calls) if all(part in call for part in parts)]
    check(found, f"no call has {parts}: {calls}")
    return found[0]


def case_by_case():
    fakes = Fakes("--bin", OUT / "bin")
    calls = fakes.run()
    check(first(calls, "sibyl-train zoo:resnet50") < first(calls, "--for zoo:gpt2"),
          f"the second case was begun before the first had a row: {calls}")
    check(first(calls, "predict zoo:resnet50") < first(calls, "sibyl-train zoo:resnet50"), f"trained, then predicted: {calls}")
    for case, name in zip(CASES, NAMES):
        measured = json.loads((fakes.out / "measured" / f"{name}.json").read_text())
        check(measured["step_time_s"] == 0.2, f"{case} has another's time: {measured}")
        for calibration in ("cudnn", "torch", "sweep"):
            predicted = json.loads((fakes.out / "predictions" / calibration / f"{name}.json").read_text())
            check(predicted["step_time_s"] == 0.1, f"{case} from {calibration}: {predicted}")
    # What libtorch found an operation to take this host, others take for it.
    for calibration, host in (("cudnn", True), ("sweep", True), ("torch", False)):
        call = calls[first(calls, "predict zoo:gpt2", f"{calibration}.json")]
        check(("--set device.dispatch=20.000us" in call) == host, call)
    check("| cudnn | 2 |" in (fakes.out / "comparison.md").read_text(), "no table was written")
    check(fakes.run() == [], f"what was done was done again: {fakes.calls.read_text()}")


def goes_on():
    fakes = Fakes("--bin", OUT / "bin")
    check(fakes.run("--limit", "5", expect=75) == [], "something was begun with 5 s left")
    # A budget that has passed leaves kernels, and predictions, for the next run.
    fakes.run(FAKE_CALIBRATE="--budget has passed with 3 of 9 kernels timed", expect=75)
    calls = fakes.run(FAKE_CALIBRATE="2 of 9 kernels cannot be timed", FAKE_STATUS="3")
    for backend in ("--backend cudnn --for", "--device cuda --for", "--backend cudnn --sweep"):
        first(calls, f"calibrate compute {backend}")
    first(calls, "predict zoo:gpt2", "cudnn.json")
    check(not any("sibyl-train" in call for call in calls), f"trained again: {calls}")
    # What a library has no kernel for is done.
    calls = fakes.run(FAKE_CALIBRATE="no, the device failed", FAKE_STATUS="3")
    check(not any("--for" in call for call in calls), f"calibrated again: {calls}")
    # A device that failed is asked again.
    shutil.rmtree(fakes.out)
    fakes.run(FAKE_CALIBRATE="the device failed at this kernel", FAKE_STATUS="3")
    check("not all of its kernels could be timed by torch" in fakes.said, fakes.said)
    first(fakes.run(), "--for zoo:gpt2", "--backend cudnn")


def says_what_was_not_trained():
    fakes = Fakes("--bin", OUT / "bin")
    fakes.run(FAKE_TRAIN="4")
    check(f"{CASES[0]}: not trained" in fakes.said, fakes.said)
    check(not list((fakes.out / "measured").glob("*.json")), "what failed left a measurement")


def stops():
    # While a calibrator runs, of the first case: a signal to the script alone ends both, and what was measured stays.
    hung, packed = OUT / "hung", OUT / "results.tar.gz"
    fakes = Fakes("--bin", OUT / "bin", "--pack", packed)
    for sent, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        shutil.rmtree(fakes.out, ignore_errors=True)
        for left in (hung, packed):
            left.unlink(missing_ok=True)
        script = fakes.start("cases", FAKE_HANG=str(hung))
        try:
            for _ in range(600):
                if hung.exists() and hung.read_text().endswith("\n"):
                    break
                time.sleep(0.05)
            calibrator = int(hung.read_text())
            script.send_signal(sent)
            ended = script.wait(timeout=20)
        finally:
            script.kill()
        check(ended == code, f"{sent.name}: exited {ended}")
        check(not pathlib.Path(f"/proc/{calibrator}").exists(), f"{sent.name}: the calibrator goes on")
        check((fakes.out / "cudnn.json").read_text() == "kept\n", f"{sent.name}: what was measured is lost")
        check(packed.exists(), f"{sent.name}: nothing was packed")
        check(not list(fakes.out.rglob("*.part")), f"{sent.name}: half a file was left")
        check(len(fakes.calls.read_text().splitlines()) == 1, f"{sent.name}: more was begun: {fakes.calls.read_text()}")


def builds_and_tests():
    fakes = Fakes("--build", OUT / "build")
    calls = fakes.run()
    check("SIBYL_TRAINER=OFF" not in calls[0] and "SIBYL_TRAINER=OFF" in calls[1], f"not configured without libtorch: {calls}")
    check(re.search(r"--target gpu_programs -- -k 0$", calls[2]), f"more was built: {calls[2]}")
    check(first(calls, "ctest") < first(calls, "--facts"), f"a test that failed ended the run: {calls}")
    check("not all have passed" in fakes.said, fakes.said)
    check("1 of 30 failed" in (fakes.out / "tests.txt").read_text(), "what the tests said is lost")
    calls = fakes.run()
    check(not any(call.startswith("ctest") for call in calls), f"tested again: {calls}")
    shutil.rmtree(fakes.out)
    calls = fakes.run("--bin", OUT / "bin")
    check(not any(call.startswith(("ctest", "cmake")) for call in calls), f"--bin has no build folder: {calls}")


def packs():
    packed = OUT / "results.tar.gz"
    fakes = Fakes("--bin", OUT / "bin", "--pack", packed)
    fakes.run()
    shutil.rmtree(fakes.out)
    check(fakes.run() == [], "what was packed was done again")
    check((fakes.out / "measured" / f"{NAMES[0]}.json").exists(), "it was not unpacked")
    shutil.rmtree(fakes.out)
    fakes.out.mkdir()
    check(fakes.run() == [], "an empty folder took the place of what was packed")
    # Also where the time is over, or a step fails.
    for words, code in ((("--limit", "5"), 75), (("--cases", OUT / "empty.txt", "table"), 0)):
        packed.unlink()
        (OUT / "empty.txt").write_text("# none\n")
        fakes.run(*words, expect=code)
        check(packed.exists(), f"nothing was packed: {words}")


def finds_nvcc():
    # Where CUDA_HOME says, before a PyTorch turns CUDA on.
    nvcc = OUT / "toolkit" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    root = TOOLS.parent.parent
    script = OUT / "script.cmake"
    script.write_text(f'include({root}/cmake/Nvcc.cmake)\nmessage("${{CMAKE_CUDA_COMPILER}} for ${{SIBYL_CUDA_ARCHITECTURES}}")\n')
    said = run("cmake", "-P", script, CUDA_HOME=str(OUT / "toolkit")).stderr
    check(f"{nvcc} for 75-virtual;80-virtual" in said, said)
    text = (root / "CMakeLists.txt").read_text()
    check(text.index("include(Nvcc)") < text.index("include(Dependencies)"), "PyTorch is found before nvcc")


{"dry_run": dry_run, "refuses": refuses, "compares": compares, "case_by_case": case_by_case, "goes_on": goes_on,
 "says_what_was_not_trained": says_what_was_not_trained, "stops": stops, "builds_and_tests": builds_and_tests, "packs": packs,
 "finds_nvcc": finds_nvcc}[CHECK]()
