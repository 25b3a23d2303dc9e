#!/bin/sh
# Runs the fuzzers: tests/fuzz/run.sh SECONDS [BUILD_FOLDER]. Builds nothing; the asan preset does.
# The importer's runs for SECONDS; meanwhile the others run, one after the other, for a sixth of that each. Each starts from its seeds
# and from what it found interesting before. Exit 0: nothing found; else BUILD_FOLDER/fuzz/NAME has what was.
set -eu
# A topology of some bytes may rightly become a cluster file of megabytes: memory freed is kept by the sanitizer, but little of it.
export ASAN_OPTIONS="quarantine_size_mb=32${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [BUILD_FOLDER]}
build=${2:-build/asan}
here=$(dirname "$0")
[ -x "$build/bin/write_seeds" ] || { echo "run.sh: the fuzzers are not built in $build" >&2; exit 2; }
"$build/bin/write_seeds" "$build/fuzz/seeds"

fuzz() {  # NAME SECONDS
  folder=$build/fuzz/$1
  mkdir -p "$folder/corpus" "$folder/findings"
  dictionary=
  [ ! -e "$here/$1.dict" ] || dictionary=-dict=$here/$1.dict
  if "$build/bin/$1_fuzzer" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -max_len=65536 $dictionary \
      -artifact_prefix="$folder/findings/" -print_final_stats=1 "$folder/corpus" "$build/fuzz/seeds/$1" > "$folder/log" 2>&1
  then
    awk -v name="$1" '/number_of_executed_units/ {print name " fuzzer: " $2 " inputs, nothing found"}' "$folder/log"
  else
    tail -n 50 "$folder/log" >&2
    echo "run.sh: the $1 fuzzer found an input that fails; it lies in $folder/findings" >&2
    return 1
  fi
}

others() {
  failed=0
  for name in calibration cluster import report trace; do
    fuzz "$name" $(((seconds + 5) / 6)) || failed=1
  done
  return $failed
}

others &
failed=0
fuzz onnx "$seconds" || failed=1
wait $! || failed=1
exit $failed
