#include "netmodel/probe/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "base/quantity.h"
#include "netmodel/collective/algorithms.h"

namespace sibyl::probe {
namespace {

// What ranks that split one model's operations send each other.
constexpr std::array among_groups{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                  Collective::all_to_all, Collective::send_receive};

constexpr std::int64_t largest_of_whole_vectors = 4 << 20;  // recursive doubling sends the whole vector in each round

constexpr int most_pairs_of_nodes = 32, most_pairs_in_node = 16;

// 0, 1/2, 1/4, 3/4, 1/8, 5/8 …: any beginning is spread over all (van der Corput).
double spread_out(int index) {
  double value = 0, digit = 0.5;
  for (; index > 0; index /= 2, digit /= 2) value += digit * (index % 2);
  return value;
}

// The place of the i-th of `most` among all.
std::int64_t sampled(int i, std::int64_t all, int most) {
  return all <= most ? i : static_cast<std::int64_t>(spread_out(i) * static_cast<double>(all));
}

// In the order (0, 1), (0, 2) … (1, 2) …
std::pair<int, int> pair_at(std::int64_t index, int count) {
  int first = 0;
  for (; index >= count - 1 - first; ++first) index -= count - 1 - first;
  return {first, first + 1 + static_cast<int>(index)};
}

}  // namespace

}  // namespace sibyl::probe

namespace sibyl {

Nearness nearness(const RankPlace& a, const RankPlace& b) {
  const bool memories = a.memory >= 0 && b.memory >= 0, sockets = a.socket >= 0 && b.socket >= 0;
  if (memories && a.memory == b.memory) return Nearness::memory;
  if (sockets && a.socket != b.socket) return Nearness::node;
  return memories && sockets ? Nearness::socket : Nearness::unknown;
}

}  // namespace sibyl

namespace sibyl::probe {

bool among_operations(const CollectiveSample& sample) {
  return std::ranges::find(among_groups, sample.collective) != among_groups.end();
}

double bytes_of(const Task& task) {
  return std::visit([](const auto& sample) { return sample.bytes.value(); }, task);
}

std::string text_of(const Task& task) {
  if (const auto* message = std::get_if<PointToPointSample>(&task))
    return fmt::format("messages of {} {}{}, {} at once", to_string(message->bytes),
                       message->same_node ? "within a node" : "between nodes", message->both_ways ? " both ways" : "",
                       message->pairs);
  if (const auto* pair = std::get_if<PairSample>(&task))
    return fmt::format("a message of {} from rank {} to rank {}", to_string(pair->bytes), pair->from, pair->to);
  const auto& sample = std::get<CollectiveSample>(task);
  return fmt::format("{} of {} ({}) on {} x {} ranks", to_string(sample.collective), to_string(sample.bytes),
                     to_string(sample.algorithm), sample.placement.nodes, sample.placement.ranks_per_node);
}

std::vector<Task> message_tasks(const GroupPlacement& world, const NetworkProbeOptions& options) {
  std::vector<Task> tasks;
  const auto add = [&](bool same_node, int most) {
    for (int pairs = 1; pairs <= most; pairs = pairs < most ? std::min(pairs * 2, most) : pairs + 1)
      for (const std::int64_t bytes : options.message_bytes)
        for (const bool both_ways : {false, true})
          tasks.emplace_back(
              PointToPointSample{same_node, pairs, Bytes{static_cast<double>(bytes)}, Seconds{}, 0.0, both_ways});
  };
  add(true, world.ranks_per_node / 2);
  add(false, world.nodes > 1 ? world.ranks_per_node : 0);
  return tasks;
}

std::vector<std::pair<int, int>> sampled_pairs(int count, int most) {
  const std::int64_t all = static_cast<std::int64_t>(count) * (count - 1) / 2;
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < std::min<std::int64_t>(all, most); ++i) pairs.push_back(pair_at(sampled(i, all, most), count));
  return pairs;
}

std::vector<std::pair<int, int>> sampled_pairs(std::span<const RankPlace> places, int most) {
  const auto count = static_cast<int>(places.size());
  std::map<Nearness, std::vector<std::pair<int, int>>> all;
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b)
      all[nearness(places[static_cast<std::size_t>(a)], places[static_cast<std::size_t>(b)])].emplace_back(a, b);
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < most; ++i)
    for (const auto& [near, alike] : all) {
      const auto of_them = static_cast<std::int64_t>(alike.size());
      if (i < of_them) pairs.push_back(alike[static_cast<std::size_t>(sampled(i, of_them, most))]);
    }
  return pairs;
}

std::vector<Task> pair_tasks(const GroupPlacement& world, const NetworkProbeOptions& options,
                             std::span<const RankPlace> places) {
  std::vector<Task> tasks;
  if (options.pair_bytes == 0) return tasks;
  const auto add = [&](int a, int b, bool same_node, Nearness near) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
      tasks.emplace_back(
          PairSample{from, to, same_node, Bytes{static_cast<double>(options.pair_bytes)}, Seconds{}, 0.0, near});
  };
  for (const auto& [a, b] : sampled_pairs(world.nodes, most_pairs_of_nodes))
    add(a * world.ranks_per_node, b * world.ranks_per_node, false, Nearness::unknown);
  for (const auto& [a, b] : sampled_pairs(places, most_pairs_in_node))
    add(a, b, true, nearness(places[static_cast<std::size_t>(a)], places[static_cast<std::size_t>(b)]));
  return tasks;
}

// Ranks of a node, all nodes at once; and those that have the same place on their nodes, all places at once: the groups
// of models that are split within nodes, and replicated across them. And pairs of those, who send each other all they
// have, as no two ranks of a longer ring do, and all ranks of two nodes: groups that a ring of the whole world, which
// shares each wire among as many but is longer, tells little of. Only what is neither the world nor one rank.
std::vector<GroupPlacement> groups_of(const GroupPlacement& world) {
  std::vector<GroupPlacement> groups;
  if (world.nodes > 1 && world.ranks_per_node > 1)
    groups = {{world.ranks_per_node, 1, 1}, {1, world.nodes, world.ranks_per_node}};
  if (world.nodes > 2 && world.nodes % 2 == 0) {
    groups.push_back({1, 2, world.ranks_per_node});
    if (world.ranks_per_node > 1) groups.push_back({world.ranks_per_node, 2, 1});
  }
  return groups;
}

std::vector<Task> collective_tasks(const GroupPlacement& world, const NetworkProbeOptions& options) {
  std::vector<Task> tasks;
  if (world.size() < 2) return tasks;
  for (const std::int64_t bytes : options.collective_bytes) {
    const auto add_among = [&](const GroupPlacement& ranks, Collective collective, Algorithm algorithm) {
      if (collective == Collective::all_to_all && bytes < ranks.size()) return;  // nothing for some
      tasks.emplace_back(
          CollectiveSample{collective, algorithm, ranks, Bytes{static_cast<double>(bytes)}, Seconds{}, 0.0, "probe"});
    };
    const auto add = [&](Collective collective, Algorithm algorithm) { add_among(world, collective, algorithm); };
    for (const GroupPlacement& group : groups_of(world))
      for (const Collective collective : among_groups) add_among(group, collective, Algorithm::automatic);
    add(Collective::all_reduce, Algorithm::automatic);
    const Algorithm chosen = collective::resolve(Collective::all_reduce, Algorithm::automatic, bytes, world.size());
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::recursive_doubling, Algorithm::rabenseifner, Algorithm::tree}) {
      if (!options.every_algorithm || algorithm == chosen) continue;
      if (algorithm == Algorithm::recursive_doubling && bytes > largest_of_whole_vectors) continue;
      add(Collective::all_reduce, algorithm);
    }
    add(Collective::reduce_scatter, Algorithm::automatic);
    add(Collective::all_gather, Algorithm::automatic);
    add(Collective::broadcast, Algorithm::automatic);
    add(Collective::reduce, Algorithm::automatic);
    add(Collective::all_to_all, Algorithm::automatic);
    add(Collective::send_receive, Algorithm::automatic);
  }
  return tasks;
}

}  // namespace sibyl::probe
