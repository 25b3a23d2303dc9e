"""What the programs here share: how a process readies itself to train, and how it finds the others.

Ranks are started by mpirun (which only starts them), srun or torchrun; the first one's address stands in MASTER_ADDR, this machine's
unless given. Gloo talks through the interface that GLOO_SOCKET_IFNAME names.
"""

import ctypes
import os
import statistics
import sys


def refuse(message):
    """A mistake in the command line or the set-up: one line, exit code 2."""
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(2)


try:
    import torch
    import torch.distributed as dist
except ImportError:
    print("PyTorch is not installed for this Python: Debian has it as python3-torch, for /usr/bin/python3", file=sys.stderr)
    sys.exit(77)
if not (dist.is_available() and dist.is_gloo_available()):
    print(f"this PyTorch ({torch.__version__}) was built without Gloo", file=sys.stderr)
    sys.exit(77)


def placement():
    """(rank, ranks, ranks on this node), as whatever started this process says."""
    for rank, size, local in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"),
    ):
        if rank in os.environ:
            ranks = int(os.environ[size])
            return int(os.environ[rank]), ranks, int(os.environ.get(local, ranks))
    return 0, 1, 1


def ask_for_huge_pages():
    """malloc's memory lies in huge pages where the kernel gives them to who asks (aten/runtime.h): glibc reads this as a process starts."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            for_who_asks = "[madvise]" in file.read()
    except OSError:
        for_who_asks = False
    if for_who_asks and "glibc.malloc.hugetlb" not in tunables:
        os.environ["GLIBC_TUNABLES"] = ":".join(filter(None, (tunables, "glibc.malloc.hugetlb=1")))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def prepare(threads, keep_memory=True):
    """The same settings of the process that Sibyl's own programs calibrate and train with (aten/runtime.h).

    keep_memory: malloc gives nothing back to the system, so that steady steps do not page-fault; by default glibc maps and
    unmaps every large tensor anew.
    """
    mmap_max, trim_threshold, top_pad = -4, -1, -2
    if keep_memory:
        ask_for_huge_pages()
        libc = ctypes.CDLL(None)
        for parameter, value in ((mmap_max, 0), (trim_threshold, -1), (top_pad, 64 << 20)):
            libc.mallopt(parameter, value)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


def join():
    """Makes the process group of all ranks. Returns (rank, ranks, nodes)."""
    rank, ranks, local = placement()
    nodes = max(1, ranks // max(1, local))
    address = os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29400")
    if address == "127.0.0.1":
        if nodes > 1:
            refuse("these are several nodes: say in MASTER_ADDR where the first one is")
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    return rank, ranks, nodes


def over_ranks(values, operation):
    result = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(result, operation)
    return result.tolist()


def leave():
    """Ends this process once all ranks have come here. Python's own end takes PyTorch down while Gloo's threads still
    run, and now and then aborts for it ("terminate called without an active exception")."""
    dist.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def slowest(values):
    """Element by element, the largest over ranks."""
    return over_ranks(values, dist.ReduceOp.MAX)


def quickest(values):
    """Element by element, the smallest over ranks."""
    return over_ranks(values, dist.ReduceOp.MIN)


def median_and_spread(values):
    """The median, and 1.4826 times the median distance from it, over it: of one rank's messages, which take nothing, 0."""
    middle = statistics.median(values)
    return middle, 1.4826 * statistics.median(abs(v - middle) for v in values) / middle if middle else 0.0


def bytes_out(interface):
    """That left through a network interface of this host, all headers included; None where it cannot be told."""
    try:
        with open("/proc/self/net/dev", encoding="ascii") as table:
            for line in table:
                name, _, counts = line.partition(":")
                if name.strip() == interface:
                    return int(counts.split()[8])
    except OSError:
        pass
    return None
