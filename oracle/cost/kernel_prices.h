// What kernels take on a cluster's devices, each looked up and interpolated once, however many plans run it.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "calibration/cluster.h"
#include "oracle/strategy.h"
#include "profiler/kernel_key.h"

namespace sibyl {

// What a kernel is bound by on this device, by its roofline.
enum class Bound { compute, memory };

struct PricedKernel {
  KernelEstimate estimate;
  Bound bound = Bound::compute;
};

// For several threads at once: what one of them asked for the others find.
class KernelPrices {
 public:
  // The cluster must outlive it.
  explicit KernelPrices(const Cluster& cluster) : cluster_(&cluster) {}

  // With what the strategy's library of kernels does around it (cost/conversions.h). Good as long as this.
  const PricedKernel& of(const KernelKey& key, const Strategy& strategy);
  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }

 private:
  // A key that was hashed once: to find its part, and within that.
  struct Asked {
    const KernelKey& key;
    std::size_t hash = 0;
  };
  struct Held {
    KernelKey key;
    std::size_t hash = 0;
  };
  struct HashOf {
    using is_transparent = void;
    std::size_t operator()(const auto& one) const { return one.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return a.hash == b.hash && a.key == b.key; }
  };
  // Threads that ask for different kernels seldom wait for each other.
  struct Part {
    std::mutex mutex;
    std::unordered_map<Held, PricedKernel, HashOf, Equal> known;
  };
  static constexpr std::size_t parts = 32;
  static constexpr std::size_t kinds_of_conversions = 3;  // none, of images, of norms

  const Cluster* cluster_;
  // By what the strategy says of libraries: what is converted for them, and whose attention.
  std::array<std::array<Part, parts>, kinds_of_conversions * attention_libraries> known_;
};

}  // namespace sibyl
