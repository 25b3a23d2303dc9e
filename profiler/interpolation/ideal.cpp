#include "profiler/interpolation/ideal.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "profiler/interpolation/family.h"
#include "profiler/interpolation/roofline.h"

namespace sibyl::interpolation {
namespace {

// Tiles of the result that one multiprocessor computes at a time, and the share of its peak that it reaches with one: a
// smaller tile loads more for each multiplication. The sizes are those that cuBLAS, CUTLASS and MIOpen ship.
struct Tile {
  double m, n, efficiency;
};
constexpr auto tiles = std::to_array<Tile>({{256, 128, 1.0},
                                            {128, 256, 1.0},
                                            {128, 128, 1.0},
                                            {128, 64, 0.92},
                                            {64, 128, 0.92},
                                            {64, 64, 0.80},
                                            {128, 32, 0.70},
                                            {32, 128, 0.70},
                                            {64, 32, 0.60},
                                            {32, 64, 0.60},
                                            {32, 32, 0.45}});
constexpr double least_depth = 64;  // of the part of K that one of several multiprocessors sums up
constexpr double most_parts = 16;
constexpr double cache_over_memory = 3.5;  // rate of the last-level cache over the memory's: 2 (H100) to 10 (L40S)

// Waves of tiles: with few tiles, K is split among multiprocessors, whose partial sums are written and read once more.
Seconds in_waves(const Device& device, const Product& p, const Roofline& roofline, double element) {
  const double units = device.multiprocessors;
  const FlopsPerSecond of_one = roofline.peak * (1 / units);
  const BytesPerSecond cache = roofline.bandwidth * cache_over_memory;
  Seconds best{1e30};
  for (const Tile& tile : tiles) {
    const double count = std::ceil(p.m / tile.m) * std::ceil(p.n / tile.n) * p.batch;
    const Seconds loads = Bytes{count * (tile.m + tile.n) * p.k * element} / cache;
    for (double parts = 1; parts <= most_parts; parts *= 2) {
      const double depth = std::ceil(p.k / parts);
      if (parts > 1 && depth < least_depth) break;
      const Seconds computes =
          std::ceil(count * parts / units) * (Flops{2 * tile.m * tile.n * depth} / (of_one * tile.efficiency));
      const Seconds sums = parts > 1 ? Bytes{2 * parts * p.m * p.n * p.batch * 4} / cache : Seconds{};
      best = std::min(best, std::max(computes, loads) + sums);
    }
  }
  return best;
}

// Of the f32 peak, whatever the type: every multiplication of a depthwise convolution loads its own operands. Of 114
// convolutions on a V100S PyTorch's kernels reach at most 6 % and cuDNN's 9 %, and what they take grows with the
// window, which bytes do not (calibration/convert/published/separable_convolutions.csv).
constexpr double depthwise_share = 1.0 / 8;

// Without a peak of its own a type is computed in another, which is not slowed down.
double unit_share(const Device& device, DType dtype) {
  const auto found = device.unit_share.find(dtype);
  return found == device.unit_share.end() || device.peak.count(dtype) == 0 ? 1.0 : found->second;
}

Roofline roofline_of(const Device& device, DType dtype, Rates rates) {
  Roofline roofline = datasheet_roofline(device, dtype);
  if (rates == Rates::of_units) roofline.peak *= 1 / unit_share(device, dtype);
  return roofline;
}

Seconds roofline_at(const Device& device, const KernelKey& key, double clock, Rates rates) {
  Work work = work_of(key, device.backend);
  // A flash kernel skips the blocks above the diagonal; published counts, and so the rule, do not. Queries are the last
  // of the keys: of as many they see half of these, few of them see nearly all.
  const auto* attention = std::get_if<Attention>(&key.signature.attributes);
  const std::vector<Shape>& in = key.signature.inputs;
  if (attention && attention->causal && device.backend == Backend::cuda && in[0].size() == 4 && in[1].size() == 4) {
    const auto queries = static_cast<double>(in[0][2]), keys = static_cast<double>(in[1][2] * attention->ring);
    work.flops *= 1 - 0.5 * std::min(1.0, queries / keys);
  }
  Roofline roofline = roofline_of(device, key.signature.dtype, rates);
  if (device.backend == Backend::cuda && is_depthwise(key))
    roofline.peak = datasheet_roofline(device, DType::f32).peak * depthwise_share;
  roofline.peak *= clock;
  return roofline.time(work);
}

}  // namespace

Seconds roofline_time(const Device& device, const KernelKey& key) {
  return roofline_at(device, key, 1.0, Rates::of_board);
}

Seconds ideal_time(const Device& device, const KernelKey& key, double clock, Rates rates) {
  const Seconds plain = roofline_at(device, key, clock, rates);
  const bool convolution = std::holds_alternative<Convolution>(key.signature.attributes);
  const auto product = convolution ? std::nullopt : as_product(key);
  if (!product || device.backend != Backend::cuda || device.multiprocessors <= 0) return plain;
  const DType dtype = key.signature.dtype;
  Roofline roofline = roofline_of(device, dtype, rates);
  roofline.peak *= clock;
  return std::max(plain, in_waves(device, *product, roofline, size_in_bytes(dtype)) + roofline.start_up);
}

}  // namespace sibyl::interpolation
