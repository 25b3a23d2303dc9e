#!/bin/sh
# Predicts and trains for real on this machine, and compares.
#
#   validate.sh BIN_DIR OUT_DIR [SETTING ...]        all settings unless some are named
#
#   one         one rank
#   pair        data parallelism on two hosts made of network namespaces, with an unshaped wire
#   gigabit     the same with a wire of 1 Gb/s
#   strategies  every other way of splitting a model over the two unshaped hosts
#   emulated    hybrids of them on 4, 8 and 16 emulated ranks (docs/trainer.md), on 2 to 8 hosts of 1 Gb/s and 100 Mb/s;
#               emulated:RANKS:HOSTS:RATE is one of these, emulated:RANKS:HOSTS:RATE:TIMES one of a device that is TIMES slower
#               (emulated:16:8:250mbit:4 is 1 Gb/s with four times the processors' time for messages: validation/slower.py says why).
#               16 on 8 hosts of 1 Gb/s are emulated so where a machine has less than one processor for 2 Gb/s, if the device was measured
#   ddp         PyTorch's own DistributedDataParallel of three models on two hosts (ddp/validate.sh)
#   network     what messages foretell of collectives, and those of some sizes of the others, on hosts behind one switch and behind two levels
#               of them; network:RANKS:HOSTS:RATE[:UPLINK/HOSTS] is one of these
#   search      what `sibyl search` finds for five models on 8 emulated ranks, 4 hosts of 1 Gb/s: its best, and ten others of each, are run,
#               all of it a quarter as fast (validation/slower.py says why); of a calibration that was measured, not of a shipped device
#
# OUT_DIR gets the calibrations (SETTING.json) and a table of each setting (*.md, *.results.json). What is measured already is not
# measured again, and steps are judged with those of earlier runs on OUT_DIR: remove it to start anew. Emulated devices take the times of OUT_DIR/pair.json, or, where that is missing, but for search, of the
# shipped dgx1-v100; SIBYL_EMULATED names another. SIBYL_CACHE (64MB) is the last-level cache, where what
# calibration finds (docs/calibrate.md) shall not count. Leave the machine alone while it runs.
set -eu

bin=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")
shift 2
here=$(dirname "$(readlink -f "$0")")
# Many short rounds: the speed of a shared machine changes by a fifth within seconds, and what is timed at once is timed at one speed.
rounds=10
steps=5  # of which those that take new memory do not count, as far as there are others
kernel_budget=0.01s
goals='--max-mean-error 0.05 --max-error 0.20 --max-memory-error 0.02'  # of this project, docs/validation.md; a setting may have others
repeat=  # what is measured more than once a round, or before each
samples=  # of messages before the first
worst=0

# A command that says that a prediction failed, or a case could not be run, does not keep the other settings from running.
lenient() {
  "$@" || { status=$?; [ "$status" -ne 130 ] || exit 130; worst=$status; }
}

# Reference steps among the cases, which are predicted with what they teach.
judge() {  # SETTING OPTIONS...
  setting=$1
  shift
  results=$out/$setting.results.json number=1
  while [ -e "$results" ]; do number=$((number + 1)); results=$out/$setting.results.$number.json; done
  lenient "$bin/sibyl" validate "$out/cases.$setting.txt" --reference "$out/reference.$setting.txt" \
    --calibration "$out/$setting.json" --rounds "$rounds" ${SIBYL_CACHE:+--cache "$SIBYL_CACHE"} --kernel-budget "$kernel_budget" --steps "$steps" --warmup 2 --markdown \
    --save "$results" $([ "$number" -gt 1 ] || echo "$goals") $repeat "$@" > "$out/$setting.md"
  [ "$number" -eq 1 ] || judge_all "$number"
  cat "$out/$setting.md"
}

# Of so many runs all rounds together.
judge_all() {  # NUMBER
  last=$1 number=2
  set -- --measured "$out/$setting.results.json"
  while [ "$number" -le "$last" ]; do set -- "$@" --measured "$out/$setting.results.$number.json" && number=$((number + 1)); done
  lenient "$bin/sibyl" validate "$out/cases.$setting.txt" --calibration "$out/$setting.json" --markdown $goals "$@" > "$out/$setting.md"
}

# The case lists for this many ranks. Reference steps do not overlap: they teach how kernels add up, and compute beside messages
# would mix that with how the two slow each other, which is measured by itself.
lists() {  # SETTING CASES OPTIONS OPTIONS-OF-REFERENCES
  sed "/^zoo:/s/\$/$3/" "$here/validation/$2.txt" > "$out/cases.$1.txt"
  sed "/^zoo:/s/\$/$3$4/" "$here/validation/reference.txt" > "$out/reference.$1.txt"
}

one() {
  lists one cases '' ''
  judge one
}

# The pair's calibration without what is to be measured anew.
pair_without() {  # CALIBRATION KEYS...
  [ ! -e "$out/$1.json" ] && [ -e "$out/pair.json" ] || return 0
  python3 - "$out/pair.json" "$out/$@" <<'END'
import json, sys
source, target, *keys = sys.argv[1:]
calibration = json.load(open(source))
for key in keys:
    calibration[key] = []
json.dump(calibration, open(target + ".json", "w"))
END
}

# Inside `hosts.sh with`. Messages take as long whatever is trained: a later setting starts from what the first one knows of the wire that
# it does not change. Kernels are timed anew beside each setting's own steps, for the machine drifts.
two_hosts() {  # SETTING
  launch="$here/hosts.sh run -np {ranks} --"
  lists=cases
  case $1 in
    gigabit)
      rounds=2 goals='--max-mean-error 0.04 --max-error 0.15 --max-memory-error 0.02'  # steps of seconds, all alike: the wire sets the pace
      pair_without gigabit kernels point_to_point collectives overlap steps ;;
    pair) rounds=8 goals='--max-mean-error 0.04 --max-error 0.15 --max-memory-error 0.02' ;;
    strategies)
      lists=strategies rounds=4 goals='--max-strategy-error 0.06 --max-error 0.15 --max-memory-error 0.02 --max-wrong-pairs 0'
      # Messages, and what is bound by memory, have two speeds on a shared machine: only many moments tell their means.
      repeat='--known-to 0.05 --network-budget 90s' samples='--network-samples 1'
      pair_without strategies kernels steps ;;
  esac
  lists "$1" "$lists" ' --devices 2' ' --no-overlap'
  if ! grep -q '"same_node"' "$out/$1.json" 2>/dev/null; then
    "$here/hosts.sh" run -np 2 -- "$bin/sibyl-calibrate" network --budget 120s $samples -o "$out/$1.json"
    "$here/hosts.sh" run -np 2 -- "$bin/sibyl-calibrate" overlap -o "$out/$1.json"
  fi
  judge "$1" --launcher "$launch"
}

# Inside `hosts.sh with`: as many ranks on each host. The wire is measured without training, as always, before each
# round. Nothing is computed, so the cache need not be found: looking for it takes a gigabyte and more of each rank.
emulated_ranks() {  # RANKS NAME [TIMES-SLOWER]
  cases=$out/cases.$2.txt
  sed "/^zoo:/s/\$/ --devices $1/" "$here/validation/emulated.$1.txt" > "$cases"
  device=${SIBYL_EMULATED:-$out/pair.json}
  [ -n "${SIBYL_EMULATED:-}" ] || [ -e "$device" ] || device=dgx1-v100
  if [ -n "${3:-}" ]; then
    [ -e "$device" ] || { echo "validate.sh: a slower device is made of one that was measured: run 'pair' first, or name a calibration in SIBYL_EMULATED" >&2; exit 2; }
    python3 "$here/validation/slower.py" "$device" "$3" > "$out/$2.device.json"
    device=$out/$2.device.json
  fi
  # As many exchanges fit into it, however slow the wire: buckets of 25 MiB are not to be foretold from 1 MiB.
  budget=$(awk -v times="${3:-1}" 'BEGIN { printf "%ds", 200 * times }')
  lenient "$bin/sibyl" validate "$cases" --calibration "$out/$2.json" --device "emulated:$device" --launcher \
    "$here/hosts.sh run -np {ranks} --" --rounds 2 --network-budget "$budget" --cache 32MB --steps 3 --warmup 3 --max-mean-error 0.06 --max-error 0.15 --max-memory-error 0.02 --markdown --save "$out/$2.results.json" > "$out/$2.md"
  cat "$out/$2.md"
}

# Inside `hosts.sh with`. Behind two levels of switches a cluster file says how these join what was measured.
network_of_hosts() {  # RANKS NAME HOSTS RATE
  # Three times over, of which medians count: the machine's speed changes from minute to minute.
  for times in 1 2 3; do
    "$here/hosts.sh" run -np "$1" -- "$bin/sibyl-calibrate" network --budget 90s --network-samples "$times" --cache 32MB -o "$out/$2.json"
  done
  judged=$2.json
  case $4 in
    *:*)
      tree=${4#*:} each=${4##*/} judged=$2.yaml
      bits() { echo "$1" | sed 's/gbit/Gb/;s/mbit/Mb/'; }
      printf '%s\n' "name: $2" "calibration: $2.json" "nodes: $3" "devices_per_node: $(($1 / $3))" \
        'device_link: {kind: shared memory, bandwidth: 10GB/s, latency: 5us}' \
        "nic: {per_node: 1, bandwidth: $(bits "${4%%:*}")/s, latency: 10us}" \
        "fabric: {kind: leaf spine, nodes_per_leaf: $each, leaves: $((($3 + each - 1) / each)), spines: 1, link: {bandwidth: $(bits "${tree%/*}")/s}, switch_latency: 2us}" \
        > "$out/$2.yaml" ;;
  esac
  (cd "$out" && "$bin/sibyl" collectives "$judged" --leave-out --sizes 1KiB:64MiB --markdown) > "$out/$2.md"
  cat "$out/$2.md"
}

network() {  # RANKS HOSTS RATE
  name=network-$1-ranks-$2-hosts-$(echo "$3" | tr ':/' '--')
  echo "## $name"
  lenient "$here/hosts.sh" with "$2" "$3" -- "$0" "$bin" "$out" --inside network "$1" "$name" "$2" "$3"
}

# Inside `hosts.sh with`. The cluster that is searched has the emulated device's kernels and the wire as it was measured.
searched() {  # RANKS NAME
  measured=${SIBYL_EMULATED:-$out/pair.json} device=$out/$2.device.json
  [ -e "$measured" ] || { echo "validate.sh: search emulates a device that was measured: run 'pair' first, or name a calibration in SIBYL_EMULATED" >&2; exit 2; }
  python3 "$here/validation/slower.py" "$measured" 4 > "$device"
  grep -q '"same_node"' "$out/$2.json" 2>/dev/null ||
    "$here/hosts.sh" run -np "$1" -- "$bin/sibyl-calibrate" network --budget 300s --between-messages sleep -o "$out/$2.json"
  printf 'name: %s\ncalibration: %s\nnetwork: %s\n' "$2" "$device" "$out/$2.json" > "$out/$2.yaml"
  python3 "$here/validation/search.py" cases "$bin/sibyl" "$here/validation/search.txt" "$out/$2.yaml" "$1" "$out/$2.plan.json" \
    > "$out/cases.$2.bare.txt"
  sed "s/\$/ --devices $1/" "$out/cases.$2.bare.txt" > "$out/cases.$2.txt"
  lenient "$bin/sibyl" validate "$out/cases.$2.txt" --calibration "$out/$2.json" --device "emulated:$device" --launcher \
    "$here/hosts.sh run -np {ranks} --" --rounds 2 --steps 3 --warmup 3 --markdown --save "$out/$2.results.json" > "$out/$2.md"
  python3 "$here/validation/search.py" judge "$out/$2.plan.json" "$out/$2.results.json" >> "$out/$2.md"
  cat "$out/$2.md"
}

emulated() {  # RANKS HOSTS RATE [TIMES-SLOWER]
  [ -e "$here/validation/emulated.$1.txt" ] || { echo "validate.sh: there are cases for 4, 8 and 16 emulated ranks" >&2; exit 2; }
  name=emulated-$1-ranks-$2-hosts-$3${4:+-$4-times-slower}
  echo "## $name"
  lenient "$here/hosts.sh" with "$2" "$3" -- "$0" "$bin" "$out" --inside emulated "$1" "$name" "${4:-}"
}

if [ "${1:-}" = --inside ]; then
  case $2 in
    emulated) emulated_ranks "$3" "$4" "$5" ;;
    network) network_of_hosts "$3" "$4" "$5" "$6" ;;
    search) searched "$3" "$4" ;;
    *) two_hosts "$2" ;;
  esac
  exit "$worst"
fi

for setting in "${@:-one pair gigabit strategies emulated ddp}"; do
  for s in $setting; do
    case $s in
      one) one ;;
      ddp) lenient "$here/ddp/validate.sh" "$bin" "$out" ;;
      pair | strategies) lenient "$here/hosts.sh" with 2 -- "$0" "$bin" "$out" --inside "$s" ;;
      gigabit) lenient "$here/hosts.sh" with 2 1gbit -- "$0" "$bin" "$out" --inside gigabit ;;
      search) lenient "$here/hosts.sh" with 4 250mbit -- "$0" "$bin" "$out" --inside search 8 search-8-ranks-4-hosts-250mbit ;;
      emulated)
        emulated 4 2 1gbit
        emulated 4 4 100mbit
        emulated 8 4 1gbit
        emulated 8 8 100mbit
        emulated 16 4 1gbit
        emulated 16 4 100mbit
        emulated 16 8 100mbit
        if [ "$(nproc)" -lt 4 ] && { [ -n "${SIBYL_EMULATED:-}" ] || [ -e "$out/pair.json" ]; }; then
          emulated 16 8 250mbit 4
        else
          emulated 16 8 1gbit
        fi ;;
      emulated:*:*:*)
        IFS=: read -r _ ranks hosts rate times <<END
$s
END
        emulated "$ranks" "$hosts" "$rate" "$times" ;;
      network)
        network 2 2 1gbit
        network 4 4 1gbit
        network 4 4 100mbit
        network 8 4 1gbit
        network 8 8 300mbit
        network 16 8 100mbit
        network 4 4 1gbit:500mbit/2
        network 8 8 300mbit:200mbit/4 ;;
      network:*:*:*)
        IFS=: read -r _ ranks hosts rate <<END
$s
END
        network "$ranks" "$hosts" "$rate" ;;
      *) echo "validate.sh: '$s' is not one, pair, gigabit, strategies, emulated, emulated:RANKS:HOSTS:RATE[:TIMES], ddp, network, network:RANKS:HOSTS:RATE or search" >&2
        exit 2 ;;
    esac
  done
done
exit "$worst"
