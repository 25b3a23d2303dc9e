#!/bin/sh
# Runs the importer's fuzzer: tests/fuzz/run.sh SECONDS [BUILD_FOLDER]. Builds nothing; see tests/fuzz/CMakeLists.txt.
# The crashers of the past run first, then SECONDS of fuzzing from a fresh corpus. Exit 0: nothing found.
set -eu
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [BUILD_FOLDER]}
build=${2:-build/fuzz}
here=$(dirname "$0")
fuzzer=$(find "$build" -name onnx_fuzzer -type f -perm -u+x | head -n 1)
seeds=$(find "$build" -name write_onnx_seeds -type f -perm -u+x | head -n 1)
[ -n "$fuzzer" ] && [ -n "$seeds" ] || { echo "run.sh: no onnx_fuzzer in $build" >&2; exit 2; }
corpus=$build/onnx_corpus
mkdir -p "$corpus" "$build/onnx_findings"
"$seeds" "$corpus"
for crasher in "$here"/crashers/*.onnx; do
  [ -e "$crasher" ] && "$fuzzer" -rss_limit_mb=1024 -timeout=10 "$crasher"
done
"$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
  -dict="$here/onnx.dict" -artifact_prefix="$build/onnx_findings/" -print_final_stats=1 "$corpus"
