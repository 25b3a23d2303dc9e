#include <algorithm>
#include <array>
#include <cmath>

#include "calibration/program/wanted.h"

namespace sibyl {
namespace {

using Keys = std::vector<KernelKey>;

// One kernel's forward, and its backward if it has one.
void add(Keys& keys, const Attributes& attributes, std::vector<Shape> inputs, Shape output, std::uint32_t gradients) {
  const Signature signature{attributes, std::move(inputs), {std::move(output)}, DType::f32};
  keys.push_back({signature, Pass::forward, 0});
  if (gradients != 0) keys.push_back({signature, Pass::backward, gradients});
}

struct ConvolutionShape {
  std::int64_t channels, filters, extent, kernel, stride, groups;
};

// Layers as ResNets, VGG, MobileNets and Inception have them, from stem to head.
constexpr std::array convolution_shapes{
    ConvolutionShape{64, 64, 56, 3, 1, 1},    ConvolutionShape{3, 64, 224, 7, 2, 1},
    ConvolutionShape{256, 64, 56, 1, 1, 1},   ConvolutionShape{512, 512, 7, 3, 1, 1},
    ConvolutionShape{96, 96, 56, 3, 1, 96},   ConvolutionShape{128, 128, 28, 3, 1, 1},
    ConvolutionShape{1024, 256, 14, 1, 1, 1}, ConvolutionShape{576, 576, 14, 3, 1, 576},
    ConvolutionShape{256, 256, 14, 3, 1, 1},  ConvolutionShape{64, 256, 56, 1, 1, 1},
    ConvolutionShape{128, 128, 56, 3, 2, 1},  ConvolutionShape{512, 2048, 7, 1, 1, 1},
    ConvolutionShape{64, 192, 27, 5, 1, 1},   ConvolutionShape{144, 144, 56, 3, 2, 144},
    ConvolutionShape{256, 512, 56, 1, 2, 1},  ConvolutionShape{64, 64, 224, 3, 1, 1},
    ConvolutionShape{16, 32, 32, 3, 1, 1},    ConvolutionShape{1, 16, 28, 3, 1, 1},
};

Keys convolutions(const std::vector<std::int64_t>& batches) {
  Keys keys;
  for (const std::int64_t batch : batches)
    for (const ConvolutionShape& c : convolution_shapes) {
      const std::int64_t pad = c.kernel / 2, out = (c.extent + 2 * pad - c.kernel) / c.stride + 1;
      Convolution op;
      op.kernel = {c.kernel, c.kernel}, op.stride = {c.stride, c.stride}, op.dilation = {1, 1};
      op.pad_begin = op.pad_end = {pad, pad}, op.groups = c.groups;
      add(keys, op, {{batch, c.channels, c.extent, c.extent}, {c.filters, c.channels / c.groups, c.kernel, c.kernel}},
          {batch, c.filters, out, out}, c.channels <= 3 ? 2 : 3);
    }
  return keys;
}

Keys linears(const std::vector<std::int64_t>& batches) {
  Keys keys;
  for (const std::int64_t batch : batches)
    for (const std::int64_t sequence : {128, 1})
      for (const auto& [in, out] :
           {std::pair{768, 3072}, {3072, 768}, {768, 768}, {2048, 1000}, {256, 256}, {4096, 4096}})
        add(keys, Linear{}, {{batch, sequence, in}, {out, in}, {out}}, {batch, sequence, out}, 7);
  return keys;
}

Keys attentions(const std::vector<std::int64_t>& batches) {
  Keys keys;
  for (const std::int64_t batch : batches)
    for (const std::int64_t sequence : {128, 64, 256, 512}) {
      const Shape heads{batch, 12, sequence, 64};
      add(keys, Attention{.causal = false, .scale = 0.125}, {heads, heads, heads}, heads, 7);
      add(keys, MatMul{}, {heads, {batch, 12, 64, sequence}}, {batch, 12, sequence, sequence}, 3);
      add(keys, Softmax{.axis = 3}, {{batch, 12, sequence, sequence}}, {batch, 12, sequence, sequence}, 1);
    }
  return keys;
}

// Tensors of 4^k Ki elements, as images and as tokens.
std::vector<Shape> images(SweepSize size) {
  std::vector<Shape> shapes{{8, 64, 56, 56}, {1, 64, 28, 28}, {8, 256, 14, 14}, {1, 512, 7, 7}, {32, 64, 56, 56}};
  if (size == SweepSize::full)
    shapes.insert(shapes.end(), {{1, 16, 14, 14}, {32, 256, 56, 56}, {8, 2048, 7, 7}, {4, 3, 224, 224}});
  return shapes;
}
std::vector<Shape> tokens(SweepSize size) {
  std::vector<Shape> shapes{{8, 128, 768}, {1, 128, 768}, {8, 512, 768}, {1, 32, 256}};
  if (size == SweepSize::full) shapes.insert(shapes.end(), {{4, 1024, 1024}, {8, 128, 3072}, {32, 128, 768}});
  return shapes;
}

Keys image_operations(SweepSize size) {
  Keys keys;
  for (const Shape& x : images(size)) {
    const Shape channel{x[1]};
    add(keys, Normalization{}, {x, channel, channel, channel, channel}, x, 7);
    add(keys, Unary{}, {x}, x, 1);
    add(keys, Binary{}, {x, x}, x, 3);
    Pool pool, global;
    global.kind = PoolKind::average, global.global = true;
    pool.kernel = pool.stride = {2, 2}, pool.dilation = {1, 1}, pool.pad_begin = pool.pad_end = {0, 0};
    add(keys, pool, {x}, {x[0], x[1], x[2] / 2, x[3] / 2}, 1);
    add(keys, global, {x}, {x[0], x[1], 1, 1}, 1);
    add(keys, Concat{.axis = 1}, {x, x}, {x[0], 2 * x[1], x[2], x[3]}, 3);
    add(keys, Unary{.kind = UnaryKind::clip, .alpha = 0, .beta = 6}, {x}, x, 1);
    add(keys, Dropout{}, {x}, x, 1);
  }
  return keys;
}

Keys token_operations(SweepSize size) {
  Keys keys;
  for (const Shape& x : tokens(size)) {
    const Shape embedding{x[2]};
    add(keys, Normalization{.kind = NormalizationKind::layer}, {x, embedding, embedding}, x, 7);
    add(keys, Unary{.kind = UnaryKind::gelu}, {x}, x, 1);
    add(keys, Binary{}, {x, x}, x, 3);
    add(keys, Embedding{}, {{30522, x[2]}, {x[0], x[1]}}, x, 1);
    add(keys, Dropout{.ratio = 0.1}, {x}, x, 1);
    add(keys, CrossEntropy{.class_axis = 1}, {{x[0] * x[1], 1000}, {x[0] * x[1]}}, {}, 1);
  }
  return keys;
}

// What two ranks copy to exchange channels, rows and columns of images, columns of tokens, and these for tokens.
Keys exchange_operations(SweepSize size) {
  Keys keys;
  const auto halves = [&](std::int64_t outer, std::int64_t extent, std::int64_t inner) {
    if (extent % 2 != 0) return;
    const Shape whole{outer, extent, inner}, half{outer, extent / 2, inner};
    add(keys, Packing{.together = 1}, {half}, whole, 0);
    add(keys, Packing{.apart = 1}, {whole}, half, 0);
  };
  const auto halo = [&](std::int64_t outer, std::int64_t extent, std::int64_t inner) {
    const Shape own{outer, extent, inner}, with{outer, extent + 2, inner};
    add(keys, HaloPacking{.before = 1, .after = 1}, {own}, with, 0);
    add(keys, HaloPacking{.before = 1, .after = 1, .sums = true}, {with}, own, 0);
  };
  for (const Shape& x : images(size)) {
    halves(x[0], x[1], x[2] * x[3]);
    halo(x[0] * x[1], x[2], x[3]);
    halo(x[0] * x[1] * x[2], x[3], 1);
  }
  for (const Shape& x : tokens(size)) {
    halves(x[0] * x[1], x[2], 1);
    add(keys, Packing{.apart = 0, .together = 1}, {{x[0] * x[1], x[2] / 2}}, {x[0] * x[1] / 2, x[2]}, 0);
    add(keys, Packing{.apart = 1, .together = 0}, {{x[0] * x[1] / 2, x[2]}}, {x[0] * x[1], x[2] / 2}, 0);
  }
  return keys;
}

Keys parameter_operations(SweepSize size, const std::vector<OptimizerKind>& optimizers) {
  Keys keys;
  for (std::int64_t elements = 64; elements <= (size == SweepSize::full ? 1 << 24 : 1 << 22); elements *= 8) {
    for (const OptimizerKind kind : optimizers)
      keys.push_back({{OptimizerUpdate{.kind = kind}, {{elements}}, {}, DType::f32}, Pass::forward, 0});
    keys.push_back({{Copy{}, {{elements}}, {{elements}}, DType::f32}, Pass::forward, 0});
    keys.push_back({{Binary{}, {{elements}, {elements}}, {{elements}}, DType::f32}, Pass::forward, 0});
  }
  return keys;
}

}  // namespace

std::vector<KernelKey> sweep(SweepSize size, const std::vector<OptimizerKind>& optimizers) {
  const std::vector<std::int64_t> batches =
      size == SweepSize::full ? std::vector<std::int64_t>{8, 1, 32} : std::vector<std::int64_t>{4};
  const std::array families{convolutions(batches),
                            linears(batches),
                            attentions(batches),
                            image_operations(size),
                            token_operations(size),
                            exchange_operations(size),
                            parameter_operations(size, optimizers)};
  Keys keys;
  const auto longest = std::max_element(families.begin(), families.end(), [](const Keys& a, const Keys& b) {
                         return a.size() < b.size();
                       })->size();
  // Each family gives a share of its list in each round, so that all end together.
  for (std::size_t round = 0; round < longest; ++round)
    for (const Keys& family : families)
      for (std::size_t i = round * family.size() / longest; i < (round + 1) * family.size() / longest; ++i)
        if (std::find(keys.begin(), keys.end(), family[i]) == keys.end()) keys.push_back(family[i]);
  return keys;
}

}  // namespace sibyl
