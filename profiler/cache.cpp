#include "profiler/cache.h"

#include <algorithm>

namespace sibyl {
namespace {

BytesPerSecond rate(const ReadSample& sample) { return sample.bytes / sample.time; }

}  // namespace

std::vector<Bytes> working_sets(Bytes reported) {
  std::vector<Bytes> sizes;
  const Bytes last = 2.0 * reported;
  for (Bytes size{256.0 * 1024}; size < last; size *= 2.0) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

Bytes effective_cache(std::span<const ReadSample> sweep, Bytes reported) {
  const auto smaller = [](const ReadSample& a, const ReadSample& b) { return a.bytes < b.bytes; };
  const auto largest = std::max_element(sweep.begin(), sweep.end(), smaller);
  if (largest == sweep.end() || largest->bytes <= reported) return reported;
  const BytesPerSecond memory = rate(*largest) * (1.0 + read_margin);
  Bytes cached;
  for (const ReadSample& sample : sweep)
    if (rate(sample) > memory) cached = std::max(cached, sample.bytes);
  return cached.value() > 0 ? std::min(cached, reported) : reported;
}

Bytes out_of_cache(Bytes effective, Bytes reported) { return std::max(2.0 * effective, reported); }

}  // namespace sibyl
