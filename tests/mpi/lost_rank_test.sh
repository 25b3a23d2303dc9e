#!/bin/sh
# A rank of `sibyl-calibrate network` is killed half-way, on one of two hosts: what was measured until then stands in the file, mpirun
# says which rank was lost and the first rank what becomes of it, and the same command goes on from there.
set -u
hosts=$1 calibrate=$2
if [ -z "${SIBYL_HOSTS:-}" ]; then exec "$hosts" with 2 -- "$0" "$hosts" "$calibrate"; fi

failures=0
check() { if [ "$2" != "$3" ]; then echo "$1: expected '$2', got '$3'"; failures=$((failures + 1)); fi; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
file=$folder/machine.json said=$folder/said

measure() { "$hosts" run -np 2 -- "$calibrate" network --cache 1MB --budget "$@" -o "$file" >"$folder/out" 2>"$said"; }
# Lines that are samples of what ranks send each other, without the comma after all but the last.
samples() { [ -e "$file" ] && sed -n 's/^\({"\(same_node\|collective\)".*}\),\{0,1\}$/\1/p' "$file"; }
count() { samples | wc -l; }
# Lines without what was measured.
exchanges() { sed 's/"\(time_s\|spread\|in_turn\)":[^,}]*//g' | sort; }

measure 600s --network-samples 1 &
job=$!
tries=0
while [ "$(count)" -lt 5 ] && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries + 1)); done
for pid in $(ip netns pids "$SIBYL_HOSTS-h2"); do
  case $(cat "/proc/$pid/comm" 2>/dev/null) in sibyl-calibrate*) kill -KILL "$pid" ;; esac
done
wait "$job"
check "a run that lost a rank fails" yes "$([ $? -ne 0 ] && echo yes)"
check "which rank was lost" 1 "$(grep -c 'process rank 1 .*signal 9' "$said")"
check "what becomes of it" 1 "$(grep -c 'what was measured so far is kept' "$said")"

samples >"$folder/before"
check "samples before" yes "$([ "$(wc -l <"$folder/before")" -ge 5 ] && echo yes)"
measure 0.1s --network-samples 1
check "a further run" 0 $?
samples >"$folder/after"
check "samples that were lost" 0 "$(grep -cvxFf "$folder/after" "$folder/before")"
check "samples that were taken again" 0 "$(exchanges <"$folder/after" | uniq -d | wc -l)"

# Unless it is said how often, short ones are timed at three moments; of a budget that one exchange uses up, at fewer.
file=$folder/three.json
most() { samples | exchanges | uniq -c | sort -n | awk 'END { print $1 + 0 }'; }
for budget in 4s 16s 64s; do
  rm -f "$file"
  measure $budget
  check "a run from the beginning" 0 $?
  [ "$(most)" -lt 3 ] || break
done
check "samples of the shortest" 3 "$(most)"
[ $failures -eq 0 ] || cat "$said"
exit $failures
