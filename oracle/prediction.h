// What Sibyl answers: everything about one training step of one plan on one cluster, for the slowest rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "oracle/plan/bytes_sent.h"
#include "oracle/step_error.h"

namespace sibyl {

// Peak memory of one device and what it is made of at that moment.
struct MemoryBreakdown {
  Bytes total, weights, gradients, optimizer, activations, workspace, communication, framework;
  // What the process holds of the device at most, with what its caching allocator keeps for later; 0 where it has none.
  Bytes reserved = {};

  // What the device must have: `total`, and what the allocator keeps. Everywhere this is meant where memory is one
  // figure.
  [[nodiscard]] Bytes needed() const { return std::max(total, reserved); }
  [[nodiscard]] Bytes cached() const { return needed() - total; }  // that the allocator holds and nothing lives in
};

struct TimeBreakdown {
  Seconds forward, backward, optimizer;  // compute, whether or not communication runs beside it
  Seconds communication_exposed;         // the device waits for it
  Seconds communication_total;           // hidden or not
  Seconds bubble, host, io;              // pipeline idle; waiting for launches; waiting for data
  Seconds io_total;                      // reading samples from storage, hidden or not; 0 where they are in memory
  Seconds offload_exposed;               // waiting for what lies outside the device
  Seconds offload_total;                 // copying it, hidden or not
};

struct Bottleneck {
  std::string name;   // "compute: convolution", "network: data all-reduce": bottleneck_kind.h
  double share = 0;   // of the step time spent on its critical path
  double relief = 0;  // by what fraction the step shrinks if that resource were twice as fast
  std::string relieved_by =
      {};  // what would relieve it (oracle/remedies.h); empty where it was read from an older file
};

struct ProvenanceShares {
  double measured = 0, interpolated = 0, estimated = 0;  // of compute and communication time; sum 1
};

// One thing that keeps a plan from going further (oracle/limits.h).
struct Limit {
  std::string name;    // "filters", "gradient exchange"
  std::string where;   // the operation, tensor or axis that sets it; may be empty
  double value = 0;    // the number that limits
  std::string unit;    // of value: "samples", "filters", "rows", "s", "bytes", ...
  double share = 0;    // how much of it is used: degree / extent, time / step time, bytes / the device's peak
  std::string relief;  // what would relieve it
};

// What one operation contributes, for reports.
struct OperationCost {
  std::string name;
  std::string kind;
  Estimate forward, backward;
  // Of both passes over a micro-batch, on one device; 0 where the prediction was read from a file.
  Flops flops = {};
  Bytes traffic = {};  // the least that kernels read and write
};

// One stage of a pipeline.
struct StageCost {
  std::string first;            // the operation it begins with
  int coordinate = 0;           // in the pipeline: which device of a replica
  Seconds forward, backward;    // of one micro-batch, exchanges within the stage included
  std::int64_t bytes_sent = 0;  // to its neighbours for one micro-batch, both ways
  Bytes memory;                 // that its device must have: needed()
  Seconds bubble;               // of its device in the step
};

// What strategies are compared by.
struct Evaluation {
  Seconds step_time;
  Seconds interval_low, interval_high;  // 90 % confidence
  StepError error;                      // what the interval is made of
  double throughput = 0;                // samples per second, over all devices
  MemoryBreakdown memory;               // of the fullest device: that which must have most
  Bytes memory_capacity;
  bool fits = true;
  Bytes host_memory, storage;  // of one node, for what lies outside its devices
  TimeBreakdown breakdown;
  ProvenanceShares provenance;
};

struct Prediction : Evaluation {
  Bottleneck bottleneck;
  std::vector<Limit> limits;
  std::int64_t bytes_sent = 0;  // by one rank in one step: of a pipeline the one that sends most
  BytesSent bytes_by_kind;
  std::vector<OperationCost> operations;
  // The plan in words and numbers.
  int devices = 1, nodes = 1;
  std::int64_t global_batch = 1, micro_batch = 1, micro_batches = 1;
  int buckets = 0;
  std::vector<std::int64_t> bucket_bytes;  // of gradients as they are summed, in the order they are sent
  std::string parallel, precision, optimizer, algorithm;
  bool half_weights = false;     // of two bytes, beside fp32 masters
  bool fp32_gradients = false;   // of those, summed in four bytes
  int zero = 0, zero_ranks = 0;  // as in Strategy
  bool reduce_each = false;
  bool gather_late = false;  // --backward-prefetch post
  double clip = 0;
  // Where they are not as usual; else empty.
  std::string offload, recompute, order, split_until, batch_norm, compress, context_exchange;
  bool dropless = false;                                                     // plan/dropless.h
  bool whole_experts = false;                                                // dealt out over ranks of tensor, too
  bool overlap_tensor = false, fused_update = false, written_update = false, fused_norms = false,
       fused_pointwise = false, converted_images = false,
       converted_norms = false;   // plan/image_kernels.h, plan/pointwise.h
  std::string attention;          // whose kernels fused attention runs; empty: those that PyTorch takes
  std::string framework;  // other than Sibyl's own trainer; else empty
  std::string schedule;   // of a pipeline; else empty, as are its stages
  std::vector<StageCost> stages;
  // What of the device and the model is taken for granted, in sentences, beside what the rest shows (assumptions() in
  // report/report.h).
  std::vector<std::string> assumed;
  std::vector<std::string> without_effect;  // what was asked for in vain (without_effect.h)
};

}  // namespace sibyl
