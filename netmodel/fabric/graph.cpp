#include "netmodel/fabric/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>

namespace sibyl::fabric {
namespace {

struct Numbered {
  EdgeId edge = 0;
};
using Boosted = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Numbered>;

// Edges that leave only what may be passed.
struct FromPassable {
  const Boosted* graph = nullptr;
  const std::vector<bool>* through = nullptr;
  VertexId start = 0;

  template <class Descriptor>
  bool operator()(const Descriptor& edge) const {
    const auto from = static_cast<VertexId>(source(edge, *graph));
    return from == start || (*through)[from];
  }
};

}  // namespace

struct Graph::Adjacency {
  Boosted graph;
};

Graph::Graph(double switch_latency) : adjacency_(std::make_unique<Adjacency>()), switch_latency_(switch_latency) {}
Graph::~Graph() = default;
Graph::Graph(Graph&& other) noexcept = default;
Graph& Graph::operator=(Graph&& other) noexcept = default;

VertexId Graph::add(Place place, int node, int index, const std::string& word) {
  // A word is almost always the one before or one of a few.
  auto known = std::find(words_.rbegin(), words_.rend(), word);
  if (known == words_.rend()) {
    words_.push_back(word);
    known = words_.rbegin();
  }
  const auto name = static_cast<std::int32_t>(std::distance(known, words_.rend()) - 1);
  vertices_.push_back({place, node, index, name});
  return static_cast<VertexId>(add_vertex(adjacency_->graph));
}

ChannelId Graph::channel(double bandwidth, Reach reach, int links) {
  channels_.push_back({bandwidth, links, reach});
  return static_cast<ChannelId>(channels_.size() - 1);
}

EdgeId Graph::cable(VertexId a, VertexId b, double latency, ChannelId there, ChannelId back) {
  const auto first = static_cast<EdgeId>(edges_.size());
  const auto into = [&](VertexId v) {
    return latency + (vertex(v).place == Place::network_switch ? switch_latency_ : 0.0);
  };
  edges_.push_back({a, b, into(b), there});
  edges_.push_back({b, a, into(a), back});
  add_edge(a, b, Numbered{first}, adjacency_->graph);
  add_edge(b, a, Numbered{first + 1}, adjacency_->graph);
  return first;
}

EdgeId Graph::cable(VertexId a, VertexId b, const LinkRate& link, Reach reach, double back_bandwidth) {
  const double there = link.bandwidth.value();
  const ChannelId forth = channel(there, reach);
  const ChannelId back =
      link.duplex == Duplex::half ? forth : channel(back_bandwidth > 0 ? back_bandwidth : there, reach);
  return cable(a, b, link.latency.value(), forth, back);
}

std::string Graph::name(VertexId v) const {
  const Vertex& it = vertex(v);
  const std::string own = it.index < 0 ? word(v) : fmt::format("{} {}", word(v), it.index);
  return it.node < 0 ? own : fmt::format("node {} {}", it.node, own);
}

std::size_t Graph::degree(VertexId v) const { return out_degree(v, adjacency_->graph); }

EdgeId Graph::out(VertexId v, std::size_t i) const {
  const Boosted& graph = adjacency_->graph;
  return graph[*(out_edges(v, graph).first + static_cast<std::ptrdiff_t>(i))].edge;
}

std::vector<int> Graph::hops_from(VertexId v, const std::vector<bool>& through) const {
  std::vector<int> hops(vertices(), -1);
  hops[v] = 0;
  const Boosted& graph = adjacency_->graph;
  const boost::filtered_graph<Boosted, FromPassable> passable(graph, {&graph, &through, v});
  breadth_first_search(passable, static_cast<std::size_t>(v),
                       visitor(make_bfs_visitor(record_distances(hops.data(), boost::on_tree_edge{}))));
  return hops;
}

}  // namespace sibyl::fabric
