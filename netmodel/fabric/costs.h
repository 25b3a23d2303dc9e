// What collectives and messages cost on a fabric, in closed form once the ways of a group's messages are known.
//
// A round takes its latency and, for its bytes, as long as its busiest channel needs for all that crosses it. Where all
// messages of a round are as long, which they are in every algorithm here, that is exactly when the last one ends under
// max-min fair sharing (the flows over the busiest channel have the least rate of all, the same one, until they end
// together); docs/models/network.md derives it, tests hold it against the simulation. Where an all-to-all is uneven it
// may end later than its busiest channel alone would have it, and never earlier. All is linear in the bytes, so a
// collective is compiled to a line or two.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/once.h"
#include "netmodel/collective/protocol.h"
#include "netmodel/fabric/schedule.h"

namespace sibyl::fabric {

struct RoundCost {
  std::string what;
  int times = 1;
  Round::Of of = Round::Of::whole;
  double latency = 0.0;               // of one time
  double inside = 0.0, across = 0.0;  // of that latency's hop: the share in a node, and between nodes
  double per_byte = 0.0;              // of the round's amount
  std::size_t messages = 0;
  ChannelId busiest = 0;
  double busiest_load = 0.0;  // per byte of the amount
  Message over_busiest;       // one of those that cross it
};

// Of all rounds; `capacities` as Fabric::capacities gives them.
std::vector<RoundCost> round_costs(const Fabric& fabric, const std::vector<double>& capacities,
                                   const Schedule& schedule);

// fixed + hops' latencies + per_byte × bytes + per_chunk × first chunk; of two ways the faster.
struct Compiled {
  struct Line {
    double fixed = 0.0, inside = 0.0, across = 0.0;  // seconds; hops in a node, and between nodes
    double per_byte = 0.0, per_chunk = 0.0;
  };
  std::array<Line, 2> ways;
  double tree_share = 1.0, chunk = 0.0;

  // `Number`: of bytes, or Ranged.
  template <class Number>
  [[nodiscard]] Number seconds(const Number& bytes, const collective::ProtocolCost& cost = {}) const {
    using std::min;
    const Number first = min(Number(tree_share * bytes), Number(chunk));
    const auto time = [&](const Line& line) {
      return Number(line.fixed + line.inside * cost.inside + line.across * cost.across +
                    (line.per_byte * bytes + line.per_chunk * first) / cost.share);
    };
    return min(time(ways[0]), time(ways[1]));
  }
};

// How a Fabric is used: by whom, and how much of what links promise they give.
struct Use {
  int nodes = 1;
  double inside_efficiency = 1.0, outside_efficiency = 1.0;
  bool chains = true;  // see schedule()
};

// Thread-safe: compiles a placement when it is first asked for, and remembers it.
class Costs {
 public:
  Costs(std::shared_ptr<const Fabric> fabric, const Use& use);

  [[nodiscard]] const std::shared_ptr<const Fabric>& fabric() const { return fabric_; }
  [[nodiscard]] const Use& use() const { return use_; }
  [[nodiscard]] const std::vector<double>& capacities() const { return capacities_; }
  [[nodiscard]] Schedule schedule_of(Collective collective, Algorithm algorithm, const GroupPlacement& placement,
                                     Algorithm between = Algorithm::ring,
                                     const collective::Imbalance& imbalance = {}) const;
  // By closed form, anew: of what is not remembered.
  [[nodiscard]] double seconds(const Schedule& schedule, double bytes) const;

  // Not automatic, and offered for the collective. Without the protocol's launch.
  [[nodiscard]] double seconds(Collective collective, Algorithm algorithm, double bytes,
                               const GroupPlacement& placement, const collective::ProtocolCost& cost = {}) const;
  [[nodiscard]] const Compiled& compiled(Collective collective, Algorithm algorithm,
                                         const GroupPlacement& placement) const;
  // Of a message to the next node while every node sends `pairs` of them; or to the next device of the node.
  [[nodiscard]] double message_seconds(double bytes, bool same_node, int pairs) const;

 private:
  struct Key {
    Collective collective = Collective::all_reduce;
    Algorithm algorithm = Algorithm::ring;
    GroupPlacement placement;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  [[nodiscard]] Compiled compile(const Key& key) const;
  [[nodiscard]] Schedule messages(bool same_node, int pairs) const;
  std::shared_ptr<const Fabric> fabric_;
  Use use_;
  std::vector<double> capacities_;
  Remembered<Key, Compiled, Hash> known_;
};

}  // namespace sibyl::fabric
