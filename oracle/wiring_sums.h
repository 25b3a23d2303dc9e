// What parts of a plan come to that is told operation by operation (wiring.h): a block, equal blocks together, all of
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/graph.h"
#include "oracle/prediction.h"
#include "oracle/wiring.h"

namespace sibyl {

struct PassTimes {
  Seconds forward, backward;

  [[nodiscard]] Seconds both() const { return forward + backward; }
};
// By OperationId, of one micro-batch.
std::vector<PassTimes> pass_times(const Graph& graph, const Prediction& prediction);

// Of some operations together, on one rank and for one micro-batch.
struct PartSum {
  std::int64_t parameters = 0;
  Flops forward, backward;
  PassTimes time;
  std::vector<std::size_t> gradients;  // messages, into Wiring::gradients; ascending, each once
};
// `times`: of all operations.
PartSum sum_of_part(const Wiring& wiring, std::span<const PassTimes> times, std::span<const OperationId> operations);

struct Sent {
  int messages = 0;
  Bytes bytes;
};
struct SentByKind {
  Pass pass = Pass::forward;
  std::string kind;  // "all-reduce"
  Sent sent;
};
// Over some wires (into Wiring::wires), forward first, kinds in order; and of all kinds together.
std::vector<SentByKind> sent_by_kind(const Wiring& wiring, std::span<const std::size_t> wires);
Sent sent_in_all(const Wiring& wiring, std::span<const std::size_t> wires);
Bytes gradient_bytes(const Wiring& wiring);

}  // namespace sibyl
