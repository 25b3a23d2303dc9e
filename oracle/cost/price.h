// What one rank's step costs, kernel by kernel and message by message, before anything overlaps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/cluster.h"
#include "oracle/cost/kernel_prices.h"
#include "oracle/cost/kernels.h"
#include "oracle/cost/waits.h"
#include "oracle/plan/plan.h"

namespace sibyl {

struct PricedMessage {
  CollectiveEstimate estimate;
  std::size_t ready_after = 0;               // index of the step whose backward completes the bucket
  Bytes bytes;                               // as CollectiveSample counts them; where two follow each other, of each
  std::string_view exchange = "all-reduce";  // "reduce-scatter"
  WireUse wire = {};                         // of its parts, where there are several, the busier ones
  bool overlapped = true;                    // else it is sent when backward has ended
  std::vector<int> stages = {};  // of a parameter that several stages hold: sent when all of them have ended
};

// An exchange between operations: computation waits for it, but for what products beside it hide
// (cost/tensor_overlap.h), which the estimates are without.
struct PricedExchange {
  std::optional<CollectiveEstimate> forward, backward;
  WireUse forward_wire = {}, backward_wire = {};  // of each by itself
  ExchangeWait wait = {};                         // before either, for the slowest of the group
  Seconds hidden_forward = {}, hidden_backward = {};
};

// A copy between the device and where state lies outside it.
struct PricedCopy {
  Estimate estimate;
  Bytes bytes;
};

// Which wire a pipeline's messages leave their node by, and which they reach another by: numbers that tell wires apart,
// below that of its coordinates. Inside a node: none.
struct Passage {
  int out = -1, in = -1;
  [[nodiscard]] bool between_nodes() const { return out >= 0; }
};

struct PricedStage {
  StageKernels kernels;
  std::vector<PricedKernel> prices;         // parallel to kernels.keys
  std::vector<PricedMessage> messages;      // in the order they are sent
  std::vector<PricedExchange> exchanges;    // parallel to Stage::steps; of computations empty
  std::vector<PricedMessage> unit_gathers;  // parallel to Stage::units
  // After backward, each waited for: the norm that gradients are clipped by, norms of tensors, and what was updated by
  // parts is gathered. With the gathers: buffers that are broadcast, before the next forward.
  std::optional<CollectiveEstimate> clip_norm, tensor_norms;
  std::vector<PricedMessage> gathers;
  std::vector<PricedCopy> copies;   // parallel to Stage::copies
  std::vector<PricedCopy> brought;  // parallel to Stage::units, where the rank's parts lie outside; else empty
  struct Kept {
    PricedCopy out, in;
  };
  std::vector<Kept> kept;                 // parallel to Stage::kept_outside; of a micro-batch
  std::optional<Estimate> send_forward;   // of all it sends to the next stage for one micro-batch
  std::optional<Estimate> send_backward;  // to the one before
  WireUse forward_wire, backward_wire;    // of these
  Passage forward_passage, backward_passage;
  Seconds dispatch;                       // host time to launch an operation's kernel
  double bare_launch = 1.0;               // and one that is no operation's, as a share of it (cost/framework.h)
  double beside_copies = 1.0;             // kernels and copies take so much longer beside each other
  Seconds overhead;                       // host time per operation that no kernel contains
  Composition composition;                // how kernels in a row differ from kernels alone
  Bytes bucket_bytes;                     // communication buffers

  [[nodiscard]] Seconds time(StageKernels::Index key) const {
    return prices[key].estimate.time.time * composition.factor;
  }
};

// The ranks of one coordinate of a pipeline and those of another, two by two.
struct Pairs {
  bool same_node = true;  // all of them
  int sharing = 1;        // the most on one node; of those that leave it, if any does
  bool operator==(const Pairs&) const = default;
};
Pairs pairs_of(const Mesh& mesh, int from, int to, int devices_per_node);
// Of those in the first of all pipelines. Coordinates of one node share its wire where more messages at once take
// longer.
Passage passage_of(const Mesh& mesh, int from, int to, const Pairs& pairs, const Cluster& cluster);
// Of messages one after the other that take so long, and as many empty ones.
WireUse wire_use(const Pairs& pairs, double seconds, std::size_t messages, const Network& network);

// Where the ranks lie that sum a bucket: those that hold all parts of it, and those that hold the same part as the
// first one does.
struct SyncPlacement {
  GroupPlacement parts, copies;
};
SyncPlacement placement(const Mesh& mesh, const GradientSync& sync, int first_rank, int devices_per_node);
// Its messages one after the other, as they are waited for.
PricedMessage price_bucket(const GradientSync& sync, const Bucket& bucket, const SyncPlacement& where,
                           Algorithm library, const Cluster& cluster);

// By itself.
PricedExchange price_exchange(const Mesh& mesh, const Stage& stage, const Exchange& exchange, const Cluster& cluster);
// The same as one of a pass: its ranks wait for the last of them, and who is done first goes on. `factor`: of kernels'
// times (Composition).
PricedExchange in_a_pass(PricedExchange exchange, const ExchangeWait& wait, double factor);

// The same of many: layers exchange tensors of the same shapes in the same ways, and each of these is priced once.
class ExchangePrices {
 public:
  // The cluster must outlive it.
  ExchangePrices(Mesh mesh, const Cluster& cluster) : mesh_(std::move(mesh)), cluster_(&cluster) {}
  const PricedExchange& of(const Stage& stage, const Exchange& exchange);  // good until the next call

 private:
  struct Known {
    Exchange exchange;
    Shape in, out;
    DType in_type = DType::f32, out_type = DType::f32;
    PricedExchange priced;
  };
  Mesh mesh_;
  const Cluster* cluster_;
  std::vector<Known> known_;  // a few
};

PricedStage price(const Plan& plan, const Stage& stage, KernelPrices& kernels);  // as if all ranks ran this stage
std::vector<PricedStage> price(const Plan& plan, KernelPrices& kernels);         // each beside the others
// Where nothing else is to be priced.
PricedStage price(const Plan& plan, const Stage& stage, const Cluster& cluster);
std::vector<PricedStage> price(const Plan& plan, const Cluster& cluster);
// What was priced, with messages as another network of the same nodes carries them: kernels and copies stay.
PricedStage with_network_of(const Cluster& cluster, const Plan& plan, const Stage& stage, PricedStage priced);

}  // namespace sibyl
