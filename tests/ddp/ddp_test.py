#!/usr/bin/python3
"""That what tools/ddp runs is what Sibyl predicts as pytorch-ddp: the same buckets, the same bytes, summed gradients.

    ddp_test.py SIBYL_BINARY SOURCE_FOLDER [WORKER]

Nothing here is timed. Exit code 77 (skipped) without python3-torch and python3-torchvision, or where they lack Gloo.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[2])
tools = source / "tools" / "ddp"
sys.path.insert(0, str(tools))
import ranks  # leaves with 77 where there is no Gloo  # noqa: E402

try:
    import torchvision  # noqa: F401
except ImportError:
    print("skipped: torchvision is not installed (python3-torchvision)")
    sys.exit(77)
import torch  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 300), torch.nn.ReLU(),
        torch.nn.Linear(300, 10),
    )


def steps(model, images, targets):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        torch.nn.functional.cross_entropy(model(images), targets).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def worker():
    """Three steps of two replicas give the weights of one on the whole batch, to rounding."""
    rank, size, _ = ranks.join()
    torch.manual_seed(2)
    images, targets = torch.randn(8, 3, 8, 8), torch.randint(10, (8,))
    serial, replica = network(), network()
    steps(serial, images, targets)
    own = slice(rank * 8 // size, (rank + 1) * 8 // size)
    steps(DistributedDataParallel(replica), images[own], targets[own])
    worst = max(
        ((a - b).abs().max() / a.abs().max()).item() for a, b in zip(serial.parameters(), replica.parameters())
    )
    start = network()
    moved = max((a - b).abs().max().item() for a, b in zip(serial.parameters(), start.parameters()))
    print(json.dumps({"rank": rank, "worst": worst, "moved": moved}))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def two_ranks(command):
    """What each of two processes on this machine prints."""
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
                   "LOCAL_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
    for name in list(environment):
        if name.startswith(("OMPI_", "SLURM_")):
            del environment[name]
    running = [
        subprocess.Popen(command, env={**environment, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=240)[0] for process in running]
    assert all(process.returncode == 0 for process in running), f"{command} failed"
    return outputs


def predicted(sibyl, model, batch, *options):
    command = [sibyl, "predict", model, "--cluster", "ethernet-100g", "--devices", "2", "--batch", f"{batch}/device",
               "--framework", "pytorch-ddp", "--json", *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["plan"]


def check(what, condition):
    print(("ok    " if condition else "FAILED ") + what)
    return condition


def gradients_are_summed():
    results = [json.loads(text) for text in two_ranks([sys.executable, *sys.argv[:3], "worker"])]
    good = all(r["worst"] < 1e-5 and r["moved"] > 1e-2 for r in results)
    return check(f"two replicas hold the serial weights after three steps ({results[0]['worst']:.1e})", good)


def buckets_are_the_plans(sibyl, folder, name):
    subprocess.run([sys.executable, tools / "export.py", folder, name], check=True)
    model = str(pathlib.Path(folder) / f"{name}.onnx")
    plan = predicted(sibyl, model, 1)
    told = two_ranks([sys.executable, str(tools / "train.py"), model, "--batch", "1/device", "--image", "64", "--steps", "1",
                      "--warmup", "2", "--json"])[0]
    made = json.loads(told)["bucket_bytes"]
    return check(f"{name}: buckets of {made} B, predicted {plan['bucket_bytes']}", made == plan["bucket_bytes"])


def bytes_are_the_plans(sibyl, folder, name, *options):
    """Of both ranks, who send through one interface. Headers are some per mille more."""
    model = str(pathlib.Path(folder) / f"{name}.onnx")
    plan = predicted(sibyl, model, 1, *options)["bytes_sent"]
    told = two_ranks([sys.executable, str(tools / "train.py"), model, "--batch", "1/device", "--image", "64", "--steps", "2",
                      "--warmup", "2", "--json", *options])[0]
    told = json.loads(told)
    expected, wire = 2 * plan["gradients"] + plan["parameters"], told["wire_bytes_per_step"]
    if wire is None:
        return check(f"{name} {options}: skipped, the interface does not count", True)
    good = 1 <= wire / expected < 1.01
    return check(f"{name} {options}: {wire:.0f} B on the wire, predicted {expected}, buckets {told['bucket_bytes']}", good)


def one_rank_trains():
    """A replica alone exchanges nothing, and so waits for nothing."""
    told = subprocess.run([sys.executable, str(tools / "train.py"), "resnet18", "--batch", "1/device", "--image", "64", "--steps", "1",
                           "--warmup", "1", "--json"], check=True, capture_output=True, text=True).stdout
    told = json.loads(told)
    waited = told["breakdown_s"]["communication_exposed"]
    return check(f"one rank: {told['ranks']}, waits for {waited} s", told["ranks"] == 1 and waited == 0 and told["step_time_s"] > 0)


def options_are_refused():
    bad = [["none.onnx"], ["resnet18", "--batch", "3x"], ["resnet18", "--bucket", "25"], ["resnet18", "--zero", "1"],
           ["resnet18", "--compress", "1bit"]]
    codes = [subprocess.run([sys.executable, str(tools / "train.py"), *words], stderr=subprocess.DEVNULL).returncode
             for words in bad]
    return check(f"what cannot be run is refused {codes}", codes == [2] * len(bad))


def on_a_host_of_its_own():
    """This very test where nobody else's bytes are counted with its own, if that is permitted."""
    alone = ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && "$@"', "-"]
    if "ALONE" in os.environ or subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return
    os.environ["ALONE"] = "1"
    os.execvp(alone[0], [*alone, sys.executable, *sys.argv])


def main():
    on_a_host_of_its_own()
    with tempfile.TemporaryDirectory() as folder:
        results = [
            gradients_are_summed(),
            buckets_are_the_plans(sys.argv[1], folder, "resnet18"),
            buckets_are_the_plans(sys.argv[1], folder, "mobilenet_v2"),
            bytes_are_the_plans(sys.argv[1], folder, "resnet18"),
            bytes_are_the_plans(sys.argv[1], folder, "resnet18", "--compress", "fp16"),
            one_rank_trains(),
            options_are_refused(),
        ]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    worker() if sys.argv[3:] == ["worker"] else main()
