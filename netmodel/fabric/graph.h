// The graph of a fabric: devices, bridges, NICs and switches; a cable is an edge each way.
//
// What limits bytes is a channel: one direction of a cable, both of a half-duplex one, or, where messages are split
// evenly over alike cables, all of those together (they are crossed by the same messages in the same shares, so one
// channel with the sum of their bandwidths says the same with less). Edges are numbered; the way back of edge 2i is 2i
// + 1.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netmodel/fabric/spec.h"

namespace sibyl::fabric {

enum class Place : std::uint8_t { device, bridge, nic, network_switch };

struct Vertex {
  Place place = Place::device;
  std::int32_t node = -1;  // where it belongs to one
  std::int32_t index = 0;
  std::int32_t name = 0;  // which word it is called by: Graph::words
};

using VertexId = std::uint32_t;
using EdgeId = std::uint32_t;
using ChannelId = std::uint32_t;

// What a link joins: devices of a node, a node and its NIC, NICs and switches.
enum class Reach : std::uint8_t { inside, port, between };

struct Channel {
  double bandwidth = 0.0;  // bytes/s, of all its links together
  std::int32_t links = 1;
  Reach reach = Reach::between;
};

struct Edge {
  VertexId from = 0, to = 0;
  double latency = 0.0;  // of the cable and, where it ends at one, of the switch
  ChannelId channel = 0;
};

class Graph {
 public:
  explicit Graph(double switch_latency = 0.0);
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;

  VertexId add(Place place, int node, int index, const std::string& word);
  ChannelId channel(double bandwidth, Reach reach, int links = 1);
  // The edge from a to b; the next number is the one back.
  EdgeId cable(VertexId a, VertexId b, double latency, ChannelId there, ChannelId back);
  EdgeId cable(VertexId a, VertexId b, const LinkRate& link, Reach reach, double back_bandwidth = 0.0);

  [[nodiscard]] std::size_t vertices() const { return vertices_.size(); }
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }
  [[nodiscard]] const std::vector<Channel>& channels() const { return channels_; }
  [[nodiscard]] const Vertex& vertex(VertexId v) const { return vertices_[v]; }
  [[nodiscard]] const std::string& word(VertexId v) const { return words_[static_cast<std::size_t>(vertex(v).name)]; }
  [[nodiscard]] std::string name(VertexId v) const;
  [[nodiscard]] std::size_t degree(VertexId v) const;
  // The i-th edge out of v, in the order that they were added in.
  [[nodiscard]] EdgeId out(VertexId v, std::size_t i) const;
  // Hops from v to every vertex, or -1; only `through` and the ends may be passed.
  [[nodiscard]] std::vector<int> hops_from(VertexId v, const std::vector<bool>& through) const;

 private:
  struct Adjacency;  // of Boost.Graph, which has nothing to move
  std::unique_ptr<Adjacency> adjacency_;
  std::vector<Vertex> vertices_;
  std::vector<Edge> edges_;
  std::vector<Channel> channels_;
  std::vector<std::string> words_;
  double switch_latency_;
};

}  // namespace sibyl::fabric
