#include "profiler/sweep/gpu_grids.h"

#include <algorithm>

namespace sibyl {
namespace {

using Sizes = std::vector<std::int64_t>;
using Masks = std::vector<std::uint32_t>;

// A kernel forward, and backward once for each mask.
SweepKeys passes(Attributes attributes, std::vector<Shape> inputs, std::vector<Shape> outputs, DType type,
                 const Masks& masks) {
  const Signature signature{std::move(attributes), std::move(inputs), std::move(outputs), type};
  SweepKeys keys{{signature, Pass::forward, 0}};
  for (const std::uint32_t mask : masks) keys.push_back({signature, Pass::backward, mask});
  return keys;
}

class Grids {
 public:
  explicit Grids(const GpuSweepOptions& options) : options_(options), full_(options.density == GridDensity::full) {}

  std::vector<SweepGrid> all() {
    for (const DType type : options_.dtypes) {
      const bool matrices_only = type == DType::tf32 || type == DType::f8e4m3 || type == DType::f8e5m2;
      matrices(type);
      if (type != DType::f8e4m3 && type != DType::f8e5m2) convolutions(type);
      if (matrices_only) continue;
      if (options_.attention && type != DType::f32) attention(type);
      rows(type);
      pictures(type);
      elements(type);
    }
    updates();
    return std::move(grids_);
  }

 private:
  // Steps of the quick sweep are twice as long.
  SweepAxis axis(double low, double high, double step) const { return {low, high, full_ ? step : 2 * step}; }
  void add(const std::string& family, DType type, std::vector<SweepAxis> axes,
           std::function<SweepKeys(const Sizes&)> kernels, int every = 5) {
    grids_.push_back({family + " " + std::string(to_string(type)), std::move(axes), std::move(kernels), every});
  }

  void matrices(DType type) {
    const bool fp8 = type == DType::f8e4m3 || type == DType::f8e5m2;
    add(
        "linear", type, {axis(4, 14, 2), axis(7, 14, 1.5), axis(7, 14, 1.5)},
        [type, fp8](const Sizes& s) {
          const std::int64_t m = fp8 ? (s[0] + 15) / 16 * 16 : s[0];  // fp8 products want multiples of 16
          const std::int64_t n = fp8 ? (s[1] + 15) / 16 * 16 : s[1], k = fp8 ? (s[2] + 15) / 16 * 16 : s[2];
          if (fp8) return passes(Linear{}, {{m, k}, {n, k}}, {{m, n}}, type, {});
          return passes(Linear{}, {{m, k}, {n, k}}, {{m, n}}, type, {1, 2});
        },
        9);
    if (fp8) return;
    add("matmul", type, {axis(4, 10, 2), axis(5, 11, 2), axis(5, 8, 1.5)}, [type](const Sizes& s) {
      // Scores of attention, and their product with the values.
      const std::int64_t b = s[0], t = s[1], d = s[2];
      SweepKeys keys = passes(MatMul{}, {{b, t, d}, {b, d, t}}, {{b, t, t}}, type, {1, 2});
      for (KernelKey& key : passes(MatMul{}, {{b, t, t}, {b, t, d}}, {{b, t, d}}, type, {1, 2}))
        keys.push_back(std::move(key));
      return keys;
    });
  }

  struct Window {
    std::int64_t size, stride;
    bool depthwise = false;
    std::int64_t dimensions = 2, dilation = 1, groups = 1;
  };
  void convolution(DType type, const std::string& name, const Window& w, std::vector<SweepAxis> axes) {
    add(
        "convolution " + name, type, std::move(axes),
        [type, w](const Sizes& s) {
          // Samples, channels, filters, extent of the picture.
          const auto divisible = [&](std::int64_t size) { return (size + w.groups - 1) / w.groups * w.groups; };
          const std::int64_t n = s[0], c = divisible(s[1]), k = w.depthwise ? c : divisible(s[2]), extent = s[3];
          const std::int64_t groups = w.depthwise ? c : w.groups, reach = w.dilation * (w.size - 1) + 1,
                             pad = reach / 2;
          if (extent < reach) return SweepKeys{};
          Convolution op;
          const auto d = static_cast<std::size_t>(w.dimensions);
          op.kernel.assign(d, w.size), op.stride.assign(d, w.stride), op.dilation.assign(d, w.dilation);
          op.pad_begin.assign(d, pad), op.pad_end.assign(d, pad), op.groups = groups;
          Shape x{n, c}, weight{k, c / groups}, y{n, k};
          for (std::size_t i = 0; i < d; ++i) {
            x.push_back(extent), weight.push_back(w.size);
            y.push_back((extent + 2 * pad - reach) / w.stride + 1);
          }
          return passes(op, {x, weight}, {y}, type, {1, 2});
        },
        9);
  }
  void convolutions(DType type) {
    const SweepAxis samples = axis(2, 8, 2), channels = axis(5, 11, 2), extents = axis(2.8, 7.8, 1.25);
    convolution(type, "1x1", {1, 1}, {samples, channels, channels, extents});
    convolution(type, "3x3", {3, 1}, {samples, axis(5, 9, 2), axis(5, 9, 2), extents});
    convolution(type, "3x3 strided", {3, 2}, {samples, axis(5, 9, 2), axis(5, 9, 2), extents});
    convolution(type, "1x1 strided", {1, 2}, {samples, axis(6, 10, 2), axis(6, 11, 2.5), axis(3.8, 6, 1.1)});
    convolution(type, "5x5", {5, 1}, {samples, axis(5, 8, 1.5), axis(5, 8, 1.5), axis(2.8, 6, 1.6)});
    convolution(type, "7x7 strided", {7, 2},
                {samples, {1.585, 1.585, 1}, axis(5, 7, 1), {7.807, 7.807, 1}});  // 3 x 224
    convolution(type, "16x16 patches", {16, 16}, {samples, {1.585, 1.585, 1}, axis(7.5, 10.5, 1.5), {7.807, 7.807, 1}});
    convolution(type, "depthwise 3x3", {3, 1, true}, {samples, axis(5, 10, 1.25), {0, 0, 1}, extents});
    convolution(type, "depthwise 3x3 strided", {3, 2, true}, {samples, axis(5, 10, 1.25), {0, 0, 1}, extents});
    convolution(type, "grouped 3x3", {3, 1, false, 2, 1, 32},
                {samples, axis(7, 10, 1.5), axis(7, 10, 1.5), axis(2.8, 6, 1.6)});
    convolution(type, "dilated 3x3", {3, 1, false, 2, 2}, {samples, axis(6, 9, 1.5), axis(6, 9, 1.5), axis(4, 7, 1.5)});
    convolution(type, "3x3x3", {3, 1, false, 3}, {axis(0, 4, 2), axis(4, 8, 2), axis(4, 8, 2), axis(3, 5.5, 1.25)});
  }

  void attention(DType type) {
    for (const std::int64_t head : {64, 128})
      for (const bool causal : {false, true})
        add(
            std::string(causal ? "causal attention " : "attention ") + std::to_string(head), type,
            {axis(4, 10, 2), axis(7, 13, 1.5)},
            [=](const Sizes& s) {
              const std::int64_t heads = 16, batch = std::max<std::int64_t>(1, s[0] / heads);
              const Shape q{batch, std::min(heads, s[0]), s[1], head};
              Attention op;
              op.causal = causal;
              op.scale = head == 64 ? 0.125 : 0.08838834764831845;  // 1 / sqrt(head)
              return passes(op, {q, q, q}, {q}, type, {7});
            },
            3);
  }

  void rows(DType type) {
    const SweepAxis many = axis(8, 16, 2), wide = axis(8, 13, 1.25);
    const bool composed = options_.composed_norms;
    for (const auto kind : {NormalizationKind::layer, NormalizationKind::rms})
      add(kind == NormalizationKind::layer ? "layer norm" : "rms norm", type, {many, wide}, [=](const Sizes& s) {
        const Shape x{s[0], s[1]}, scale{s[1]};
        if (kind == NormalizationKind::rms)
          return passes(Normalization{.kind = kind, .in_one_kernel = !composed}, {x, scale}, {x}, type, {3});
        return passes(Normalization{.kind = kind}, {x, scale, scale}, {x}, type, {7});
      });
    add("softmax", type, {axis(8, 18, 2.5), axis(5, 12, 1.75)}, [=](const Sizes& s) {
      return passes(Softmax{.axis = 1}, {{s[0], s[1]}}, {{s[0], s[1]}}, type, {1});
    });
    add("cross entropy", type, {axis(5, 13, 2), axis(7, 16, 2.25)}, [=](const Sizes& s) {
      return passes(CrossEntropy{}, {{s[0], s[1]}, {s[0]}}, {{}}, type, {1});
    });
    add("embedding", type, {axis(7, 15, 2), axis(8, 13, 1.25), {15, 15, 1}}, [=](const Sizes& s) {
      return passes(Embedding{}, {{s[2], s[1]}, {s[0]}}, {{s[0], s[1]}}, type, {1});
    });
    add("transpose", type, {axis(4, 10, 2), axis(6, 11, 1.25)}, [=](const Sizes& s) {
      return passes(Transpose{.permutation = {0, 2, 1, 3}}, {{s[0], s[1], 16, 64}}, {{s[0], 16, s[1], 64}}, type, {1});
    });
    add("sum of rows", type, {axis(8, 16, 2), axis(8, 13, 1.25)}, [=](const Sizes& s) {
      return passes(Reduce{.kind = ReduceKind::sum, .axes = {0}}, {{s[0], s[1]}}, {{1, s[1]}}, type, {});
    });
  }

  void pictures(DType type) {
    const SweepAxis samples = axis(2, 8, 2), channels = axis(5, 11, 2), extents = axis(2.8, 6.8, 1);
    add("batch norm", type, {samples, channels, extents}, [=](const Sizes& s) {
      const Shape x{s[0], s[1], s[2], s[2]}, channel{s[1]};
      return passes(Normalization{}, {x, channel, channel, channel, channel}, {x}, type, {7});
    });
    add("max pool", type, {samples, channels, extents}, [=](const Sizes& s) {
      Pool op;
      op.kernel = {3, 3}, op.stride = {2, 2}, op.dilation = {1, 1}, op.pad_begin = op.pad_end = {1, 1};
      const std::int64_t out = (s[2] - 1) / 2 + 1;
      return passes(op, {{s[0], s[1], s[2], s[2]}}, {{s[0], s[1], out, out}}, type, {1});
    });
    add("global pool", type, {samples, channels, axis(2.8, 4.8, 1)}, [=](const Sizes& s) {
      Pool op;
      op.kind = PoolKind::average, op.global = true;
      return passes(op, {{s[0], s[1], s[2], s[2]}}, {{s[0], s[1], 1, 1}}, type, {1});
    });
  }

  void elements(DType type) {
    const std::vector<SweepAxis> many{axis(10, 28, 1.5)};
    for (const auto& [name, kind] :
         {std::pair{"relu", UnaryKind::relu}, {"gelu", UnaryKind::gelu}, {"silu", UnaryKind::silu}})
      add(
          name, type, many,
          [=, kind = kind](const Sizes& s) { return passes(Unary{.kind = kind}, {{s[0]}}, {{s[0]}}, type, {1}); }, 2);
    for (const auto& [name, kind] : {std::pair{"add", BinaryKind::add}, {"multiply", BinaryKind::mul}})
      add(
          name, type, many,
          [=, kind = kind](const Sizes& s) {
            return passes(Binary{.kind = kind}, {{s[0]}, {s[0]}}, {{s[0]}}, type,
                          kind == BinaryKind::mul ? Masks{3} : Masks{});
          },
          2);
    add(
        "dropout", type, many, [=](const Sizes& s) { return passes(Dropout{}, {{s[0]}}, {{s[0]}}, type, {1}); }, 2);
    add(
        "copy", type, many, [=](const Sizes& s) { return passes(Copy{}, {{s[0]}}, {{s[0]}}, type, {}); }, 2);
    if (type == DType::f32) return;
    add(
        "cast", type, many, [=](const Sizes& s) { return passes(Cast{DType::f32}, {{s[0]}}, {{s[0]}}, type, {1}); }, 2);
  }

  void updates() {
    for (const OptimizerKind kind : options_.optimizers)
      add(
          "update " + std::string(enum_names(kind)[static_cast<std::size_t>(kind)]), DType::f32, {axis(8, 28, 2)},
          [kind](const Sizes& s) { return passes(OptimizerUpdate{.kind = kind}, {{s[0]}}, {}, DType::f32, {}); }, 2);
  }

  const GpuSweepOptions& options_;
  bool full_;
  std::vector<SweepGrid> grids_;
};

}  // namespace

std::vector<SweepGrid> gpu_grids(const GpuSweepOptions& options) { return Grids(options).all(); }

bool fits(const KernelKey& key, Bytes most) {
  double elements = 0;
  for (const auto* shapes : {&key.signature.inputs, &key.signature.outputs})
    for (const Shape& shape : *shapes) elements += static_cast<double>(element_count(shape));
  const double passes = key.pass == Pass::backward ? 2.0 : 1.0;
  return passes * elements * size_in_bytes(key.signature.dtype) <= most.value();
}

}  // namespace sibyl
