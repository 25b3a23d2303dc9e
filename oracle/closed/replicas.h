// How the gradients of a strategy's replicas are exchanged: which of a strategy's options and of its mesh a stage's
// messages depend on.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "calibration/cluster.h"
#include "oracle/closed/program_table.h"
#include "oracle/cost/price.h"
#include "oracle/plan/compression.h"
#include "oracle/plan/plan.h"

namespace sibyl::closed {

class Replicas {
 public:
  Replicas(const Strategy& strategy, KernelPrices& kernels)
      : strategy_(strategy), mesh_(mesh_of(strategy)), kernels_(&kernels), cluster_(&kernels.cluster()) {}

  [[nodiscard]] const Strategy& strategy() const { return strategy_; }
  // The axes along which ranks hold summands of a parameter's gradient, given those of a replica.
  [[nodiscard]] std::vector<MeshAxis> axes(const std::vector<MeshAxis>& summed_over) const;
  [[nodiscard]] int parts(const std::vector<MeshAxis>& axes) const;  // among which state is shared out; 1: it is not
  struct Sent {
    double seconds = 0;
    WireUse wire;
  };
  const Sent& sent(Collective collective, double bytes, const std::vector<MeshAxis>& axes);
  // A bucket of gradients.
  struct Summed {
    Sent sent;
    Kernels compress, decompress;  // where it travels in another form (plan/compression.h)
    double alone = 0;              // these by themselves, as measured: seconds
    CompressionMemory memory;
  };
  const Summed& summed(std::int64_t elements, DType dtype, const std::vector<MeshAxis>& axes);
  // A bucket of parameters, gathered from those who hold all parts.
  const Sent& gathered(double bytes, const std::vector<MeshAxis>& axes);
  // Of the ranks that hold a parameter of these stages.
  double tied_seconds(double bytes, const std::vector<MeshAxis>& axes, const std::vector<int>& stages);

 private:
  Strategy strategy_;
  Mesh mesh_;
  KernelPrices* kernels_;
  const Cluster* cluster_;
  struct Known {
    GroupPlacement placement;
    std::unordered_map<std::uint64_t, Sent> sent;  // by the hash of collective and bytes
  };
  const Sent& sent(Collective collective, double bytes, Known& group) const;
  struct Group {
    GradientSync sync;  // without buckets
    SyncPlacement where;
    std::unordered_map<std::uint64_t, Summed> summed;  // by the hash of elements and type
    Known gathered;
  };
  Group& group(const std::vector<MeshAxis>& axes);
  std::map<std::vector<MeshAxis>, Group> groups_;
  std::map<std::vector<MeshAxis>, Known> known_;
  std::map<std::pair<std::vector<MeshAxis>, std::vector<int>>, Known> tied_;
};

}  // namespace sibyl::closed
