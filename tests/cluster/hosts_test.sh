#!/bin/sh
# tools/hosts.sh: hosts exist while the command runs and are gone afterwards, whatever became of it.
set -u
hosts=$1
failures=0
check() { if [ "$2" != "$3" ]; then echo "$1: expected '$2', got '$3'"; failures=$((failures + 1)); fi; }

"$hosts" with 2 -- true >/dev/null
[ $? -ne 77 ] || exit 77

spaces() { ip netns list | cut -d' ' -f1 | grep -c "^$1-" ; }

# The command's own exit code comes back, and nothing is left: "down" finds no space of that name.
name=$("$hosts" with 3 -- sh -c 'echo "$SIBYL_HOSTS"; exit 5')
check "exit code" 5 $?
check "left over after failure" 0 "$(spaces "$name")"

# Three hosts and the switch while it runs.
check "while running" 4 "$("$hosts" with 3 -- sh -c 'ip netns list | cut -d" " -f1 | grep -c "^$SIBYL_HOSTS-"')"

# Killed, it still cleans up.
out=$(mktemp)
"$hosts" with 2 -- sh -c 'echo "$SIBYL_HOSTS"; exec sleep 60' >"$out" &
pid=$!
tries=0
while [ ! -s "$out" ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
name=$(cat "$out")
kill "$pid"
wait "$pid" 2>/dev/null
check "exit code when killed" 143 $?
check "left over after a kill" 0 "$(spaces "$name")"
rm -f "$out"

# Two hosts see each other and nobody else; a rate is heeded (tc reports it).
check "reaches the other" 0 "$("$hosts" with 2 -- sh -c 'ip netns exec "$SIBYL_HOSTS-h1" sh -c "command -v ping >/dev/null || exit 0; ping -qc1 -W2 10.77.0.2 >/dev/null"; echo $?')"
check "rate" 1 "$("$hosts" with 2 100mbit -- sh -c 'ip netns exec "$SIBYL_HOSTS-h2" tc qdisc show dev eth0 | grep -c "rate 100Mbit"')"
check "waits once" "31125b 125000b" "$("$hosts" with 2 1gbit -- sh -c '
  ip netns exec "$SIBYL_HOSTS-h1" tc qdisc show dev eth0
  ip netns exec "$SIBYL_HOSTS-sw" tc qdisc show dev p1' | sed -n "s/.*burst \([^ ]*\).*/\1/p" | xargs)"
check "filters" "" "$("$hosts" with 2 -- sh -c 'ip netns exec "$SIBYL_HOSTS-sw" sh -c "cat /proc/sys/net/bridge/bridge-nf-call-* 2>/dev/null" | grep -v "^0"')"

# Three hosts, two at a switch: two switches below one, by links of 50 Mb/s both ways, and all see each other.
check "uplinks" 4 "$("$hosts" with 3 100mbit:50mbit/2 -- sh -c 'ip netns exec "$SIBYL_HOSTS-sw" tc qdisc show | grep -c "rate 50Mbit"')"
check "a switch's hosts" 2 "$("$hosts" with 3 100mbit:50mbit/2 -- sh -c 'ip netns exec "$SIBYL_HOSTS-sw" ip link show master leaf1 | grep -c " p[0-9]*@"')"
check "reaches another switch's" 0 "$("$hosts" with 3 100mbit:50mbit/2 -- sh -c 'ip netns exec "$SIBYL_HOSTS-h1" sh -c "command -v ping >/dev/null || exit 0; ping -qc1 -W2 10.77.0.3 >/dev/null"; echo $?')"

# Wrong use is code 2.
"$hosts" with 0 -- true 2>/dev/null
check "no hosts" 2 $?
"$hosts" with 2 fast -- true 2>/dev/null
check "no rate" 2 $?
"$hosts" with 2 1gbit:500mbit -- true 2>/dev/null
check "an uplink of how many hosts" 2 $?
"$hosts" down everything 2>/dev/null
check "not a name" 2 $?

[ "$failures" -eq 0 ] && echo "hosts.sh: all checks passed"
exit "$failures"
