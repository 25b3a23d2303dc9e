#!/usr/bin/python3
"""What eager PyTorch costs its host for each operation of a training step.

    tools/host_dispatch.py [--steps N]        needs python3-torch

A GPU's host has to issue every operation, and a small kernel is over before the next one comes. What the host takes is
measured without a GPU: layers of a transformer and of a residual network, written as such models are, on tensors so
small that nearly all of the time goes into Python, the dispatcher and autograd. What a CPU then computes stands for the
launch of a CUDA kernel. Operations are counted as Sibyl counts them.

A layer as Megatron-LM ran it until 2022 is timed, too: checkpointed, so that forward runs twice, with functions of its
own around what ranks exchange, around layer norms and softmax, scripted functions for bias, GELU, dropout and addition,
and states of the random generator saved, restored and forked. It is written after the descriptions of those releases; one
rank, so nothing is exchanged.

Prints the median over steps of forward and backward, for each operation: the least that a host takes. Hosts of GPUs take
several times as long (docs/models/step.md), and shipped devices have what those were published to take."""
import argparse
import contextlib
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


class FusedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        y, mean, rstd = torch.native_layer_norm(x, weight.shape, weight, bias, 1e-5)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, weight, bias, mean, rstd = ctx.saved_tensors
        return torch.ops.aten.native_layer_norm_backward(
            gradient.contiguous(), x, weight.shape, mean, rstd, weight, bias, [True, True, True])


class MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, scale):
        y = torch.softmax(scores * scale.item(), -1)
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, scale = ctx.saved_tensors
        return torch._softmax_backward_data(gradient, y, -1, y.dtype), None


class Copied(torch.autograd.Function):
    """Where a rank's part begins: gradients would be summed over ranks."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Reduced(Copied):
    """Where it ends: results would be."""


@torch.jit.script
def gelu_of_sum(bias, y):
    x = bias + y
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


@torch.jit.script
def gelu_of_sum_backward(gradient, bias, y):
    x = bias + y
    t = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
    return gradient * (0.5 * x * ((1 - t * t) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + t))


@torch.jit.script
def sum_dropped_added(x, bias, residual, ratio: float):
    return residual + torch.nn.functional.dropout(x + bias, p=ratio, training=True)


class GeluOfSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, bias):
        ctx.save_for_backward(y, bias)
        return gelu_of_sum(bias, y)

    @staticmethod
    def backward(ctx, gradient):
        y, bias = ctx.saved_tensors
        result = gelu_of_sum_backward(gradient, bias, y)
        return result, result


class RandomStates:
    """Ranks that share a layer draw different numbers for what they split."""

    def __init__(self):
        self.states = {"ranks": torch.get_rng_state()}

    def all(self):
        return dict(self.states)

    @contextlib.contextmanager
    def fork(self):
        outside = torch.get_rng_state()
        torch.set_rng_state(self.states["ranks"])
        try:
            yield
        finally:
            self.states["ranks"] = torch.get_rng_state()
            torch.set_rng_state(outside)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return FusedNorm.apply(x, self.weight, self.bias)


class ColumnLinear(nn.Module):
    def __init__(self, width, features, leaves_bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features, width))
        self.bias = nn.Parameter(torch.zeros(features))
        self.leaves_bias = leaves_bias

    def forward(self, x):
        y = nn.functional.linear(Copied.apply(x), self.weight, None if self.leaves_bias else self.bias)
        return y, self.bias if self.leaves_bias else None


class RowLinear(nn.Module):
    def __init__(self, width, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features, width))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return Reduced.apply(nn.functional.linear(x, self.weight)), self.bias


class MegatronAttention(nn.Module):
    def __init__(self, width, heads, states):
        super().__init__()
        self.heads, self.states = heads, states
        self.qkv, self.out = ColumnLinear(width, 3 * width), RowLinear(width, width)
        self.drop = nn.Dropout(0.1)
        self.scale = torch.tensor(0.25)

    def forward(self, x):
        length, batch, width = x.shape
        mixed, _ = self.qkv(x)
        mixed = mixed.view(length, batch, self.heads, -1)
        q, k, v = torch.split(mixed, mixed.shape[-1] // 3, dim=-1)
        rows = batch * self.heads
        q, k = q.reshape(length, rows, -1), k.reshape(length, rows, -1)
        space = torch.empty(rows, length, length, dtype=q.dtype)
        scores = torch.baddbmm(space, q.transpose(0, 1), k.transpose(0, 1).transpose(1, 2), beta=0.0, alpha=0.25)
        shares = MaskedSoftmax.apply(scores.view(batch, self.heads, length, length), self.scale)
        with self.states.fork():
            shares = self.drop(shares)
        v = v.reshape(length, rows, -1)
        context = torch.bmm(shares.view(rows, length, length), v.transpose(0, 1))
        context = context.view(batch, self.heads, length, -1).permute(2, 0, 1, 3).contiguous()
        return self.out(context.view(length, batch, width))


class MegatronPerceptron(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = ColumnLinear(width, 4 * width, leaves_bias=True), RowLinear(4 * width, width)

    def forward(self, x):
        y, bias = self.up(x)
        return self.down(GeluOfSum.apply(y, bias))


class MegatronLayer(nn.Module):
    def __init__(self, width, heads, states):
        super().__init__()
        self.norm_1, self.norm_2 = Norm(width), Norm(width)
        self.attention, self.perceptron = MegatronAttention(width, heads, states), MegatronPerceptron(width)

    # layer norm, linear, product, softmax, dropout, product, transposition, linear, dropout, add,
    # layer norm, linear, GELU, linear, dropout, add
    count = 16

    def forward(self, x):
        y, bias = self.attention(self.norm_1(x))
        with torch.enable_grad():
            x = sum_dropped_added(y, bias.expand_as(x), x, 0.1)
        y, bias = self.perceptron(self.norm_2(x))
        with torch.enable_grad():
            return sum_dropped_added(y, bias.expand_as(x), x, 0.1)


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layer, states, x):
        ctx.layer, ctx.states = layer, states
        # The host's generator, the device's and the tracker's.
        ctx.saved = torch.get_rng_state(), torch.get_rng_state(), states.all()
        with torch.no_grad():
            y = layer(x)
        ctx.save_for_backward(x)
        return y.detach()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        now = torch.get_rng_state(), torch.get_rng_state(), ctx.states.all()
        torch.set_rng_state(ctx.saved[0]), torch.set_rng_state(ctx.saved[1])
        ctx.states.states = ctx.saved[2]
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            y = ctx.layer(x)
        torch.set_rng_state(now[0]), torch.set_rng_state(now[1])
        ctx.states.states = now[2]
        torch.autograd.backward((y,), (gradient,))
        return None, None, x.grad


class MegatronStack(nn.Module):
    def __init__(self, layers, width, heads):
        super().__init__()
        self.states = RandomStates()
        self.layers = nn.ModuleList(MegatronLayer(width, heads, self.states) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = Checkpoint.apply(layer, self.states, x)
        return x


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
    megatron = MegatronStack(layers, 16, 2)
    forward, backward = medians(megatron, (torch.rand(4, 1, 16, requires_grad=True),), steps)
    each = 1e6 / (layers * 3 * MegatronLayer.count)  # forward, forward again, backward
    print(f"checkpointed layer of Megatron-LM: {(forward + backward) * each:.1f} us for each operation of three passes, "
          f"{1e3 * (forward + backward) / layers:.2f} ms a layer")


if __name__ == "__main__":
    main()
