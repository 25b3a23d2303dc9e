#!/bin/sh
# Predicts what PyTorch's own DistributedDataParallel does with three torchvision models on two hosts, runs it, and compares.
#
#   validate.sh BIN_DIR OUT_DIR [RATE]
#
# RATE is the wire's, as tools/hosts.sh takes it (1gbit); none: as fast as the kernel. OUT_DIR gets the exported models, a
# calibration (ddp.json, ddp-RATE.json) and the table (the same, .md and .results.json). Kernels that the calibration has are not timed again,
# nor are reference steps taken again; Gloo is measured each time. Leave the machine alone while it runs.
# Exit code 77 where two hosts cannot be made or PyTorch lacks Gloo.
set -eu

bin=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")
rate=${3:-}
here=$(dirname "$(readlink -f "$0")")
tools=$(dirname "$here")
name=ddp${rate:+-$rate}
calibration=$out/$name.json
rounds=${SIBYL_ROUNDS:-2} steps=${SIBYL_STEPS:-10}
python=/usr/bin/python3
# Of the two hosts that hosts.sh makes.
export MASTER_ADDR=10.77.0.1 GLOO_SOCKET_IFNAME=eth0

run() { "$tools/hosts.sh" run -np 2 -- "$@"; }

measure() {
  launch="$tools/hosts.sh run -np {ranks} --"
  # Reference steps are Sibyl's own trainer's, on other models, without overlap: nothing is learnt from DistributedDataParallel.
  if ! grep -q '"measured_s"' "$calibration" 2>/dev/null; then
    sed '/^zoo:/s/$/ --devices 2 --no-overlap/' "$tools/validation/reference.txt" > "$out/$name.reference.txt"
    run "$bin/sibyl-calibrate" network --budget 40s -o "$calibration"
    "$bin/sibyl" validate "$out/$name.reference.txt" --calibration "$calibration" --rounds "$rounds" --steps "$steps" \
      --kernel-budget 0.08s --record --markdown --launcher "$launch" > "$out/$name.reference.md"
  fi
  run "$python" "$here/probe.py" "$calibration" --budget 40
  "$bin/sibyl" validate "$out/$name.cases.txt" --calibration "$calibration" --rounds "$rounds" --steps "$steps" \
    --kernel-budget 0.08s --launcher "$launch" --trainer "$python $here/train.py" --markdown \
    --save "$out/$name.results.json" --max-mean-error 0.08 > "$out/$name.md" || missed=$?
  cat "$out/$name.md"
}

if [ "${SIBYL_DDP_INSIDE:-}" = yes ]; then
  missed=0  # exit code 5 where the goal is missed; the table is shown all the same
  measure
  exit "$missed"
fi

sed -n "s|^FOLDER|$out|p" "$here/cases.txt" > "$out/$name.cases.txt"
# shellcheck disable=SC2046
"$python" "$here/export.py" "$out" $(sed -n 's|^FOLDER/\([a-z0-9_]*\).onnx.*|\1|p' "$here/cases.txt")
SIBYL_DDP_INSIDE=yes exec "$tools/hosts.sh" with 2 $rate -- "$0" "$bin" "$out" $rate
