// The link between a GPU and its host's memory, as copies over it showed.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "profiler/cudnn/gpu.h"

namespace sibyl {

// Of the longest copy each way, of which starting it is a thousandth, the slower way's rate: a prediction knows one
// rate for both. 0 where a way was not timed.
inline BytesPerSecond host_link_of(const std::vector<cudnn::Transfer>& copies) {
  std::map<std::string, cudnn::Transfer> longest;
  for (const cudnn::Transfer& copy : copies) {
    if (copy.direction == "device_to_device" || copy.time.value() <= 0) continue;
    const auto [known, fresh] = longest.try_emplace(copy.direction, copy);
    if (!fresh && copy.bytes > known->second.bytes) known->second = copy;
  }
  if (longest.size() < 2) return {};
  const auto rate = [](const auto& way) { return way.second.bytes / way.second.time; };
  return std::min(rate(*longest.begin()), rate(*longest.rbegin()));
}

}  // namespace sibyl
