#!/usr/bin/python3
"""What eager PyTorch costs its host for each operation of a training step.

    tools/host_dispatch.py [--steps N]        needs python3-torch

A GPU's host has to issue every operation, and a small kernel is over before the next one comes. What the host takes is
measured without a GPU: layers of a transformer and of a residual network, written as such models are, on tensors so
small that nearly all of the time goes into Python, the dispatcher and autograd. What a CPU then computes stands for the
launch of a CUDA kernel, which takes as long (1 to 3 us). Operations are counted as Sibyl counts them.

Prints the median over steps of forward and backward, for each operation. calibration/convert/devices.py has the figures
that shipped devices take."""
import argparse
import statistics
import time

import torch
from torch import nn


class Layer(nn.Module):
    """A GPT-2 layer with its attention's operations apart."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act = nn.GELU()
        self.drop_scores, self.drop_1, self.drop_2 = nn.Dropout(0.1), nn.Dropout(0.1), nn.Dropout(0.1)

    # layer norm, linear, product, scale, mask, softmax, dropout, product, linear, dropout, add,
    # layer norm, linear, GELU, linear, dropout, add
    count = 17

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(batch, length, self.heads, -1).transpose(1, 2).chunk(3, -1)
        scores = torch.matmul(q, k.transpose(-1, -2)) / 4.0
        scores = scores.masked_fill(mask, -1e4)
        mixed = torch.matmul(self.drop_scores(torch.softmax(scores, -1)), v)
        x = x + self.drop_1(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop_2(self.down(self.act(self.up(self.norm_2(x)))))


class Block(nn.Module):
    """A bottleneck of ResNet-50 without its shortcut's convolution."""

    # 3 convolutions, 3 batch-norms, 3 ReLUs, add
    count = 10

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv3 = nn.Conv2d(channels, channels, 1, bias=False)
        self.bn1, self.bn2, self.bn3 = (nn.BatchNorm2d(channels) for _ in range(3))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + x)


class Stack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, *more):
        for layer in self.layers:
            x = layer(x, *more)
        return x


def medians(model, inputs, steps):
    forward, backward = [], []
    for step in range(steps + 5):
        model.zero_grad(set_to_none=True)
        start = time.perf_counter()
        result = model(*inputs)
        middle = time.perf_counter()
        result.backward(torch.ones_like(result))
        end = time.perf_counter()
        if step >= 5:
            forward.append(middle - start)
            backward.append(end - middle)
    return statistics.median(forward), statistics.median(backward)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=50)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    layers = 24
    words = Stack([Layer(16, 2) for _ in range(layers)])
    mask = torch.zeros(1, 1, 4, 4, dtype=torch.bool)
    images = Stack([Block(4) for _ in range(layers)])
    print(f"PyTorch {torch.__version__}")
    for name, model, inputs, count in (
        ("transformer", words, (torch.rand(1, 4, 16), mask), Layer.count),
        ("residual network", images, (torch.rand(1, 4, 4, 4),), Block.count),
    ):
        forward, backward = medians(model, inputs, steps)
        each = 1e6 / (layers * count)
        print(f"{name}: {forward * each:.1f} us forward, {backward * each:.1f} us backward for each operation")


if __name__ == "__main__":
    main()
