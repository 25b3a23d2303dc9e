// What communication costs on a cluster.
//
// A Network is a Topology (devices, NICs, switches, links) plus what was measured on it: point-to-point times by link
// class and message size, and collectives themselves. Asked for a collective, it answers from the nearest
// measurements of that collective and group shape, carried by the algorithm's formula to other sizes and counts;
// without any, from the formula over the point-to-point fit. Where the machine is described as a Fabric
// (netmodel/fabric), what no sample answers comes from the ways over its links. Pure and thread-safe once built.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "base/result.h"

namespace sibyl {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, send_receive };
std::string_view to_string(Collective collective);
Result<Collective> parse_collective(std::string_view text);

// gloo: what that library runs, whose times are its own. multi_dimensional: along one dimension of the machine after
// the other. in_network: switches add. What is named ring is, of an all-to-all, messages of all pairs at once.
// sibyl::Communicator has ring, recursive_doubling, rabenseifner and tree, and runs a ring (of a broadcast or a
// reduction the tree) when it is asked for another; a GPU library has ring, tree and in_network; bidirectional_ring to
// pairwise are formulas, which other libraries choose by their rules (netmodel/library.h).
enum class Algorithm {
  automatic,
  ring,
  bidirectional_ring,
  bruck,
  halving_doubling,
  binomial,
  linear,
  pairwise,
  recursive_doubling,
  rabenseifner,
  tree,
  hierarchical,
  multi_dimensional,
  in_network,
  gloo
};
std::string_view to_string(Algorithm algorithm);
Result<Algorithm> parse_algorithm(std::string_view text);

// NCCL's protocols (netmodel/collective/protocol.h), named as NCCL_PROTO does.
enum class Protocol { automatic, ll, ll128, simple };
std::string_view to_string(Protocol protocol);
Result<Protocol> parse_protocol(std::string_view text);

// In one machine: beyond any, and far from overflow when multiplied by what a device does.
inline constexpr int most_devices = 1 << 24;

// How the ranks of one communication group lie on the machine, and how many such groups talk at once:
// `ranks_per_node` on each of `nodes` nodes, and `groups_per_node` groups share each node's NICs. A group need not fill
// its nodes evenly: the last ones then have fewer ranks, at least one each, and `missing` is what they lack in all.
struct GroupPlacement {
  int ranks_per_node = 1;
  int nodes = 1;
  int groups_per_node = 1;
  int missing = 0;

  [[nodiscard]] int size() const { return ranks_per_node * nodes - missing; }
  // The group's ranks on one of its nodes, from 0.
  [[nodiscard]] int on_node(int node) const {
    const int most = ranks_per_node - 1;  // that one node can lack
    return ranks_per_node - std::clamp(missing - (nodes - 1 - node) * most, 0, most);
  }
  [[nodiscard]] int fewest_on_a_node() const { return on_node(nodes - 1); }
  auto operator<=>(const GroupPlacement&) const = default;
};

// One measurement. Bytes: of the whole buffer (all_reduce: the vector; all_gather: the gathered result;
// reduce_scatter: the input; broadcast: the message; send_receive: what a rank gives to its neighbours in a line, all
// to one or half to each of two, both ways at once; all_to_all: one rank's send buffer).
struct CollectiveSample {
  Collective collective = Collective::all_reduce;
  Algorithm algorithm = Algorithm::automatic;
  GroupPlacement placement;
  Bytes bytes;
  Seconds time;  // where all ranks begin together, until the last is done
  double spread = 0.0;
  std::string source;
  // Of such exchanges in a row, each rank resting as long in between: what a rank spends on one, in the mean, as a
  // share of `time`. Where ranks are not done at once, the first go on, and begin the next one earlier.
  std::optional<double> in_turn = {};
};

struct PointToPointSample {
  bool same_node = false;
  int pairs = 1;  // pairs of ranks talking at once through the same NIC (inside a node: in it)
  Bytes bytes;
  Seconds time;  // one way
  double spread = 0.0;
  bool both_ways = false;  // both ranks of a pair send each other as much at once, and so do pairs of all other nodes
};

// What two ranks of a node have in common, by where they are bound: memory (a NUMA node), their socket, or the node
// alone.
enum class Nearness { unknown, memory, socket, node };
std::string_view to_string(Nearness nearness);  // "unknown", "memory", "socket", "node"
Result<Nearness> parse_nearness(std::string_view text);

// One message between two ranks that are named, while all others rest: which pair of many is slow, and which way. No
// prediction is made of it.
struct PairSample {
  int from = 0, to = 0;  // ranks of the run
  bool same_node = false;
  Bytes bytes;
  Seconds time;  // one way
  double spread = 0.0;
  Nearness near = Nearness::unknown;  // of two in one node
};

struct CollectiveEstimate {
  Estimate time;
  Algorithm algorithm = Algorithm::ring;  // what is assumed to run
  double in_turn = 1.0;                   // as CollectiveSample has it; 1 where it was not timed
};

// What a message keeps busy while it lasts: the links inside nodes or those between them, and for how much of its time;
// the rest it takes to set out and to arrive. Of a group that spans nodes only the links between them count: they are
// the slower ones.
struct WireUse {
  bool between_nodes = false;
  double busy = 0.0;   // 0 to 1
  double flows = 1.0;  // that leave a node by the wire at once: what shares a wire has as much of it as it has flows
};

class Topology;
struct TopologySpec;
struct NetworkExplanation;
struct SimulatedExchange;
struct LibraryChoice;
namespace fabric {
class Fabric;
struct FabricSpec;
}  // namespace fabric

class Network {
 public:
  Network(Topology topology, std::vector<PointToPointSample> point_to_point, std::vector<CollectiveSample> collectives,
          Algorithm algorithm = Algorithm::automatic);
  // On a fabric: `spec` says counts and rates, `shape` how all is joined. Errors are Fabric::make's.
  static Result<Network> on_fabric(const TopologySpec& spec, const fabric::FabricSpec& shape,
                                   std::vector<PointToPointSample> point_to_point,
                                   std::vector<CollectiveSample> collectives,
                                   Algorithm algorithm = Algorithm::automatic);
  ~Network();
  Network(const Network&) = default;
  Network(Network&&) noexcept = default;
  Network& operator=(const Network&) = default;
  Network& operator=(Network&&) noexcept = default;

  [[nodiscard]] const Topology& topology() const;
  // What was measured on it, or carried to it from where it was.
  [[nodiscard]] const std::vector<PointToPointSample>& messages() const;
  [[nodiscard]] const std::vector<CollectiveSample>& collectives() const;
  [[nodiscard]] const fabric::Fabric* links() const;  // of a fabric; null where the topology answers
  // The same measurements on the same machine with another number of nodes or of devices in a node; a fabric keeps its
  // links and is used in part, so it has room for no more than it was made with.
  [[nodiscard]] Result<Network> resized(int nodes, int devices_per_node) const;
  // The same machine with other links, NICs or switches (what-if): what was measured is carried by the formulas' ratio,
  // is no longer called measured, and its error grows with the change. `spec` must have the same kind of device link.
  // `fabric_background`: the share of a fabric's links between nodes that others use, where that changes, too; an error
  // without a fabric.
  [[nodiscard]] Result<Network> with_links(const TopologySpec& spec,
                                           std::optional<double> fabric_background = {}) const;
  // The same machine whose GPU library is told to speak that protocol (NCCL_PROTO) wherever it knows it: formulas take
  // no other, and samples are carried by their ratio and no longer called measured. Where messages were measured
  // nothing changes.
  [[nodiscard]] Network speaking(Protocol protocol) const;
  // The same machine, whose collectives that library chooses by its rules. Samples of what another library chose by
  // itself are not used then, those of algorithms by name are.
  [[nodiscard]] Network running(LibraryChoice library) const;
  // The same machine, of whose collectives these have been measured and no others.
  [[nodiscard]] Network knowing(std::vector<CollectiveSample> collectives) const;
  // The same machine where whoever asks is alone: nobody else uses its links (background), and of several groups or
  // messages at once each has them as if it were the only one. What a group's own messages share they still share.
  [[nodiscard]] Result<Network> uncontended() const;
  // `pairs`: messages of one node at once.
  [[nodiscard]] Estimate point_to_point(Bytes bytes, bool same_node, int pairs = 1) const;
  // `asked`: what the caller runs, where that is not the network's own choice.
  [[nodiscard]] CollectiveEstimate collective(Collective collective, Bytes bytes, GroupPlacement placement,
                                              Algorithm asked = Algorithm::automatic) const;
  // An all-to-all in which each rank gives `bytes`, and one gets `imbalance` times as much, the others what is left, as
  // tokens come to experts (netmodel/collective/imbalance.h): from 1, even, to the number of ranks. What collective()
  // answers is carried by the formulas' ratio, and no longer called measured.
  [[nodiscard]] CollectiveEstimate uneven_all_to_all(Bytes bytes, GroupPlacement placement, double imbalance,
                                                     Algorithm asked = Algorithm::automatic) const;
  // Messages of so many pairs at once between nodes: so many flows by one wire.
  [[nodiscard]] double flows(int pairs) const;
  // `answered`: by collective(). What an empty message takes, sent in the same way, keeps no wire busy.
  [[nodiscard]] WireUse wire_use(Collective collective, const CollectiveEstimate& answered,
                                 GroupPlacement placement) const;
  // What collective() answers (of an uneven all-to-all, uneven_all_to_all()), and why (netmodel/explain.h).
  [[nodiscard]] NetworkExplanation explain(Collective collective, Bytes bytes, GroupPlacement placement,
                                           Algorithm asked = Algorithm::automatic, double imbalance = 1.0) const;

  // These exchanges of a fabric, flow by flow (netmodel/simulate.h); the first is what is asked about, the others go on
  // beside it. `step_by_step`: the first alone so, too. Errors: without a fabric, of switches that add, of too many
  // messages.
  [[nodiscard]] Result<std::vector<SimulatedExchange>> simulate(std::vector<SimulatedExchange> exchanges,
                                                                bool step_by_step = false) const;

 private:
  struct Model;
  explicit Network(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  // As with_links(); `shape`: of a fabric, else null.
  [[nodiscard]] Result<std::shared_ptr<Model>> carried_to(const TopologySpec& spec,
                                                          const fabric::FabricSpec* shape) const;
  std::shared_ptr<const Model> model_;
};

// Bytes that one rank sends for a collective, exactly as the algorithm splits `elements` elements of `element_bytes`
// over the group (rank matters where the split is uneven). The trainer's communicator uses the same partition.
std::int64_t bytes_sent(Collective collective, Algorithm algorithm, std::int64_t elements, std::int64_t element_bytes,
                        int group_size, int rank);

}  // namespace sibyl
