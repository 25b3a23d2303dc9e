#include "profiler/attention_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "profiler/kernel_table.h"

namespace sibyl {
namespace {

constexpr std::array<std::string_view, attention_libraries> names = {"timed", "flash1", "flash2", "flash3", "cudnn"};
constexpr double backward_over_forward = 2.5;  // five products, one of them forward's again, for two
constexpr double flash2_over_flash1 = 2.0;     // Dao, 2023
// What two libraries' ratio at one number of tokens says of another: assumed.
constexpr double carried_error = 0.15;

struct Point {
  double at = 0, speed = 0;
};

// Linear between points in ascending order, constant beyond them.
double between(const std::vector<Point>& points, double at) {
  const auto above = std::ranges::find_if(points, [&](const Point& p) { return p.at >= at; });
  if (above == points.begin()) return points.front().speed;
  if (above == points.end()) return points.back().speed;
  const Point &low = *(above - 1), &high = *above;
  return low.speed + (high.speed - low.speed) * (at - low.at) / (high.at - low.at);
}

double log_of(std::int64_t size) { return std::log2(static_cast<double>(std::max<std::int64_t>(1, size))); }

// Of the very pass, or 0.
double measured_speed(const std::vector<AttentionSpeed>& known, AttentionLibrary library, Pass pass, bool causal,
                      std::int64_t head_dim, std::int64_t sequence) {
  std::set<std::int64_t> widths;
  const auto fits = [&](const AttentionSpeed& s) {
    return s.library == library && s.pass == pass && s.causal == causal;
  };
  for (const AttentionSpeed& s : known)
    if (fits(s)) widths.insert(s.head_dim);
  std::vector<Point> by_width;
  for (const std::int64_t width : widths) {
    std::vector<Point> by_length;
    for (const AttentionSpeed& s : known)
      if (fits(s) && s.head_dim == width) by_length.push_back({log_of(s.sequence), s.speed.value()});
    std::ranges::sort(by_length, {}, &Point::at);
    by_width.push_back({log_of(width), between(by_length, log_of(sequence))});
  }
  return by_width.empty() ? 0.0 : between(by_width, log_of(head_dim));
}

double forward_flops(const Shape& q, const Shape& k, bool causal) {
  const double all = 4.0 * static_cast<double>(q[0] * q[1] * q[2] * q[3]) * static_cast<double>(k[2]);
  return causal ? all / 2 : all;
}

// As long, with heads as wide: 16,384 tokens of 2,048 features, or one sequence where that is longer.
KernelKey reference_of(const KernelKey& key) {
  constexpr std::int64_t tokens = 16384, features = 2048;
  const Shape& k = key.signature.inputs[1];
  const std::int64_t length = k[2] * std::get<Attention>(key.signature.attributes).ring, width = k[3];
  const Shape shape = {std::max<std::int64_t>(1, tokens / length), std::max<std::int64_t>(1, features / width), length,
                       width};
  const Attention attention{.causal = std::get<Attention>(key.signature.attributes).causal};
  return {{attention, {shape, shape, shape}, {shape}, key.signature.dtype}, Pass::forward, 0};
}

}  // namespace

std::string_view to_string(AttentionLibrary library) { return names[static_cast<std::size_t>(library)]; }

Result<AttentionLibrary> parse_attention_library(std::string_view text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end())
    return fail(ErrorCode::usage, fmt::format("'{}' is no library of attention's kernels", text), {},
                fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<AttentionLibrary>(found - names.begin());
}

std::vector<std::string> attention_library_names() { return {names.begin(), names.end()}; }

std::optional<FlopsPerSecond> attention_speed(const std::vector<AttentionSpeed>& known, AttentionLibrary library,
                                              Pass pass, bool causal, std::int64_t head_dim, std::int64_t sequence) {
  if (library == AttentionLibrary::flash1) {
    const auto second = attention_speed(known, AttentionLibrary::flash2, pass, causal, head_dim, sequence);
    return second ? std::optional(*second / flash2_over_flash1) : std::nullopt;
  }
  const auto of = [&](Pass p, bool c) { return measured_speed(known, library, p, c, head_dim, sequence); };
  double speed = of(pass, causal);
  if (speed == 0 && causal && of(Pass::forward, false) > 0)
    speed = of(pass, false) * of(Pass::forward, true) / of(Pass::forward, false);
  return speed > 0 ? std::optional(FlopsPerSecond{speed}) : std::nullopt;
}

KernelEstimate attention_by(AttentionLibrary library, const KernelTable& kernels, const KernelKey& key) {
  KernelEstimate result = kernels.estimate(key);
  const Signature& s = key.signature;
  if (library == AttentionLibrary::timed || size_in_bytes(s.dtype) > 2) return result;
  const bool causal = std::get<Attention>(s.attributes).causal;
  const Shape& k = s.inputs[1];
  const auto speed = attention_speed(kernels.device().attention_speeds, library, key.pass, causal, k[3],
                                     k[2] * std::get<Attention>(s.attributes).ring);
  if (!speed) return result;
  const KernelKey reference = reference_of(key);
  const Shape& shape = reference.signature.inputs.front();
  const Estimate timed = kernels.estimate(reference).time;
  const FlopsPerSecond timed_speed{forward_flops(shape, shape, causal) / timed.time.value()};
  const Estimate forward = key.pass == Pass::forward ? result.time : kernels.estimate({s, Pass::forward, 0}).time;
  const double flops = key.pass == Pass::forward ? 1.0 : backward_over_forward;
  result.time.time = forward.time * (timed_speed / *speed) * flops;
  result.time.relative_error = std::hypot(forward.relative_error, carried_error);
  result.time.provenance = std::max(forward.provenance, Provenance::interpolated);
  return result;
}

}  // namespace sibyl
