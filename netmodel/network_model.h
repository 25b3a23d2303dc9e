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

  // Without launch; of one algorithm (not automatic). On the wire alone, and what a library waits beside it.
  // `ways`: how the messages are asked for that its rounds consist of. `line`: by_links_alone(), where it was asked.
  [[nodiscard]] double on_the_wire(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                                   const collective::ProtocolCost& cost = {},
                                   collective::Ways ways = collective::Ways::both,
                                   const fabric::Compiled* line = nullptr) const;
  // What answers in every protocol, to be found once for all of them; nothing where more than a fabric's links do.
  [[nodiscard]] std::optional<fabric::Compiled> by_links_alone(Collective collective, Algorithm runs,
                                                               const GroupPlacement& placement) const;
  // Do messages between nodes tell of a fabric what its links do not?
  [[nodiscard]] bool heeds_messages(const GroupPlacement& placement) const;
  // `by_links`: what it takes on the fabric's links.
  [[nodiscard]] double on_the_fabric(const collective::Job& job, Algorithm runs, double by_links,
                                     const collective::ProtocolCost& cost, collective::Ways ways) const;
  // Of an all-to-all, by formula.
  [[nodiscard]] double uneven(Algorithm runs, double bytes, const GroupPlacement& placement,
                              const collective::Imbalance& imbalance) const;
  [[nodiscard]] double waits(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                             const collective::ProtocolCost& cost = {}, const fabric::Compiled* line = nullptr) const;
  // What a GPU library may speak; none where messages were measured, which are what they are.
  [[nodiscard]] std::span<const Protocol> protocols(Collective collective, Algorithm runs) const;
  // In one of them, or (automatic) none.
  [[nodiscard]] double spoken(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                              Protocol speaks, collective::Ways ways = collective::Ways::both,
                              const fabric::Compiled* line = nullptr) const;
  // The quickest of those it may speak; automatic where it speaks none.
  [[nodiscard]] std::pair<Protocol, double> quickest(Collective collective, Algorithm runs, double bytes,
                                                     const GroupPlacement& placement) const;
  // Without protocols, and with messages one way: by which samples are carried, which hold the library's own and what
  // both ways cost. Of messages both ways, as all ranks' processors have them, the short ones tell little of how much
  // longer ones take longer.
  enum class Talk { in_protocol, none };
  [[nodiscard]] double seconds(Collective collective, Algorithm runs, double bytes, const GroupPlacement& placement,
                               Talk talk = Talk::in_protocol) const;
  [[nodiscard]] double formula(Collective collective, Algorithm algorithm, double bytes,
                               const GroupPlacement& placement, Talk talk = Talk::in_protocol) const;
  [[nodiscard]] Algorithm fastest(Collective collective, double bytes, const GroupPlacement& placement,
                                  Talk talk = Talk::in_protocol) const;
  // Does another library choose than the one whose own choice `automatic` is, and was measured?
  [[nodiscard]] bool by_rules() const;
  [[nodiscard]] collective::Rules rules() const;
  // Never falls with the bytes: a choice may be late, and then the time before it is held.
  [[nodiscard]] CollectiveEstimate chosen_by_rules(Collective collective, double bytes,
                                                   const GroupPlacement& placement) const;
  // Whose samples answer, where `asked` was answered with `runs`.
  [[nodiscard]] Algorithm of_samples(Algorithm asked, Algorithm runs) const {
    if (asked != Algorithm::automatic) return asked;
    return by_rules() && algorithm == Algorithm::automatic ? runs : algorithm;
  }
  // What runs when that (not automatic) is asked for.
  [[nodiscard]] Algorithm resolved(Collective collective, Algorithm asked, double bytes,
                                   const GroupPlacement& placement) const;
  // Whose samples answered, where `asked` was answered with `runs`; nothing where no samples of such placements did.
  [[nodiscard]] std::optional<Algorithm> answering_samples(Collective collective, double bytes,
                                                           const GroupPlacement& placement, Algorithm asked,
                                                           Algorithm runs) const;
  // In words, why it was `runs`.
  [[nodiscard]] std::string why(Collective collective, double bytes, const GroupPlacement& placement, Algorithm asked,
                                Algorithm runs) const;
  [[nodiscard]] Algorithm known_beyond(Collective collective, double bytes, const GroupPlacement& placement) const;
  [[nodiscard]] Estimate estimate(Collective collective, Algorithm algorithm, double bytes,
                                  const GroupPlacement& placement) const;
  [[nodiscard]] Estimate by_formula(Collective collective, Algorithm algorithm, double bytes,
                                    const GroupPlacement& placement) const;
  [[nodiscard]] Estimate from_points(const MeasuredPlacement& points, Collective collective, Algorithm algorithm,
                                     double bytes) const;
  [[nodiscard]] double beyond(const MeasuredPlacement& points, Collective collective, Algorithm algorithm,
                              double bytes) const;
  [[nodiscard]] MeasuredPlacement carried(const MeasuredPlacement& from, Collective collective, Algorithm algorithm,
                                          const GroupPlacement& to) const;
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
};

}  // namespace sibyl
