// A sweep over kernels, planned so that the interpolation error between its points is known.
//
// Each family is a grid over log2 of sizes. Its points are timed to be interpolated between; its checks lie in the
// middles of cells, where interpolation is worst. check_error() interpolates the checks from the points alone and
// compares with what was timed. refine() cuts the cells whose check was missed: the check becomes a point, and the
// middles of the cell's lower and upper half become checks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profiler/kernel_table.h"

namespace sibyl {

using SweepKeys = std::vector<KernelKey>;

// One size: 2^low, 2^(low + step), … up to 2^high.
struct SweepAxis {
  double low = 0, high = 0, step = 1;
};

struct SweepGrid {
  std::string family;
  std::vector<SweepAxis> axes;
  // The kernels at a place, or none where there is none; sizes are whole numbers: below 32 the nearest, else the
  // nearest multiple of 8.
  std::function<SweepKeys(const std::vector<std::int64_t>& sizes)> kernels;
  int every = 5;  // of so many cells one is checked, and one of fewer
};

struct SweepCheck {
  SweepKeys keys;
  std::size_t grid = 0;
  std::vector<double> middle;  // log2
  double reach = 1.0;          // half the cell, as a share of the grid's step
};

struct Sweep {
  std::vector<SweepGrid> grids;
  std::vector<SweepKeys> points;   // of each grid
  std::vector<SweepCheck> checks;  // of all grids

  // Distinct, points and checks, so that any beginning covers all families.
  [[nodiscard]] SweepKeys keys() const;
};

// `acceptable` drops kernels, such as those too large for the device.
Sweep plan_sweep(std::vector<SweepGrid> grids, const std::function<bool(const KernelKey&)>& acceptable);

// Of the checks that were timed, per family in the grids' order; families without any have checks = 0.
struct SweepError {
  std::string family;
  std::size_t points = 0, checks = 0;        // kernels timed
  double median = 0, p90 = 0, greatest = 0;  // |interpolated / timed - 1|
};
std::vector<SweepError> check_error(const Sweep& sweep, const Device& device, const std::vector<KernelSample>& samples);

// The sweep with the cells cut in which a check's error is above `tolerance`; how many were.
std::size_t refine(Sweep& sweep, const Device& device, const std::vector<KernelSample>& samples, double tolerance,
                   const std::function<bool(const KernelKey&)>& acceptable);

// 2^x as a size: below 32 the nearest whole number, else the nearest multiple of 8.
std::int64_t sweep_size(double log2);

}  // namespace sibyl
