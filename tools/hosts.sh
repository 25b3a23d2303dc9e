#!/bin/sh
# Several hosts on one machine: network namespaces joined by a bridge, and Open MPI across them.
#
#   hosts.sh with N [RATE] -- COMMAND...     makes N hosts, runs COMMAND with them, removes them whatever happens
#   hosts.sh run [-np P] [-per-host K] [-mpi "OPTIONS"] -- PROGRAM...
#                                            inside `with`: PROGRAM on P ranks, K on each host in turn
#   hosts.sh up N [RATE]                     makes hosts to keep and prints their name; export it as SIBYL_HOSTS
#   hosts.sh down [NAME]                     removes them (default: $SIBYL_HOSTS)
#   hosts.sh list                            names that are up
#
# `hosts.sh with 2 1gbit -- run -np 2 -- ./program` is the short way. RATE is what tc takes (1gbit, 100mbit); without
# it the wire is as fast as the kernel. 1gbit:500mbit/4 is a tree of two levels: four hosts at a switch (the last may have
# fewer), and each switch by 500 Mb/s at one above them. Each set of hosts has its switches in a namespace of its own, so nothing appears
# in the machine's own network, addresses (10.77.0.k) exist only inside, and any number of sets live side by side.
# Where there are processors enough, each host has its own share of them and its ranks stay there, as on machines apart.
# Needs root (or CAP_NET_ADMIN and CAP_SYS_ADMIN) and iproute2; without, exit code 77, which ctest takes as skipped.
set -eu

self=$(readlink -f "$0")
prefix=sibyl

die() { echo "hosts.sh: $*" >&2; exit 2; }
skip() { echo "hosts.sh: $*: no hosts can be made here" >&2; exit 77; }
is_count() { case $1 in '' | *[!0-9]* | 0*) return 1 ;; *) [ "$1" -le 200 ] ;; esac; }
host() { echo "$1-h$2"; }

# RATE in bytes per second; nothing if it is none.
bytes_per_second() {
  case $1 in
    *gbit) factor=125000000 number=${1%gbit} ;;
    *mbit) factor=125000 number=${1%mbit} ;;
    *kbit) factor=125 number=${1%kbit} ;;
    *bit) factor=0.125 number=${1%bit} ;;
    *) return 0 ;;
  esac
  awk -v n="$number" -v f="$factor" 'BEGIN { if (n ~ /^[0-9]+(\.[0-9]+)?$/ && n > 0) printf "%d", n * f }'
}

# Each packet costs the processors a timer, and two of them did not carry those of eight hosts of 1 Gb/s. Where all hosts together may
# send more than 2 Gb/s a processor, buckets hold twice as much and packets are twice as long (docs/validation/emulated.md).
buckets_per_second=4000
suit_buckets() {  # HOSTS RATE
  [ -z "$2" ] || [ $(($1 * $(bytes_per_second "$2"))) -le $((250000000 * $(nproc))) ] || buckets_per_second=2000
}

# The token bucket holds a quarter of a millisecond (4 KiB at least): what passes at once after a pause, which no real wire lets
# pass. The kernel keeps up with so small a bucket only if the packets that it hands down whole are smaller still.
# What reaches a host has come over wires of the same rate. Four such buckets let that pass, and make several senders that meet there
# wait; with one, each packet was held a second time, and these timers kept two processors from carrying eight hosts of 1 Gb/s.
# What waits for the wire has 2.5 MB, as a port of a switch may have, whatever the rate: where packets are dropped, how TCP
# recovers is measured, and not the wire.
shape() {  # NAMESPACE DEVICE RATE [BUCKETS]
  [ -n "$3" ] || return 0
  bucket=$(($(bytes_per_second "$3") / buckets_per_second))
  [ "$bucket" -ge 4096 ] || bucket=4096
  packet=$((bucket / 2))
  [ "$packet" -le 65536 ] || packet=65536
  ip netns exec "$1" ip link set "$2" gso_max_size "$packet" &&
    ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$3" burst "$((bucket * ${4:-1}))" limit 2500000
}

# Connections that leave a host share its wire evenly, as fair queueing (fq_codel, the default of systemd's machines) has it. Not
# every kernel has that, and in a common queue a connection gets the more of the wire the more of its packets wait there, and may
# have the more packets wait the more it gets: of two rings one had nine tenths. So each has half a millisecond of the wire wait.
fair() {  # NAMESPACE RATE
  [ -n "$2" ] || return 0
  ip netns exec "$1" sh -c "echo $(($(bytes_per_second "$2") / 2000 + 2048)) > /proc/sys/net/ipv4/tcp_limit_output_bytes"
}

# Reno, which every kernel has and permits: BBR, some machines' default, paces each packet by a timer and costs half as
# much processor again.
plain_tcp() {  # NAMESPACE
  ip netns exec "$1" sh -c 'echo reno > /proc/sys/net/ipv4/tcp_congestion_control'
}

# Switches of one leaf each, every one joined to br0 by its uplink.
make_leaves() {  # NAME LEAVES UPLINK
  leaf=1
  while [ "$leaf" -le "$2" ]; do
    ip netns exec "$1-sw" ip link add "leaf$leaf" type bridge &&
      ip netns exec "$1-sw" ip link set "leaf$leaf" up &&
      ip netns exec "$1-sw" ip link add "up$leaf" type veth peer name "down$leaf" &&
      ip netns exec "$1-sw" ip link set "up$leaf" master "leaf$leaf" up &&
      ip netns exec "$1-sw" ip link set "down$leaf" master br0 up &&
      shape "$1-sw" "up$leaf" "$3" && shape "$1-sw" "down$leaf" "$3" || return 1
    leaf=$((leaf + 1))
  done
}

# A switch has no packet filters; some kernels run the machine's own on bridges, for every packet.
no_filters() {  # NAMESPACE
  ip netns exec "$1" sh -c 'for f in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -e "$f" ] || echo 0 > "$f"; done'
}

make_hosts() {  # NAME N RATE[:UPLINK/HOSTS]; 'set -e' does not hold in a condition, hence the chain
  name=$1 count=$2 rate=${3%%:*} bridge=br0 each=''
  suit_buckets "$count" "$rate"
  ip netns exec "$name-sw" ip link set lo up &&
    ip netns exec "$name-sw" ip link add br0 type bridge &&
    ip netns exec "$name-sw" ip link set br0 up &&
    no_filters "$name-sw" || return 1
  case $3 in
    *:*)
      uplink=${3#*:} each=${3##*/}
      make_leaves "$name" $(((count + each - 1) / each)) "${uplink%/*}" || return 1
      ;;
  esac
  k=1
  while [ "$k" -le "$count" ]; do
    h=$(host "$name" "$k")
    [ -z "$each" ] || bridge=leaf$(((k + each - 1) / each))
    ip netns add "$h" &&
      ip link add eth0 netns "$h" type veth peer name "p$k" netns "$name-sw" &&
      ip netns exec "$name-sw" ip link set "p$k" master "$bridge" up &&
      ip netns exec "$h" ip addr add "10.77.0.$k/24" dev eth0 &&
      ip netns exec "$h" ip link set eth0 up &&
      ip netns exec "$h" ip link set lo up &&
      plain_tcp "$h" && fair "$h" "$rate" &&
      shape "$h" eth0 "$rate" &&         # what leaves the host
      shape "$name-sw" "p$k" "$rate" 4 ||  # what reaches it: many senders share one receiver's wire
      return 1
    k=$((k + 1))
  done
}

is_rate() {  # RATE[:UPLINK/HOSTS]
  [ -n "$(bytes_per_second "${1%%:*}")" ] || return 1
  case $1 in
    *:*/*) tail=${1#*:} && [ -n "$(bytes_per_second "${tail%/*}")" ] && is_count "${tail##*/}" ;;
    *:*) return 1 ;;
  esac
}

up() {  # N [RATE]; sets `made`
  is_count "${1:-}" || die "how many hosts? 1 to 200"
  [ -z "${2:-}" ] || is_rate "$2" || die "rate '$2' is not like 1gbit, 100mbit or 1gbit:500mbit/4"
  command -v ip >/dev/null && command -v tc >/dev/null || skip "iproute2 is not installed"
  n=0
  while :; do
    made=$prefix-$$-$n
    if ip netns add "$made-sw" 2>/dev/null; then break; fi
    [ -e "/run/netns/$made-sw" ] || skip "network namespaces are not permitted"
    n=$((n + 1))
  done
  # A name may be made and yet be of no use (a container without the right to mount or to configure links).
  if ! make_hosts "$made" "$1" "${2:-}" >&2; then
    down "$made"
    skip "the network cannot be set up${2:+ with rate $2}"
  fi
}

spaces() { ip netns list 2>/dev/null | cut -d' ' -f1 | grep "^$1-" || true; }

down() {  # NAME
  case $1 in "$prefix"-[0-9]*) ;; *) die "'$1' is no name that 'up' gave" ;; esac
  for space in $(spaces "$1"); do
    pids=$(ip netns pids "$space" 2>/dev/null || true)
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
  done
  for space in $(spaces "$1"); do ip netns del "$space" 2>/dev/null || true; done
}

hosts_of() { spaces "$1" | grep -c -- '-h[0-9]*$' || true; }

# Replaces the shell by COMMAND inside host K, on its share of the processors.
enter() {  # K COMMAND...
  h=$(host "$SIBYL_HOSTS" "$1") hosts=$(hosts_of "$SIBYL_HOSTS") cpus=$(nproc --all) share=''
  [ "$hosts" -gt "$cpus" ] || share="taskset -c $((cpus * ($1 - 1) / hosts))-$((cpus * $1 / hosts - 1))"
  shift
  # A name of its own, so that Open MPI takes the hosts for different machines.
  # shellcheck disable=SC2086
  exec ip netns exec "$h" unshare --uts $share sh -c 'hostname "$1"; shift; exec "$@"' sh "$h" "$@"
}

# What mpirun calls in place of ssh: agent ADDRESS COMMAND...
agent() {
  address=$1
  shift
  enter "${address##*.}" sh -c "$*"
}

run() {
  [ -n "${SIBYL_HOSTS:-}" ] || die "run needs SIBYL_HOSTS: use 'with', or export what 'up' printed"
  count=$(hosts_of "$SIBYL_HOSTS")
  [ "$count" -gt 0 ] || die "$SIBYL_HOSTS is not up"
  ranks='' per_host='' options=''
  while [ $# -gt 0 ]; do
    case $1 in
      -np) ranks=$2; shift 2 ;;
      -per-host) per_host=$2; shift 2 ;;
      -mpi) options=$2; shift 2 ;;
      --) shift; break ;;
      *) die "run: '$1' is not known (did you forget -- before the program?)" ;;
    esac
  done
  [ $# -gt 0 ] || die "run what?"
  [ -n "$ranks" ] || ranks=$((count * ${per_host:-1}))
  [ -n "$per_host" ] || per_host=$(((ranks + count - 1) / count))
  is_count "$ranks" && is_count "$per_host" || die "-np and -per-host are counts"
  list='' k=1
  while [ "$k" -le "$count" ]; do
    list=$list${list:+,}10.77.0.$k:$per_host
    k=$((k + 1))
  done
  # --bind-to none: else each host's daemon, knowing nothing of the others, binds its rank to the same core. --prefix
  # is not needed: all hosts see one file system. Children of the agents inherit this environment, so no -x either.
  # shellcheck disable=SC2086
  export SIBYL_HOSTS OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  enter 1 mpirun --mca plm_rsh_agent "$self agent" --mca plm rsh --mca pml ob1 \
    --mca btl tcp,self,vader --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
    --mca mpi_yield_when_idle 1 --bind-to none --map-by slot --oversubscribe --host "$list" -np "$ranks" $options "$@"
}

with() {
  count=${1:-} rate=''
  [ $# -eq 0 ] || shift
  [ "${1:-}" = -- ] || { rate=${1:-}; [ $# -eq 0 ] || shift; }
  [ "${1:-}" = -- ] || die "with N [RATE] -- COMMAND..."
  shift
  [ $# -gt 0 ] || die "with: which command?"
  up "$count" "$rate"
  # In the background, for a shell that waits for a foreground command does not hear signals.
  child=
  trap '[ -z "$child" ] || kill "$child" 2>/dev/null || true; down "$made"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  SIBYL_HOSTS=$made
  export SIBYL_HOSTS
  status=0
  case $1 in
    run) shift; run "$@" <&0 & ;;
    *) "$@" <&0 & ;;
  esac
  child=$!
  wait "$child" || status=$?
  child=
  exit "$status"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
  with) with "$@" ;;
  up) up "$@"; echo "$made" ;;
  down) down "${1:-${SIBYL_HOSTS:?down needs a name}}" ;;
  list) ip netns list 2>/dev/null | sed -n "s/^\($prefix-[0-9-]*\)-sw.*/\1/p" ;;
  run) run "$@" ;;
  agent) agent "$@" ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$self" >&2; exit 2 ;;
esac
