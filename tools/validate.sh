#!/bin/sh
# Predicts and trains for real on this machine, and compares: on one rank, and on two hosts made of network namespaces, with an unshaped
# wire and with one of 1 Gb/s.
#
#   validate.sh BIN_DIR OUT_DIR [one|pair|gigabit ...]
#
# OUT_DIR gets the calibrations (one.json, pair.json, gigabit.json) and a table of each setting (*.md, *.results.json). What is
# measured already is not measured again: remove OUT_DIR to start anew. Leave the machine alone while it runs.
set -eu

bin=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")
shift 2
here=$(dirname "$(readlink -f "$0")")
# Three rounds: the speed of a shared machine's memory changes within minutes, and what disturbs one round is outvoted by
# the others.
pace="--rounds 3 --kernel-budget 0.08s"
steps=7

# SETTING CASES OPTIONS...: a table of the cases beside the calibration.
table() {
  setting=$1 cases=$2
  shift 2
  "$bin/sibyl" validate "$cases" --calibration "$out/$setting.json" $pace --steps "$steps" "$@"
}

# Reference steps first, so that the cases are predicted with what they teach.
judge() {  # SETTING OPTIONS...
  setting=$1
  shift
  table "$setting" "$out/reference.$setting.txt" --record --markdown "$@" > "$out/$setting.reference.md"
  table "$setting" "$out/cases.$setting.txt" --markdown --save "$out/$setting.results.json" "$@" > "$out/$setting.md"
  cat "$out/$setting.md"
}

# The case lists for this many ranks. Reference steps do not overlap: they teach how kernels add up, and compute beside messages
# would mix that with how the two slow each other, which is measured by itself.
lists() {  # SETTING OPTIONS OPTIONS-OF-REFERENCES
  sed "/^zoo:/s/\$/$2/" "$here/validation/cases.txt" > "$out/cases.$1.txt"
  sed "/^zoo:/s/\$/$2$3/" "$here/validation/reference.txt" > "$out/reference.$1.txt"
}

one() {
  lists one '' ''
  judge one
}

# The pair's calibration without its network: the wire is another, the kernels are the same.
kernels_of_pair() {
  python3 - "$out/pair.json" "$out/gigabit.json" <<'END'
import json, sys
calibration = json.load(open(sys.argv[1]))
for key in ("point_to_point", "collectives", "overlap", "steps"):
    calibration[key] = []
json.dump(calibration, open(sys.argv[2], "w"))
END
}

# Inside `hosts.sh with`. Kernels take as long whatever the wire: the second setting starts from the first one's.
two_hosts() {  # SETTING
  launch="$here/hosts.sh run -np {ranks} --"
  lists "$1" ' --devices 2' ' --no-overlap'
  [ "$1" != gigabit ] || steps=5  # steps of seconds, all alike: the wire sets the pace
  [ "$1" != gigabit ] || [ -e "$out/gigabit.json" ] || [ ! -e "$out/pair.json" ] || kernels_of_pair
  if ! grep -q '"same_node"' "$out/$1.json" 2>/dev/null; then
    "$here/hosts.sh" run -np 2 -- "$bin/sibyl-calibrate" network --network-budget 60s -o "$out/$1.json"
    "$here/hosts.sh" run -np 2 -- "$bin/sibyl-calibrate" overlap -o "$out/$1.json"
  fi
  judge "$1" --launcher "$launch"
}

if [ "${1:-}" = --inside ]; then
  two_hosts "$2"
  exit 0
fi

for setting in "${@:-one pair gigabit}"; do
  for s in $setting; do
    case $s in
      one) one ;;
      pair) "$here/hosts.sh" with 2 -- "$0" "$bin" "$out" --inside pair ;;
      gigabit) "$here/hosts.sh" with 2 1gbit -- "$0" "$bin" "$out" --inside gigabit ;;
      *) echo "validate.sh: '$s' is not one, pair or gigabit" >&2; exit 2 ;;
    esac
  done
done
