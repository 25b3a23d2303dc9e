// What a Network holds and how it answers; shared by network.cpp, explain.cpp and simulate.cpp, for nobody
// else.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/once.h"
#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/choice/rules.h"
#include "netmodel/collective/protocol.h"
#include "netmodel/collective_table.h"
#include "netmodel/fabric/costs.h"
#include "netmodel/library.h"
#include "netmodel/network.h"
#include "netmodel/point_to_point.h"
#include "netmodel/topology.h"

namespace sibyl {

struct Network::Model {
  // By their samples; the others are only asked for.
  static constexpr std::array chosen_where_measured{
      Algorithm::automatic, Algorithm::ring,         Algorithm::recursive_doubling, Algorithm::rabenseifner,
      Algorithm::tree,      Algorithm::hierarchical, Algorithm::multi_dimensional,  Algorithm::in_network};

  Model(Topology machine, std::vector<PointToPointSample> messages, std::vector<CollectiveSample> timed,
        Algorithm chosen);

  // What is asked of one group, and what it consists of: group.h, formula.h.
  class Formula;
  class Fastest;
  class Group;
  [[nodiscard]] const Group& group(Collective collective, const GroupPlacement& placement) const;

  // Of at least two ranks: Network::collective.
  [[nodiscard]] CollectiveEstimate answer(Collective collective, double bytes, const GroupPlacement& placement,
                                          Algorithm asked) const;

  // Without protocols, and with messages one way: by which samples are carried, which hold the library's own and what
  // both ways cost. Of messages both ways, as all ranks' processors have them, the short ones tell little of how much
  // longer ones take longer.
  enum class Talk { in_protocol, none };
  // What a GPU library may speak; none where messages were measured, which are what they are.
  [[nodiscard]] std::span<const Protocol> protocols(Collective collective, Algorithm runs) const;
  // Do messages between nodes tell of a fabric what its links do not?
  [[nodiscard]] bool heeds_messages(const GroupPlacement& placement) const;
  // Of an all-to-all, by formula.
  [[nodiscard]] double uneven(Algorithm runs, double bytes, const GroupPlacement& placement,
                              const collective::Imbalance& imbalance) const;
  // Does another library choose than the one whose own choice `automatic` is, and was measured?
  [[nodiscard]] bool by_rules() const {
    switch (library.library) {
      case Library::automatic: return false;
      case Library::sibyl: return gpus();
      case Library::nccl: return !gpus();
      default: return true;
    }
  }
  [[nodiscard]] collective::Rules rules() const;
  // Whose samples answer, where `asked` was answered with `runs`.
  [[nodiscard]] Algorithm of_samples(Algorithm asked, Algorithm runs) const {
    if (asked != Algorithm::automatic) return asked;
    return by_rules() && algorithm == Algorithm::automatic ? runs : algorithm;
  }
  // What runs when that (not automatic) is asked for.
  [[nodiscard]] Algorithm resolved(Collective collective, Algorithm asked) const;
  // Whose samples answered, where `asked` was answered with `runs`; nothing where no samples of such placements did.
  [[nodiscard]] std::optional<Algorithm> answering_samples(Collective collective, double bytes,
                                                           const GroupPlacement& placement, Algorithm asked,
                                                           Algorithm runs) const;
  // In words, why it was `runs`.
  [[nodiscard]] std::string why(Collective collective, double bytes, const GroupPlacement& placement, Algorithm asked,
                                Algorithm runs) const;
  [[nodiscard]] bool any(Collective collective) const;
  [[nodiscard]] bool gpus() const { return topology.spec().device_link.kind != LinkKind::shared_memory; }
  // Any switches, inside a node or between nodes.
  [[nodiscard]] bool switches_add() const {
    return topology.spec().device_link.reduces || topology.spec().switches_reduce;
  }
  // As this one, of another size or with other samples.
  [[nodiscard]] std::shared_ptr<Model> with(Topology machine, std::vector<CollectiveSample> timed) const;
  void infer_device_link();
  // Inside a node the topology says as much, and knows the measured rate, unless the fabric gives the node a shape.
  [[nodiscard]] bool fabric_answers(bool same_node) const;
  void use(std::shared_ptr<const fabric::Fabric> fabric);
  // Samples taken on `from`, carried to this machine.
  void take_collectives(const Model& from, Talk talk = Talk::none);

  Topology topology;
  std::vector<PointToPointSample> point_to_point_samples;
  std::vector<CollectiveSample> collective_samples;
  Algorithm algorithm;
  Protocol protocol = Protocol::automatic;  // that the library is told to speak
  LibraryChoice library;
  PointToPoint point_to_point;
  CollectiveTable table;
  double launch = 0.0;
  std::shared_ptr<const fabric::Costs> costs;  // of the fabric, where there is one
  bool shared = true;                          // groups and messages at once slow each other down
  // By how much links differ from those that were measured; 0 but for what-ifs.
  double octaves_inside = 0.0, octaves_across = 0.0;

 private:
  struct GroupKey {
    Collective collective = Collective::all_reduce;
    GroupPlacement placement;
    bool operator==(const GroupKey&) const = default;
  };
  struct GroupHash {
    std::size_t operator()(const GroupKey& key) const;
  };
  // Of this model as it is: of a copy, or of one that was given other samples, anew.
  Remembered<GroupKey, Group, GroupHash> groups_;
};

}  // namespace sibyl
