#!/bin/sh
# All that can be done with a GPU, in one command: builds, tests, calibrates, predicts, trains and compares.
#
#   run.sh [OPTION ...] [STEP ...]      all steps unless some are named
#
#   build    configures and builds with what is installed; fetches nothing
#   test     the tests that need a GPU
#   facts    the device: peak, bandwidth, context, launches, copies
#   sweep    a sweep over all families through cuDNN, with its interpolation error
#   cudnn    the kernels of the cases' models through cuDNN
#   torch    the same through libtorch
#   predict  each case, from each calibration
#   train    each case; one that was not predicted yet is predicted first
#   table    predicted against measured
#
#   --out FOLDER     gets calibrations, predictions, measurements and tables (out/gpu)
#   --build FOLDER   the build folder (build/gpu)
#   --bin FOLDER     programs built elsewhere; `build` is left out
#   --prefix FOLDER  where libraries lie that are not in the system's folders (may be given again)
#   --cases FILE     what is trained (tools/gpu/cases.txt)
#   --limit SECONDS  stop a step after about so long; the same command goes on from there (540)
#   --jobs N         compilations at once (all processors)
#   --dry-run        print what would be done
#
# Nothing that is done is done again: remove files of OUT to do it anew. Exit code 75: the limit has passed and work is left.
set -eu

here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")
out=$root/out/gpu build=$root/build/gpu bin='' prefixes='' cases=$here/cases.txt limit=540 jobs=$(nproc) dry=''
steps=

die() { echo "gpu/run.sh: $*" >&2; exit 2; }
say() { echo "gpu/run.sh: $*" >&2; }

while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=1 ;;
    --help|-h) sed -n '2,30s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out|--build|--bin|--prefix|--cases|--limit|--jobs)
      [ $# -ge 2 ] || die "$1 needs a value"
      case $1 in
        --out) out=$2 ;;
        --build) build=$2 ;;
        --bin) bin=$2 ;;
        --prefix) prefixes="$prefixes${prefixes:+;}$2" ;;
        --cases) cases=$2 ;;
        --limit) limit=$2 ;;
        --jobs) jobs=$2 ;;
      esac
      shift ;;
    build|test|facts|sweep|cudnn|torch|predict|train|table) steps="$steps $1" ;;
    *) die "'$1' is neither a step nor an option; --help tells" ;;
  esac
  shift
done
[ -n "$steps" ] || steps='build test facts sweep cudnn torch predict train table'
case $limit in *[!0-9]*|'') die "--limit takes seconds" ;; esac
[ -r "$cases" ] || die "$cases cannot be read"
given_bin=$bin
bin=${bin:-$build/bin}

# Whole paths, since steps run in other folders.
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
out=$(absolute "$out") build=$(absolute "$build") bin=$(absolute "$bin")

start=$(date +%s)
left() { echo $((limit - ($(date +%s) - start))); }
time_over() {
  [ "$(left)" -gt 10 ] && return 1
  say "$limit s have passed and work is left: run the same command again"
  exit 75
}

# Runs a command, or prints it.
run() {
  if [ -n "$dry" ]; then echo "$*"; else "$@" < /dev/null; fi
}
# The same with standard output into a file, which is there only if the command succeeded.
run_into() {  # FILE COMMAND...
  file=$1
  shift
  if [ -n "$dry" ]; then echo "$* > $file"; return 0; fi
  mkdir -p "$(dirname "$file")"
  if "$@" < /dev/null > "$file.part" 2> "$file.log"; then mv "$file.part" "$file"; return 0; fi
  status=$?
  tail -n 3 "$file.log" >&2
  rm -f "$file.part"
  return "$status"
}

# ---- where things are

for folder in $(echo "$prefixes" | tr ';' ' '); do
  for lib in lib lib64 lib/x86_64-linux-gnu lib/x86_64-linux-gnu/openmpi/lib; do
    [ -d "$folder/$lib" ] && LD_LIBRARY_PATH="$folder/$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  done
done
[ -z "${LD_LIBRARY_PATH-}" ] || export LD_LIBRARY_PATH
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

# ---- steps

do_build() {
  [ -z "$given_bin" ] || { say "build: left out, programs are in $bin"; return 0; }
  torch=$(torch_prefix) cudnn=$(pip_cudnn)
  paths="$prefixes${prefixes:+${torch:+;}}$torch"
  run cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=native \
    ${paths:+"-DCMAKE_PREFIX_PATH=$paths"} ${cudnn:+"-DCUDNN_ROOT=$cudnn"} -G Ninja
  run timeout "$(left)" cmake --build "$build" -j "$jobs" || { [ $? -ne 124 ] || time_over; exit 1; }
}

do_test() {
  run ctest --test-dir "$build" -R 'Kernels\.|Gpu\.|CalibrateCudnn\.|TorchCuda\.' --output-on-failure --timeout 300
}

do_facts() { run "$bin/sibyl" calibrate compute --backend cudnn --facts -o "$out/cudnn.json"; }

do_sweep() {
  [ -n "$dry" ] || mkdir -p "$out"
  run "$bin/sibyl" calibrate compute --backend cudnn --sweep full --rounds 2 --kernel-budget 0.05s \
    --optimizer momentum,adam,adamw --budget "$(left)s" -o "$out/sweep.json"
  time_over || true
}

# Calibrates for every case; a model that a backend cannot time wholly does not keep the others from it.
calibrate_cases() {  # FILE WORDS-OF-THE-BACKEND
  each_case | while read -r case; do
    time_over || true
    # shellcheck disable=SC2046,SC2086
    run "$bin/sibyl" calibrate compute $2 $(calibrate_words "$case") --kernel-budget 0.1s --budget "$(left)s" \
      -o "$out/$1.json" || say "$case: not all of its kernels could be timed by $1"
  done
}
do_cudnn() { calibrate_cases cudnn '--backend cudnn'; }
do_torch() {
  if [ -z "$dry" ] && ! "$bin/sibyl-calibrate" --help > /dev/null 2>&1; then
    say "torch: left out, sibyl-calibrate was not built (libtorch or MPI is missing)"
    return 0
  fi
  calibrate_cases torch '--device cuda'
}

predict_case() {  # CASE
  for calibration in cudnn torch sweep; do
    file=$out/predictions/$calibration/$(name_of "$1").json
    [ ! -e "$file" ] || continue
    [ -n "$dry" ] || [ -e "$out/$calibration.json" ] || continue
    # shellcheck disable=SC2086
    run_into "$file" "$bin/sibyl" predict $1 --cluster "$out/$calibration.json" --devices 1 --json ||
      say "$1: not predicted from $calibration"
  done
}
do_predict() {
  each_case | while read -r case; do predict_case "$case"; done
}

do_train() {
  if [ -z "$dry" ] && [ ! -x "$bin/sibyl-train" ]; then
    say "train: left out, sibyl-train was not built (libtorch or MPI is missing)"
    return 0
  fi
  each_case | while read -r case; do
    file=$out/measured/$(name_of "$case").json
    [ ! -e "$file" ] || continue
    time_over || true
    predict_case "$case"
    # shellcheck disable=SC2086
    run_into "$file" timeout "$(left)" "$bin/sibyl-train" $case --device cuda --steps 20 --warmup 5 --log-every 0 --json ||
      say "$case: not trained"
  done
}

do_table() { run python3 "$here/compare.py" "$out" "$cases"; }

[ -n "$dry" ] || mkdir -p "$out"
for step in $steps; do
  say "$step"
  "do_$step"
done
