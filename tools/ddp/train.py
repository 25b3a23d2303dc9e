#!/usr/bin/python3
"""Trains a torchvision model as PyTorch users do, on each rank a replica in DistributedDataParallel, and measures its steps.

    mpirun -np 2 /usr/bin/python3 tools/ddp/train.py out/resnet18.onnx --devices 2 --batch 4/device --json

MODEL.onnx names the model: torchvision's MODEL, which export.py wrote there. Takes the options and prints the JSON of
`sibyl-train` (docs/trainer.md) as far as DistributedDataParallel has the same, so that `sibyl validate --trainer` can run it.
Nothing here is Sibyl's: model, autograd, buckets, Gloo, optimizer are PyTorch's.
"""

import argparse
import json
import math
import os
import pathlib
import sys
import time

import ranks
import torch
import torchvision
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel


def parse(words):
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("model", help="MODEL.onnx, or the name alone")
    p.add_argument("--devices", type=int, help="ranks; as many as processes were started unless given")
    p.add_argument("--batch", default="32/device", help="N samples over all ranks, or N/device")
    p.add_argument("--optimizer", default="sgd", choices=["sgd", "momentum", "adam", "adamw"])
    p.add_argument("--lr", type=float, default=0.0001)
    p.add_argument("--bucket", default="25MiB", help="bucket_cap_mb, as 25MiB")
    p.add_argument("--compress", default="none", choices=["none", "fp16"], help="Gloo sums no bf16")
    p.add_argument("--framework", default="pytorch-ddp", choices=["pytorch-ddp"])
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--log-every", type=int, default=0)
    p.add_argument("--image", type=int, default=224, help="pixels of a side")
    p.add_argument("--malloc", default="keep", choices=["keep", "default"], help="default: as Python starts")
    p.add_argument("--json", action="store_true")
    options = p.parse_args(words)
    options.bucket_mib = bucket_mib(options.bucket)
    return options

def local_batch(text, size):
    samples, _, of = text.partition("/")
    if not samples.isdigit() or of not in ("", "device"):
        ranks.refuse(f"--batch: '{text}' is not N or N/device")
    if of == "device":
        return int(samples)
    if int(samples) % size:
        ranks.refuse(f"--batch: {samples} samples cannot be divided over {size} ranks")
    return int(samples) // size

def bucket_mib(text):
    if not text.endswith("MiB") or not text[:-3].replace(".", "", 1).isdigit():
        ranks.refuse(f"--bucket: '{text}' is not like 25MiB")
    return float(text[:-3])

def optimizer_of(name, parameters, lr):
    if name in ("sgd", "momentum"):
        return torch.optim.SGD(parameters, lr=lr, momentum=0.9 if name == "momentum" else 0.0)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name](parameters, lr=lr)

def model_named(text):
    name = pathlib.Path(text).stem
    builder = getattr(torchvision.models, name, None)
    if builder is None or not callable(builder) or not name.islower():
        ranks.refuse(f"torchvision has no model '{name}'")
    return builder()

class Trainer:
    """A model, its data and its optimizer; `step` is one training step with the times at which its parts end."""

    def __init__(self, module, batch, options, size):
        self.loss = torch.nn.CrossEntropyLoss()
        self.images = (torch.rand(batch, 3, options.image, options.image) * 2 - 1) * math.sqrt(3)  # variance 1
        self.targets = torch.randint(1000, (batch,))
        self.last_gradient = 0.0
        self.distributed = size > 1
        # Backward ends with the first layer; what follows are messages still on their way.
        next(module.parameters()).register_hook(self.note_gradient)
        self.model = module
        if self.distributed:
            self.model = DistributedDataParallel(module, bucket_cap_mb=options.bucket_mib)
            if options.compress == "fp16":
                self.model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        self.optimizer = optimizer_of(options.optimizer, self.model.parameters(), options.lr)

    def note_gradient(self, _):
        self.last_gradient = time.perf_counter()

    def step(self):
        begin = time.perf_counter()
        loss = self.loss(self.model(self.images), self.targets)
        forward = time.perf_counter()
        loss.backward()
        backward = time.perf_counter()
        self.optimizer.step()
        end = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        computed = self.last_gradient if self.distributed else backward
        return loss.detach(), (end - begin, forward - begin, computed - forward, backward - computed, end - backward)

    def bucket_bytes(self):
        """Of the buckets that DistributedDataParallel made after the first step, in the order in which they are sent."""
        if not self.distributed:
            return []
        told = self.model._get_ddp_logging_data()
        sizes = told.get("rebuilt_bucket_sizes") or told["bucket_sizes"]
        return [int(size) for size in str(sizes).split(",")]

def run(options):
    rank, size, _ = ranks.join()
    if options.devices not in (None, size):
        ranks.refuse(f"--devices {options.devices}, but {size} processes were started")
    torch.manual_seed(options.seed)  # equal weights; DistributedDataParallel makes sure of it, too
    module = model_named(options.model).train()
    torch.manual_seed(options.seed + 1 + rank)
    trainer = Trainer(module, local_batch(options.batch, size), options, size)
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "")
    losses, times = [], []
    for number in range(options.warmup + options.steps):
        if number == options.warmup:
            sent = ranks.bytes_out(interface)
        loss, parts = trainer.step()
        losses.append(loss)
        if number >= options.warmup:
            times.append(parts)
        if options.log_every and rank == 0 and number % options.log_every == 0:
            print(f"step {number + 1}: loss {loss.item():.4f}, {parts[0] * 1e3:.1f} ms", file=sys.stderr)
    left = ranks.bytes_out(interface)
    losses = [loss.item() for loss in losses]
    if not all(math.isfinite(loss) for loss in losses):
        ranks.refuse("a loss is no number: give a smaller --lr, for times of such steps mean nothing")
    columns = list(zip(*(ranks.slowest(parts) for parts in times)))
    middle = [ranks.median_and_spread(column)[0] for column in columns]
    result = {
        "device": f"PyTorch {torch.__version__}, DistributedDataParallel over Gloo",
        "ranks": size,
        "steps": options.steps,
        "step_time_s": middle[0],
        "step_time_spread": ranks.median_and_spread(columns[0])[1],
        "step_times_s": list(columns[0]),
        "breakdown_s": {
            "forward": middle[1],
            "backward": middle[2],
            "communication_exposed": middle[3],
            "optimizer": middle[4],
        },
        "bucket_bytes": trainer.bucket_bytes(),
        "wire_bytes_per_step": None if None in (sent, left) else (left - sent) / options.steps,
        "losses": losses,
    }
    if rank == 0:
        if options.json:
            print(json.dumps(result))
        else:
            print(f"{middle[0] * 1e3:.1f} ms a step ({result['step_time_spread'] * 100:.1f} %), buckets {result['bucket_bytes']}")
    ranks.leave()

if __name__ == "__main__":
    chosen = parse(sys.argv[1:])
    ranks.prepare(chosen.threads, chosen.malloc == "keep")
    run(chosen)
