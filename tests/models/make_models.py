"""Writes the ONNX files that tests import, exported by torch.onnx: make_models.py FOLDER.

Needs Debian's python3-torch and python3-torchvision; run with /usr/bin/python3. Weights are random. Files that are there
already are kept. NAME says how the file was made: MODEL_oOPSET_MODE[_bBATCH | _dynamic].onnx.
"""

import os
import sys
import warnings

import onnx
import torch
import torchvision
from torch import nn

TRAIN = torch.onnx.TrainingMode.TRAINING
EVAL = torch.onnx.TrainingMode.EVAL


class Block(nn.Module):
    """A GPT block as people write it: one projection for q, k, v; a causal mask from a buffer."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).bool().view(1, 1, length, length))

    def forward(self, x):
        b, s, e = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(e, dim=2)
        q, k, v = (t.view(b, s, self.heads, e // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / (e // self.heads) ** 0.5
        scores = scores.masked_fill(~self.mask[:, :, :s, :s], float("-inf")).softmax(-1)
        x = x + self.drop(self.proj((scores @ v).transpose(1, 2).contiguous().view(b, s, e)))
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    """Token and position embeddings, blocks, and a head tied to the token embedding."""

    def __init__(self, vocabulary=1000, width=64, heads=4, length=32, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads, length) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions(positions))))


class Encoder(nn.Module):
    """torch's own encoder layers, sequence first (nn.MultiheadAttention views tokens as S x B*H x D)."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 64, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.embed, self.head = nn.Linear(8, width), nn.Linear(width, 10)

    def forward(self, x):  # B, S, 8
        x = self.embed(x).transpose(0, 1)
        return self.head(self.encoder(x).transpose(0, 1).mean(1))


class PaddedEncoder(nn.Module):
    """Token ids with padding (id 0) masked; nn.TransformerEncoder's layers start as copies of one."""

    def __init__(self, vocabulary=100, width=32, heads=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 64, activation="gelu", batch_first=True)
        self.tokens, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids):
        return self.head(self.encoder(self.tokens(ids), src_key_padding_mask=ids == 0))


class Pooling(nn.Module):
    """Attention without a residual connection, from learned queries; the mean over them."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, 4, width))
        self.attention, self.norm = nn.MultiheadAttention(width, heads, batch_first=True), nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):  # B, S, width
        y, _ = self.attention(self.queries.expand(x.shape[0], -1, -1), x, x, need_weights=False)
        return self.head(self.norm(y).mean(1))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x = x.float()
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class LlamaBlock(nn.Module):
    """Grouped queries, rotary positions in halves or in pairs, a gated feed-forward."""

    def __init__(self, width, heads, kv_heads, pairs):
        super().__init__()
        self.heads, self.kv_heads, self.pairs = heads, kv_heads, pairs
        kv_width = width // heads * kv_heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, kv_width, bias=False), nn.Linear(width, kv_width, bias=False)
        self.gate, self.up = nn.Linear(width, 88, bias=False), nn.Linear(width, 88, bias=False)
        self.down = nn.Linear(88, width, bias=False)

    def turned(self, x, cos, sin):
        if self.pairs:
            a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
            return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
        low, high = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-high, low), -1) * sin

    def forward(self, x, cos, sin, mask):
        b, s, e = x.shape
        d, groups = e // self.heads, self.heads // self.kv_heads
        h = self.norm1(x)
        q = self.turned(self.q(h).view(b, s, self.heads, d).transpose(1, 2), cos, sin)
        k = self.turned(self.k(h).view(b, s, self.kv_heads, d).transpose(1, 2), cos, sin)
        v = self.v(h).view(b, s, self.kv_heads, d).transpose(1, 2)
        k, v = (t[:, :, None].expand(b, self.kv_heads, groups, s, d).reshape(b, self.heads, s, d) for t in (k, v))
        scores = q @ k.transpose(2, 3) / d**0.5 + mask
        scores = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(b, s, e))
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """Its mask and its tables of cosines and sines are buffers, which files do not tell from weights."""

    def __init__(self, vocabulary=100, width=32, heads=4, kv_heads=2, length=32, pairs=False):
        super().__init__()
        self.tokens, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary, bias=False)
        self.blocks = nn.ModuleList([LlamaBlock(width, heads, kv_heads, pairs) for _ in range(2)])
        self.norm = RmsNorm(width)
        d = width // heads
        angles = torch.outer(torch.arange(length).float(), 1e4 ** (-torch.arange(0, d, 2) / d))
        angles = angles if pairs else torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, ids):
        s = ids.shape[1]
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, self.cos[:s], self.sin[:s], self.mask[:s, :s])
        return self.head(self.norm(x))


class SmallCnn(nn.Module):
    """A convolutional net with what torchvision's do not have: Conv3d and 1-D, ConvTranspose, PReLU, GroupNorm, upsampling."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(4, 8)
        self.act = nn.PReLU(8)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.pool = nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True)
        self.c3 = nn.Conv3d(8, 4, (1, 3, 3), padding=(0, 1, 1))
        self.c1 = nn.Conv1d(4, 4, 5, padding=2)
        self.head = nn.Linear(4, 10)

    def forward(self, x):
        x = self.pool(self.up(self.act(self.norm(self.a(x)))))
        x = torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        x = torch.nn.functional.hardswish(self.c3(x.unsqueeze(2))).squeeze(2)
        x = torch.nn.functional.silu(self.c1(x.flatten(2)))
        return torch.log_softmax(self.head(x.mean(-1)), dim=1)


def small_vit():
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=10)


def image(batch, size):
    return torch.randn(batch, 3, size, size)


def without_weights(path):
    """Large initializers become external data that is not there: smaller files, and importers must not miss it."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > 4096:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights.bin")
    onnx.save(model, path)


KEPT = "resnet18_o13"  # this one keeps its weights inside
CASES = [
    # model, maker, example, opset, training, batch, dynamic
    *[("resnet18", torchvision.models.resnet18, lambda b: image(b, 64), opset, training, batch, dynamic)
      for opset, training, batch, dynamic in [
          (9, EVAL, 1, False), (11, TRAIN, 2, False), (13, TRAIN, 1, True), (16, EVAL, 4, True), (17, TRAIN, 2, True)]],
    ("mobilenet_v2", torchvision.models.mobilenet_v2, lambda b: image(b, 64), 13, TRAIN, 2, False),
    ("mobilenet_v2", torchvision.models.mobilenet_v2, lambda b: image(b, 64), 9, EVAL, 1, True),
    ("mobilenet_v3", torchvision.models.mobilenet_v3_small, lambda b: image(b, 64), 14, TRAIN, 2, True),
    ("densenet121", torchvision.models.densenet121, lambda b: image(b, 64), 11, TRAIN, 2, False),
    ("densenet121", torchvision.models.densenet121, lambda b: image(b, 64), 17, EVAL, 1, True),
    ("shufflenet", torchvision.models.shufflenet_v2_x0_5, lambda b: image(b, 64), 13, TRAIN, 1, False),
    *[("vit", small_vit, lambda b: image(b, 32), opset, training, batch, dynamic)
      for opset, training, batch, dynamic in [
          (13, EVAL, 1, False), (14, TRAIN, 8, False), (16, TRAIN, 2, True), (17, EVAL, 1, True)]],
    *[("gpt", Gpt, lambda b: torch.randint(0, 1000, (b, 16)), opset, training, batch, dynamic)
      for opset, training, batch, dynamic in [
          (11, TRAIN, 1, False), (13, TRAIN, 2, True), (16, EVAL, 1, True), (17, TRAIN, 8, False)]],
    *[("encoder", Encoder, lambda b: torch.randn(b, 6, 8), opset, training, batch, dynamic)
      for opset, training, batch, dynamic in [(13, TRAIN, 1, False), (16, TRAIN, 2, True), (17, TRAIN, 4, False)]],
    *[("padded", PaddedEncoder, lambda b: torch.randint(1, 100, (b, 16)), opset, training, batch, dynamic)
      for opset, training, batch, dynamic in [(9, TRAIN, 1, False), (13, TRAIN, 2, False), (17, EVAL, 2, True)]],
    *[("pooling", Pooling, lambda b: torch.randn(b, 16, 32), opset, training, batch, dynamic)
      for opset, training, batch, dynamic in [(11, TRAIN, 1, False), (13, EVAL, 1, False), (17, TRAIN, 2, True)]],
    *[(name, maker, lambda b: torch.randint(0, 100, (b, 16)), opset, training, batch, dynamic)
      for name, maker, opset, training, batch, dynamic in [
          ("llama", Llama, 11, TRAIN, 1, False), ("llama", Llama, 13, EVAL, 2, True), ("llama", Llama, 17, TRAIN, 2, True),
          ("llama_pairs", lambda: Llama(pairs=True), 11, EVAL, 1, False),
          ("llama_pairs", lambda: Llama(pairs=True), 17, TRAIN, 2, True)]],
    *[("cnn", SmallCnn, lambda b: image(b, 16), opset, training, batch, dynamic)
      for opset, training, batch, dynamic in [(11, TRAIN, 1, False), (14, TRAIN, 2, True), (17, EVAL, 1, False)]],
]


def main(folder):
    warnings.filterwarnings("ignore")
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    for name, maker, example, opset, training, batch, dynamic in CASES:
        mode = "train" if training == TRAIN else "eval"
        tail = "dynamic" if dynamic else f"b{batch}"
        path = os.path.join(folder, f"{name}_o{opset}_{mode}_{tail}.onnx")
        if os.path.exists(path):
            continue
        axes = {}
        if dynamic:
            axes = {"input": {0: "batch", 1: "seq"} if name == "gpt" else {0: "batch"}, "output": {0: "batch"}}
        model = maker().train(training == TRAIN)
        torch.onnx.export(model, example(batch), path + ".part", opset_version=opset, training=training,
                          input_names=["input"], output_names=["output"], dynamic_axes=axes,
                          do_constant_folding=training == EVAL)
        if not os.path.basename(path).startswith(KEPT):
            without_weights(path + ".part")
        os.replace(path + ".part", path)


if __name__ == "__main__":
    main(sys.argv[1])
