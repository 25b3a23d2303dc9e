// A plan told operation by operation, to be looked at: where each operation of the model runs, along which axes it is
// split, how much it computes there, which blocks they make, and what is sent from one to another.
//
// Sizes and FLOPs are those of one rank and one micro-batch unless they say otherwise. FLOPs count a multiply-add as
// two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cancelled.h"
#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/plan/plan.h"
#include "oracle/strategy.h"

namespace sibyl {

// The ranks of an axis each have a part of something of this operation.
struct OperationSplit {
  MeshAxis axis = MeshAxis::tensor;
  int ways = 1;
  std::string what;  // "h.0.attn.c_attn.weight split 1, h.0.attn.c_attn split 2"
};

struct WiredOperation {
  int stage = 0;
  std::vector<OperationSplit> splits;  // in the order of MeshAxis
  std::string output,
      local_output;             // shape of the first result: of a micro-batch of a replica, and what a rank has of it
  std::int64_t parameters = 0;  // of the model; one that operations share belongs to the first
  Flops forward, backward;
  std::vector<std::size_t> gradients;  // messages that carry those of its parameters, into Wiring::gradients
};

// One message of one micro-batch.
struct WireTransfer {
  std::string kind;  // "all-reduce", "send"
  Pass pass = Pass::forward;
  MeshAxis axis = MeshAxis::tensor;
  int ranks = 1;
  Bytes bytes;
  Seconds time;
};

// What is sent between operations: from the one that makes a tensor (invalid: the model's input) to those that read it.
// Both ends may be one operation, of whose own work ranks have shares.
struct Wire {
  OperationId from;
  std::vector<OperationId> to;
  TensorId tensor;
  std::vector<WireTransfer> transfers;
};

// One message of a step that carries gradients.
struct GradientMessage {
  std::string kind;  // "all-reduce", "reduce-scatter"
  int stage = 0;
  std::vector<MeshAxis> axes;
  int ranks = 1;
  Bytes bytes;
  Seconds time;
};

struct Wiring {
  std::vector<WiredOperation> operations;  // by OperationId
  std::vector<OperationId> order;          // as a rank runs them, stage by stage
  // Runs of `order`, apart and ascending (oracle/plan/blocks.h); of a model without repetition there may be none.
  struct Block {
    std::size_t begin = 0, end = 0;
    std::uint64_t kind = 0;  // equal ones compute the same in one stage
    bool whole = true;       // else the rest of it is in another stage
  };
  std::vector<Block> blocks;
  std::vector<Wire> wires;
  std::vector<GradientMessage> gradients;  // in the order they are sent, stage by stage
  int stages = 1;
};

// `cancelled` ends it, with an Error of code interrupted.
Result<Wiring> wiring(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                      const Cancelled& cancelled = {});

}  // namespace sibyl
