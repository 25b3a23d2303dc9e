#include "netmodel/fabric/routing.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sibyl::fabric {

std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

void UpDown::next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const {
  const auto level = static_cast<std::size_t>(std::ranges::upper_bound(first, at) - first.begin() - 1);
  const std::int64_t terminal = target - first[0];
  const std::int64_t stands_over = (at - first[level]) / copies[level];
  const auto children = level > 0 ? static_cast<std::size_t>(down[level - 1]) : 0;
  if (level > 0 && terminal / below[level] == stands_over) {
    out.push_back(graph.out(at, static_cast<std::size_t>(terminal / below[level - 1] % down[level - 1])));
    return;
  }
  const auto parents = level > 0 ? static_cast<std::size_t>(up[level - 1]) : 1;
  for (std::size_t i = 0; i < parents; ++i) out.push_back(graph.out(at, children + i));
}

int Routers::router_of(VertexId v) const {
  return is_router(v) ? static_cast<int>(v - first) : static_cast<int>(v - first_terminal) / terminals_each;
}

bool Routers::at_edge_of_network(VertexId at, VertexId target, std::vector<EdgeId>& out) const {
  if (!is_router(at)) {
    out.push_back(up[at - first_terminal]);
    return true;
  }
  if (is_router(target) || router_of(at) != router_of(target)) return false;
  out.push_back(down[target - first_terminal]);
  return true;
}

void DimensionOrder::next(const Graph& /*graph*/, VertexId at, VertexId target, std::vector<EdgeId>& out) const {
  if (routers.at_edge_of_network(at, target, out)) return;
  const int here = routers.router_of(at), there = routers.router_of(target);
  int stride = 1;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const int extent = dimensions[d];
    const int forward = (there / stride % extent - here / stride % extent + extent) % extent;
    stride *= extent;
    if (forward == 0) continue;
    const std::int64_t* both = &edges[(static_cast<std::size_t>(here) * dimensions.size() + d) * 2];
    const bool ahead = there / (stride / extent) % extent > here / (stride / extent) % extent;
    const bool go_forward = wraps ? 2 * forward <= extent : ahead;
    const bool go_back = wraps ? 2 * forward >= extent : !ahead;
    // Of two in a row there is one cable, which is both.
    if (go_forward) out.push_back(static_cast<EdgeId>(both[0]));
    if (go_back && !(go_forward && both[0] == both[1])) out.push_back(static_cast<EdgeId>(both[1]));
    return;
  }
}

void Neighbours::next(const Graph& /*graph*/, VertexId at, VertexId target, std::vector<EdgeId>& out) const {
  if (routers.at_edge_of_network(at, target, out)) return;
  const auto here = static_cast<std::size_t>(routers.router_of(at));
  out.push_back(static_cast<EdgeId>(
      edges[here * static_cast<std::size_t>(routers.count) + static_cast<std::size_t>(routers.router_of(target))]));
}

void Minimal::next_to_group(VertexId at, int group, std::vector<EdgeId>& out) const {
  const int router = routers.router_of(at), own = router / routers_each, place = router % routers_each;
  const int offset = (group - own + groups) % groups, ports = routers_each * global_each;
  const auto all = static_cast<std::size_t>(own) * static_cast<std::size_t>(ports);
  for (int port = offset - 1; port < ports; port += groups - 1)
    if (const std::int64_t edge = global[all + static_cast<std::size_t>(port)];
        edge >= 0 && port / global_each == place)
      out.push_back(static_cast<EdgeId>(edge));
  if (!out.empty()) return;
  for (int port = offset - 1; port < ports; port += groups - 1)
    if (global[all + static_cast<std::size_t>(port)] >= 0)
      out.push_back(
          static_cast<EdgeId>(local[static_cast<std::size_t>(router) * static_cast<std::size_t>(routers_each) +
                                    static_cast<std::size_t>(port / global_each)]));
}

void Minimal::next(const Graph& /*graph*/, VertexId at, VertexId target, std::vector<EdgeId>& out) const {
  if (routers.at_edge_of_network(at, target, out)) return;
  const int here = routers.router_of(at), there = routers.router_of(target);
  if (here / routers_each != there / routers_each) return next_to_group(at, there / routers_each, out);
  out.push_back(static_cast<EdgeId>(local[static_cast<std::size_t>(here) * static_cast<std::size_t>(routers_each) +
                                          static_cast<std::size_t>(there % routers_each)]));
}

template <class Use>
void LeafSpineGroups::for_ports(int own, int group, Use use) const {
  const int ports = spines_each * global_each;
  for (int port = (group - own + groups) % groups - 1; port < ports; port += groups - 1)
    if (const std::int64_t edge =
            global[static_cast<std::size_t>(own) * static_cast<std::size_t>(ports) + static_cast<std::size_t>(port)];
        edge >= 0)
      use(port / global_each, static_cast<EdgeId>(edge));
}

void LeafSpineGroups::next(const Graph& /*graph*/, VertexId at, VertexId target, std::vector<EdgeId>& out) const {
  const int there = routers.router_of(target), goal = there / leaves_each;
  if (at >= first_spine && at < first_spine + static_cast<VertexId>(groups * spines_each)) {
    const int spine = static_cast<int>(at - first_spine) % spines_each;
    const int own = static_cast<int>(at - first_spine) / spines_each;
    if (own == goal) return out.push_back(static_cast<EdgeId>(up(there, spine) + 1));
    return for_ports(own, goal, [&](int owner, EdgeId edge) {
      if (owner == spine) out.push_back(edge);
    });
  }
  if (routers.at_edge_of_network(at, target, out)) return;
  const int here = routers.router_of(at), own = here / leaves_each;
  if (own == goal)
    for (int spine = 0; spine < spines_each; ++spine) out.push_back(static_cast<EdgeId>(up(here, spine)));
  else  // as often as the spine has such links
    for_ports(own, goal, [&](int owner, EdgeId) { out.push_back(static_cast<EdgeId>(up(here, owner))); });
}

void ShortestPath::next(const Graph& graph, VertexId at, VertexId target, std::vector<EdgeId>& out) const {
  const std::vector<int>& left = hops.at(target);
  for (std::size_t i = 0; i < graph.degree(at); ++i) {
    const EdgeId edge = graph.out(at, i);
    const VertexId to = graph.edges()[edge].to;
    // What was added after the tables is no part of this network: the insides of nodes behind their NICs.
    if (to >= left.size()) continue;
    if ((to == target || through[to]) && left[to] >= 0 && left[to] + 1 == left[at]) out.push_back(edge);
  }
}

namespace {

// Of n ways, as Ecmp says.
class Choice {
 public:
  Choice(Ecmp ecmp, std::uint64_t key, VertexId from, VertexId to)
      : ecmp_(ecmp), bits_(ecmp == Ecmp::destination ? to : mixed(mixed(key) ^ (std::uint64_t{from} << 32 | to))) {}

  std::size_t among(std::size_t count, VertexId at) {
    if (count == 1) return 0;
    if (ecmp_ == Ecmp::hash) return mixed(bits_ ^ at) % count;
    const std::size_t digit = bits_ % count;
    bits_ /= count;
    return digit;
  }

 private:
  Ecmp ecmp_;
  std::uint64_t bits_;
};

using Wave = std::map<VertexId, double>;  // share of the message that is at a vertex

// Moves all shares on until they are done; gives where they are then.
template <class Next, class Done>
Wave spread(const Graph& graph, Wave wave, Next next, Done done, std::vector<Step>& steps) {
  Wave arrived;
  std::vector<EdgeId> ways;
  while (!wave.empty()) {
    Wave after;
    for (const auto& [at, share] : wave) {
      if (done(at)) {
        arrived[at] += share;
        continue;
      }
      ways.clear();
      next(at, ways);
      const double each = share / static_cast<double>(ways.size());
      for (const EdgeId edge : ways) {
        steps.push_back({edge, each});
        after[graph.edges()[edge].to] += each;
      }
    }
    wave = std::move(after);
  }
  return arrived;
}

template <class Next, class Done>
VertexId follow(const Graph& graph, VertexId at, Next next, Done done, Choice& choice, double share,
                std::vector<Step>& steps) {
  std::vector<EdgeId> ways;
  while (!done(at)) {
    ways.clear();
    next(at, ways);
    const EdgeId edge = ways[choice.among(ways.size(), at)];
    steps.push_back({edge, share});
    at = graph.edges()[edge].to;
  }
  return at;
}

// By way of a third group: any of them (split), or the one that the hash draws.
void walk_valiant(const Graph& graph, const Minimal& rule, VertexId from, VertexId to, Ecmp ecmp, std::uint64_t key,
                  double share, std::vector<Step>& steps) {
  const int own = rule.group_of(from), goal = rule.group_of(to);
  const auto third = [&](int i) {  // the i-th group that is neither
    if (i >= std::min(own, goal)) ++i;
    if (i >= std::max(own, goal)) ++i;
    return i;
  };
  const auto last = [&](VertexId at, std::vector<EdgeId>& out) { rule.next(graph, at, to, out); };
  const auto there = [&](VertexId at) { return at == to; };
  const int others = rule.groups - 2;
  if (ecmp != Ecmp::split) {
    Choice choice(ecmp, key, from, to);
    const int via =
        third(static_cast<int>(mixed(key ^ (std::uint64_t{from} << 32 | to)) % static_cast<std::uint64_t>(others)));
    const auto first = [&](VertexId at, std::vector<EdgeId>& out) {
      if (rule.routers.is_router(at)) return rule.next_to_group(at, via, out);
      rule.next(graph, at, to, out);
    };
    const auto in_group = [&](VertexId at) { return rule.group_of(at) == via; };
    follow(graph, follow(graph, from, first, in_group, choice, share, steps), last, there, choice, share, steps);
    return;
  }
  for (int i = 0; i < others; ++i) {
    const int via = third(i);
    const auto first = [&](VertexId at, std::vector<EdgeId>& out) {
      if (rule.routers.is_router(at)) return rule.next_to_group(at, via, out);
      rule.next(graph, at, to, out);
    };
    const auto in_group = [&](VertexId at) { return rule.group_of(at) == via; };
    spread(graph, spread(graph, {{from, share / others}}, first, in_group, steps), last, there, steps);
  }
}

}  // namespace

void walk(const Graph& graph, const Routing& routing, VertexId from, VertexId to, Ecmp ecmp, std::uint64_t key,
          double share, std::vector<Step>& steps) {
  if (const auto* rule = std::get_if<Minimal>(&routing);
      rule != nullptr && rule->valiant && rule->groups > 2 && rule->group_of(from) != rule->group_of(to))
    return walk_valiant(graph, *rule, from, to, ecmp, key, share, steps);
  std::visit(
      [&](const auto& rule) {
        const auto next = [&](VertexId at, std::vector<EdgeId>& out) { rule.next(graph, at, to, out); };
        const auto done = [&](VertexId at) { return at == to; };
        Choice choice(ecmp, key, from, to);
        bool one_of_a_bundle = false;
        if constexpr (requires { rule.bundled; }) one_of_a_bundle = rule.bundled;
        if (ecmp == Ecmp::split && !one_of_a_bundle)
          spread(graph, {{from, share}}, next, done, steps);
        else
          follow(graph, from, next, done, choice, share, steps);
      },
      routing);
}

}  // namespace sibyl::fabric
