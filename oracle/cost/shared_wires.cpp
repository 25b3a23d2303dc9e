#include "oracle/cost/shared_wires.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace sibyl {
namespace {

// How many messages of each lane cross a wire at once; ascending.
using Crowd = std::vector<std::pair<int, int>>;

class Lanes {
 public:
  Lanes(const Mesh& mesh, bool around, int devices_per_node)
      : around_(around),
        ranks_(mesh.size()),
        coordinates_(mesh.size(MeshAxis::pipeline)),
        stride_(mesh.stride(MeshAxis::pipeline)),
        per_node_(devices_per_node) {}

  // All its wires, each with how many cross it of which lanes. Further ranks lie as those of the first few replicas.
  [[nodiscard]] std::vector<std::pair<int, Crowd>> wires(int coordinate, Pass pass) const {
    std::vector<std::pair<int, Crowd>> found;
    const int replica = stride_ * coordinates_, end = std::min(ranks_, std::lcm(replica, per_node_));
    for (int first = coordinate * stride_; first < end; first += replica)
      for (int rank = first; rank < first + stride_; ++rank) {
        const std::optional<int> to = neighbour(rank, pass == Pass::forward ? 1 : -1);
        if (!to || node(rank) == node(*to)) continue;
        for (const auto& [at, leaves] : {std::pair{node(rank), true}, std::pair{node(*to), false}}) {
          const int wire = 2 * at + (leaves ? 0 : 1);
          if (std::ranges::find(found, wire, &std::pair<int, Crowd>::first) == found.end())
            found.emplace_back(wire, crossing(at, leaves));
        }
      }
    return found;
  }

  static int lane(int coordinate, Pass pass) { return 2 * coordinate + (pass == Pass::forward ? 0 : 1); }

 private:
  [[nodiscard]] int node(int rank) const { return rank / per_node_; }
  [[nodiscard]] int coordinate(int rank) const { return rank / stride_ % coordinates_; }

  [[nodiscard]] std::optional<int> neighbour(int rank, int by) const {
    const int own = coordinate(rank), other = own + by;
    const bool beyond = other < 0 || other >= coordinates_;
    if (beyond && !around_) return std::nullopt;
    return rank + ((other + coordinates_) % coordinates_ - own) * stride_;
  }

  // Of what leaves the node, or reaches it.
  [[nodiscard]] Crowd crossing(int at, bool leaves) const {
    Crowd result;
    for (int rank = at * per_node_; rank < std::min(ranks_, (at + 1) * per_node_); ++rank)
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const int onward = pass == Pass::forward ? 1 : -1;
        const std::optional<int> other = neighbour(rank, leaves ? onward : -onward);
        if (!other || node(*other) == at) continue;
        const int sent_on = lane(coordinate(leaves ? rank : *other), pass);
        const auto known = std::ranges::find(result, sent_on, &std::pair<int, int>::first);
        if (known == result.end())
          result.emplace_back(sent_on, 1);
        else
          ++known->second;
      }
    std::ranges::sort(result);
    return result;
  }

  bool around_;
  int ranks_, coordinates_, stride_, per_node_;
};

// How long a long message is on its wire where it is one of so many, beyond what an empty one takes. Messages that
// leave a node by NICs of their own do not know of each other.
double on_wire(const Network& network, int messages) {
  constexpr Bytes long_one{1024.0 * 1024}, empty{1};
  return (network.point_to_point(long_one, false, messages).time - network.point_to_point(empty, false, messages).time)
      .value();
}

// Bytes take a wire as long as ever: of n messages none takes more than n times as long as one.
SharedWire wire_seen_by(int wire, int messages, int all, const Network& network) {
  SharedWire shared{wire, messages, std::vector<double>(static_cast<std::size_t>(all) + 1, 1.0)};
  const double alone = on_wire(network, messages);
  for (int n = messages + 1; n <= all && alone > 0; ++n)
    shared.slowed[static_cast<std::size_t>(n)] =
        std::clamp(on_wire(network, n) / alone, shared.slowed[static_cast<std::size_t>(n) - 1],
                   static_cast<double>(n) / messages);
  return shared;
}

}  // namespace

std::vector<SharedWire> shared_wires(const Mesh& mesh, bool around, int coordinate, Pass pass, const Cluster& cluster) {
  std::vector<std::pair<int, Crowd>> wires = Lanes(mesh, around, cluster.devices_per_node).wires(coordinate, pass);
  std::ranges::sort(wires, {}, &std::pair<int, Crowd>::first);
  const int own = Lanes::lane(coordinate, pass);
  std::vector<SharedWire> shared;
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const Crowd& crossing = wires[i].second;
    bool alike = false;
    for (std::size_t other = 0; other < i && !alike; ++other) alike = wires[other].second == crossing;
    if (crossing.size() == 1 || alike) continue;
    int all = 0, fewest = crossing.front().second;
    for (const auto& [lane, messages] : crossing) all += messages, fewest = std::min(fewest, messages);
    if (wire_seen_by(wires[i].first, fewest, all, cluster.network).slowed.back() <= 1.0) continue;
    const int messages = std::ranges::find(crossing, own, &std::pair<int, int>::first)->second;
    shared.push_back(wire_seen_by(wires[i].first, messages, all, cluster.network));
  }
  return shared;
}

}  // namespace sibyl
