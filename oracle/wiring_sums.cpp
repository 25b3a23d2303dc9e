#include "oracle/wiring_sums.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace sibyl {

std::vector<PassTimes> pass_times(const Graph& graph, const Prediction& prediction) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < graph.operations().size(); ++i) places.emplace(graph.operations()[i].name, i);
  std::vector<PassTimes> times(graph.operations().size());
  for (const OperationCost& cost : prediction.operations) {
    const auto place = places.find(cost.name);
    if (place == places.end()) continue;
    times[place->second].forward += cost.forward.time;
    times[place->second].backward += cost.backward.time;
  }
  return times;
}

PartSum sum_of_part(const Wiring& wiring, std::span<const PassTimes> times, std::span<const OperationId> operations) {
  PartSum sum;
  std::set<std::size_t> gradients;
  for (const OperationId id : operations) {
    const WiredOperation& wired = wiring.operations[id.index()];
    sum.parameters += wired.parameters;
    sum.forward += wired.forward;
    sum.backward += wired.backward;
    sum.time.forward += times[id.index()].forward;
    sum.time.backward += times[id.index()].backward;
    gradients.insert(wired.gradients.begin(), wired.gradients.end());
  }
  sum.gradients.assign(gradients.begin(), gradients.end());
  return sum;
}

std::vector<SentByKind> sent_by_kind(const Wiring& wiring, std::span<const std::size_t> wires) {
  std::map<std::pair<Pass, std::string>, Sent> sums;
  for (const std::size_t wire : wires)
    for (const WireTransfer& transfer : wiring.wires[wire].transfers) {
      Sent& sent = sums[{transfer.pass, transfer.kind}];
      ++sent.messages;
      sent.bytes += transfer.bytes;
    }
  std::vector<SentByKind> all;
  for (const auto& [what, sent] : sums) all.push_back({what.first, what.second, sent});
  return all;
}

Sent sent_in_all(const Wiring& wiring, std::span<const std::size_t> wires) {
  Sent all;
  for (const SentByKind& each : sent_by_kind(wiring, wires)) {
    all.messages += each.sent.messages;
    all.bytes += each.sent.bytes;
  }
  return all;
}

Bytes gradient_bytes(const Wiring& wiring) {
  Bytes sum;
  for (const GradientMessage& message : wiring.gradients) sum += message.bytes;
  return sum;
}

}  // namespace sibyl
