#!/bin/sh
# All that can be done with a GPU, in one command: builds, tests, calibrates, predicts, trains and compares.
#
#   run.sh [OPTION ...] [STEP ...]      all steps of the first list unless some are named
#
#   build    configures and builds what is needed here with what is installed; fetches nothing
#   test     the tests that need a GPU; what fails is said, and the rest goes on
#   facts    the device: peak, bandwidth, context, launches, copies
#   sweep    a quick sweep over all families through cuDNN, with its interpolation error
#   cases    case by case: its model's kernels through cuDNN and through libtorch, predictions from them, its training
#   table    predicted against measured
#
#   cudnn, torch, predict, train        one part of all cases, before the next
#
#   --out FOLDER     gets calibrations, predictions, measurements and tables (out/gpu)
#   --build FOLDER   the build folder (build/gpu)
#   --bin FOLDER     programs built elsewhere; `build` and `test` are left out
#   --prefix FOLDER  where libraries lie that are not in the system's folders (may be given again)
#   --cases FILE     what is trained, the most telling first (tools/gpu/cases.txt)
#   --limit SECONDS  stop a step after about so long; the same command goes on from there (540)
#   --pack FILE      OUT in one file: written at every exit, and unpacked first where OUT has nothing
#   --jobs N         compilations at once (all processors)
#   --dry-run        print what would be done
#
# Tests, the sweep and each calibration take a quarter of the time that is left, at most, so that any time gives rows of
# the table, which is written at every exit.
# Nothing that is done is done again: remove files of OUT to do it anew, and the build folder to configure anew. What
# programs said lies beside what they wrote, in .log. Exit code 75: the limit has passed and work is left. A signal to
# end (HUP, INT, TERM) ends what runs as well, which keeps what it has measured.
set -eu

here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")
out=$root/out/gpu build=$root/build/gpu bin='' prefixes='' cases=$here/cases.txt limit=540 pack='' jobs=$(nproc) dry=''
steps=

die() { echo "gpu/run.sh: $*" >&2; exit 2; }
say() { echo "gpu/run.sh: $*" >&2; }

while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=1 ;;
    --help|-h) sed -n '2,29s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out|--build|--bin|--prefix|--cases|--limit|--pack|--jobs)
      [ $# -ge 2 ] || die "$1 needs a value"
      case $1 in
        --out) out=$2 ;;
        --build) build=$2 ;;
        --bin) bin=$2 ;;
        --prefix) prefixes="$prefixes${prefixes:+;}$2" ;;
        --cases) cases=$2 ;;
        --limit) limit=$2 ;;
        --pack) pack=$2 ;;
        --jobs) jobs=$2 ;;
      esac
      shift ;;
    build|test|facts|sweep|cases|cudnn|torch|predict|train|table) steps="$steps $1" ;;
    *) die "'$1' is neither a step nor an option; --help tells" ;;
  esac
  shift
done
[ -n "$steps" ] || steps='build test facts sweep cases table'
case $limit in *[!0-9]*|'') die "--limit takes seconds" ;; esac
[ -r "$cases" ] || die "$cases cannot be read"
given_bin=$bin
bin=${bin:-$build/bin}

# Whole paths, since steps run in other folders.
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
out=$(absolute "$out") build=$(absolute "$build") bin=$(absolute "$bin")
[ -z "$pack" ] || pack=$(absolute "$pack")

start=$(date +%s)
left() { echo $((limit - ($(date +%s) - start))); }
quarter() { echo $(($(left) / 4 > 1 ? $(left) / 4 : 1)); }
# Ends the run where little time is left.
in_time() {
  [ -n "$dry" ] || [ "$(left)" -gt 10 ] || {
    say "$limit s have passed and work is left: run the same command again"
    exit 75
  }
}

# Waits for the command that was just started, in the background and a process group of its own: a shell heeds no signal
# while it waits for one in its foreground, and all that a command has started ends with its group.
child=''
awaited() {
  child=$! ended=0
  wait "$child" || ended=$?
  child=''
  return "$ended"
}
# Runs a command, or prints it.
run() {
  if [ -n "$dry" ]; then echo "$*"; return 0; fi
  setsid "$@" < /dev/null &
  awaited
}
# The same with standard output into a file, which is there only if the command succeeded.
run_into() {  # FILE COMMAND...
  into=$1
  shift
  if [ -n "$dry" ]; then echo "$* > $into"; return 0; fi
  mkdir -p "$(dirname "$into")"
  status=0
  setsid "$@" < /dev/null > "$into.part" 2> "$into.log" &
  awaited || status=$?
  if [ "$status" -eq 0 ]; then mv "$into.part" "$into"; return 0; fi
  tail -n 3 "$into.log" >&2
  rm -f "$into.part"
  return "$status"
}

# ---- where things are

for folder in $(echo "$prefixes" | tr ';' ' '); do
  for lib in lib lib64 lib/x86_64-linux-gnu lib/x86_64-linux-gnu/openmpi/lib; do
    [ -d "$folder/$lib" ] && LD_LIBRARY_PATH="$folder/$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  done
done
[ -z "${LD_LIBRARY_PATH-}" ] || export LD_LIBRARY_PATH
# Where PyTorch's CMake files look for nvcc.
command -v nvcc > /dev/null 2>&1 || export PATH="$PATH:/usr/local/cuda/bin"
# Open MPI as root, alone.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# The CMake folder of a Python's PyTorch with CUDA; nothing where there is none.
torch_prefix() {
  python3 -c 'import torch; print(torch.utils.cmake_prefix_path if torch.version.cuda else "")' 2>/dev/null || true
}
# cuDNN that pip installed, where the toolkit has none.
pip_cudnn() {
  python3 -c 'import nvidia.cudnn as c; print(list(c.__path__)[0])' 2>/dev/null || true
}

# Cases, one a line, with a name that is a file's.
each_case() { grep -v '^ *\(#\|$\)' "$cases"; }
name_of() { echo "$1" | sed 's/^zoo://; s/ --/_/g; s/[^A-Za-z0-9._-]/-/g'; }
# What a case says, as calibrators take it: batches of one replica, no devices.
calibrate_words() { echo "$1" | sed 's/--batch \([0-9]*\)/--batches \1/; s/^\([^ ]*\)/--for \1/'; }

# Whether a program of libtorch's is there; said once.
said=
has() {  # PROGRAM
  [ -z "$dry" ] && [ ! -x "$bin/$1" ] || return 0
  case $said in *" $1 "*) ;; *) say "$1 was not built (libtorch or MPI is missing): what it does is left out" ;; esac
  said="$said $1 "
  return 1
}

# ---- what was done before, and what is kept of this run

# The table as far as it goes, and all in one file.
finish() {
  [ -z "$dry" ] || return 0
  [ ! -d "$out/measured" ] || python3 "$here/compare.py" "$out" "$cases" > /dev/null || say "no table was written"
  [ -n "$pack" ] && [ -d "$out" ] || return 0
  mkdir -p "$(dirname "$pack")"
  if tar -C "$out" -czf "$pack.part" .; then mv "$pack.part" "$pack"; else say "$pack could not be written"; fi
}
# What an earlier run packed is unpacked into a folder that has nothing yet; else that is what counts.
if [ -z "$dry" ]; then
  mkdir -p "$out"
  if [ -n "$pack" ] && [ -e "$pack" ] && [ -z "$(ls -A "$out")" ]; then tar -C "$out" -xzf "$pack"; fi
fi
trap finish EXIT

# Ends what runs, which then saves what it has, and this script. What has not ended after half a minute is killed, so
# that nothing stays behind on the GPU.
stop() {  # EXIT-CODE
  trap '' HUP INT TERM
  if [ -n "$child" ]; then
    # By its own number where it has no group yet.
    kill -s TERM -- "-$child" 2> /dev/null || kill -s TERM "$child" 2> /dev/null || true
    tenths=0
    while kill -s 0 -- "-$child" 2> /dev/null && [ "$tenths" -lt 300 ]; do
      sleep 0.1
      tenths=$((tenths + 1))
    done
    kill -s KILL -- "-$child" 2> /dev/null || true
  fi
  [ -z "${into-}" ] || rm -f "$into.part"
  exit "$1"
}
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 143' TERM

# ---- steps

# Once with all that is there; where a PyTorch stops CMake, what needs none is built all the same.
configure() {
  torch=$(torch_prefix) cudnn=$(pip_cudnn)
  paths="$prefixes${prefixes:+${torch:+;}}$torch"
  set -- -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=native -DSIBYL_GUI=OFF \
    ${paths:+"-DCMAKE_PREFIX_PATH=$paths"} ${cudnn:+"-DCUDNN_ROOT=$cudnn"} -G Ninja
  run cmake "$@" && return 0
  say "build: once more without libtorch"
  run cmake --fresh "$@" -DSIBYL_TRAINER=OFF
}
do_build() {
  [ -z "$given_bin" ] || { say "build: left out, programs are in $bin"; return 0; }
  if [ -n "$dry" ] || [ ! -e "$build/build.ninja" ]; then configure; fi
  status=0
  run timeout --foreground "$(left)" cmake --build "$build" -j "$jobs" --target gpu_programs -- -k 0 || status=$?
  [ "$status" -ne 124 ] || in_time
  [ "$status" -ne 0 ] || return 0
  say "build: not all could be built"
  [ -x "$bin/sibyl" ] && [ -x "$bin/sibyl-calibrate-cudnn" ]
}

do_test() {
  [ -z "$given_bin" ] || { say "test: left out, programs are in $bin"; return 0; }
  if [ -z "$dry" ] && [ -e "$out/tests.txt" ]; then return 0; fi
  status=0
  run timeout --foreground "$(quarter)" ctest --test-dir "$build" -R 'Kernels\.|Gpu\.|CalibrateCudnn\.|TorchCuda\.' \
    --output-on-failure --timeout 120 --output-log "$out/tests.txt.part" || status=$?
  [ -z "$dry" ] || return 0
  [ "$status" -eq 0 ] || say "test: not all have passed ($status): $out/tests.txt tells"
  if [ -e "$out/tests.txt.part" ] && [ "$status" -ne 124 ]; then mv "$out/tests.txt.part" "$out/tests.txt"; fi
}

do_facts() {
  if [ -z "$dry" ] && [ -e "$out/cudnn.json" ]; then return 0; fi
  run "$bin/sibyl" calibrate compute --backend cudnn --facts -o "$out/cudnn.json" || say "facts: not measured by cudnn"
}

# Calibrates, and leaves DONE behind once there is nothing left to time: but for what cannot be, which the log tells.
calibrate() {  # DONE WORDS-OF-CALIBRATE...
  done_file=$1
  shift
  if [ -z "$dry" ] && [ -e "$done_file" ]; then return 0; fi
  in_time
  outcome=0
  run_into "$done_file" timeout --foreground "$(left)" "$bin/sibyl" calibrate compute "$@" --budget "$(quarter)s" --json || outcome=$?
  [ -z "$dry" ] || return 0
  if grep -q 'budget has passed' "$done_file.log"; then
    rm -f "$done_file"
    : > "$out/left"
    say "$(basename "$done_file" .json): some kernels are left to time"
  elif [ "$outcome" -ne 0 ] && grep -q 'kernels cannot be timed' "$done_file.log"; then
    echo '{}' > "$done_file"
  fi
  return "$outcome"
}

do_sweep() {
  calibrate "$out/calibrated/sweep.json" --backend cudnn --sweep quick --rounds 1 --kernel-budget 0.03s \
    --dtypes f32,tf32,bf16 --optimizer momentum,adamw -o "$out/sweep.json" || say "sweep: not whole"
}

# A model that a backend cannot time wholly does not keep the others from it.
calibrate_case() {  # cudnn|torch CASE
  backend='--backend cudnn'
  if [ "$1" = torch ]; then
    has sibyl-calibrate || return 0
    backend='--device cuda'
  fi
  # shellcheck disable=SC2046,SC2086
  calibrate "$out/calibrated/$1/$(name_of "$2").json" $backend $(calibrate_words "$2") --kernel-budget 0.03s \
    -o "$out/$1.json" || say "$2: not all of its kernels could be timed by $1"
}

# What an operation takes this host, which libtorch alone measures.
host_words() {  # CALIBRATION
  [ -z "$dry" ] && [ "$1" != torch ] && [ -e "$out/torch.json" ] || return 0
  python3 - "$out/torch.json" << 'END' || true
import json, sys
device = json.load(open(sys.argv[1]))["device"]
if device.get("dispatch_s") and not device.get("dispatch_error"):
    print("--set device.dispatch=%.3fus" % (1e6 * device["dispatch_s"]))
END
}

# From each calibration that is there; again where it has learned of this case since.
predict_case() {  # CASE
  for calibration in cudnn torch sweep; do
    prediction=$out/predictions/$calibration/$(name_of "$1").json
    learned=$out/calibrated/$calibration/$(name_of "$1").json
    [ "$calibration" != sweep ] || learned=$out/sweep.json
    if [ -z "$dry" ]; then
      [ -e "$out/$calibration.json" ] || continue
      # shellcheck disable=SC3013
      if [ -e "$prediction" ] && [ -e "$learned" ] && [ ! "$learned" -nt "$prediction" ]; then continue; fi
    fi
    # shellcheck disable=SC2046,SC2086
    run_into "$prediction" "$bin/sibyl" predict $1 --cluster "$out/$calibration.json" --devices 1 --json \
      $(host_words "$calibration") || say "$1: not predicted from $calibration"
  done
}

train_case() {  # CASE
  measured=$out/measured/$(name_of "$1").json
  [ -n "$dry" ] || [ ! -e "$measured" ] || return 0
  has sibyl-train || return 0
  in_time
  # shellcheck disable=SC2086
  run_into "$measured" timeout --foreground "$(left)" "$bin/sibyl-train" $1 --device cuda --steps 20 --warmup 5 --log-every 0 --json ||
    say "$1: not trained"
}

# In this shell, not in one of a pipe's, which no signal to this one would reach.
for_each_case() {  # COMMAND...
  while read -r case <&3; do
    [ -z "$case" ] || "$@" "$case"
  done 3<< END
$(each_case)
END
}
whole_case() {  # CASE
  calibrate_case cudnn "$1"
  calibrate_case torch "$1"
  predict_case "$1"
  train_case "$1"
}
do_cases() { for_each_case whole_case; }
do_cudnn() { for_each_case calibrate_case cudnn; }
do_torch() { for_each_case calibrate_case torch; }
do_predict() { for_each_case predict_case; }
do_train() { for_each_case train_case; }

do_table() { run python3 "$here/compare.py" "$out" "$cases"; }

rm -f "$out/left"
for step in $steps; do
  [ "$step" = table ] || in_time
  say "$step"
  "do_$step"
done
if [ -e "$out/left" ]; then
  say "some kernels are left to time: run the same command again"
  exit 75
fi
