#include "gui/view/canvas/graph_layout.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace sibyl::gui {
namespace {

constexpr int ordering_sweeps = 12, placing_sweeps = 10;
constexpr double point_width = 10;    // kept free for an edge that passes a layer
constexpr double straightness = 4.0;  // of a passing edge against a node that would stand elsewhere
constexpr double looseness = 0.25;    // of its end at a node
constexpr double pull = 8.0;          // of a neighbouring node against an edge that comes from farther away

// A node, or a point by which edges of one node pass a layer.
struct Item {
  double width = 0, height = 0;
  std::size_t layer = 0;
  bool point = false;
  double middle = 0;
  std::vector<std::size_t> above, below;
};

class Layerer {
 public:
  Layerer(const std::vector<LayoutBox>& sizes, const std::vector<LayoutEdge>& edges, const LayoutSpacing& spacing)
      : edges_(edges), spacing_(spacing), nodes_(sizes.size()) {
    for (const LayoutBox& size : sizes) items_.push_back({size.width, size.height, 0, false, 0, {}, {}});
  }

  GraphLayout run() {
    assign_layers();
    for (const LayoutEdge& edge : edges_) connect(std::min(edge.from, edge.to), std::max(edge.from, edge.to));
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].layer >= layers_.size()) layers_.resize(items_[i].layer + 1);
      layers_[items_[i].layer].push_back(i);
    }
    order();
    place_across();
    return result();
  }

 private:
  // By the longest path; what nothing leads to stands just above its first reader.
  void assign_layers() {
    std::vector<std::vector<std::size_t>> after(nodes_);
    std::vector<bool> begins(nodes_, true);
    for (const LayoutEdge& edge : edges_) {
      if (edge.from == edge.to) continue;
      after[std::min(edge.from, edge.to)].push_back(std::max(edge.from, edge.to));
      begins[std::max(edge.from, edge.to)] = false;
    }
    for (std::size_t i = 0; i < nodes_; ++i)
      for (const std::size_t next : after[i]) items_[next].layer = std::max(items_[next].layer, items_[i].layer + 1);
    for (std::size_t i = 0; i < nodes_; ++i) {
      if (!begins[i] || after[i].empty()) continue;
      std::size_t first = std::numeric_limits<std::size_t>::max();
      for (const std::size_t next : after[i]) first = std::min(first, items_[next].layer);
      items_[i].layer = first - 1;
    }
  }

  // Edges of one node share the points by which they pass layers.
  void connect(std::size_t from, std::size_t to) {
    if (from == to) return;
    std::size_t last = from;
    for (std::size_t layer = items_[from].layer + 1; layer < items_[to].layer; ++layer) {
      const auto [found, added] = points_.try_emplace({from, layer}, items_.size());
      if (added) {
        items_.push_back({point_width, 0, layer, true, 0, {}, {}});
        link(last, found->second);
      }
      last = found->second;
    }
    link(last, to);
  }

  void link(std::size_t from, std::size_t to) {
    if (std::find(items_[from].below.begin(), items_[from].below.end(), to) != items_[from].below.end()) return;
    items_[from].below.push_back(to);
    items_[to].above.push_back(from);
  }

  void order() {
    std::vector<std::vector<std::size_t>> best = layers_;
    std::size_t least = crossings();
    for (int sweep = 0; sweep < ordering_sweeps && least > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (std::size_t n = 1; n < layers_.size(); ++n) order_layer(down ? n : layers_.size() - 1 - n, down);
      if (const std::size_t now = crossings(); now < least) least = now, best = layers_;
    }
    layers_ = best;
  }

  [[nodiscard]] std::vector<double> places() const {
    std::vector<double> place(items_.size(), 0);
    for (const auto& layer : layers_)
      for (std::size_t i = 0; i < layer.size(); ++i) place[layer[i]] = static_cast<double>(i);
    return place;
  }

  void order_layer(std::size_t n, bool by_above) {
    const std::vector<double> place = places();
    std::vector<double> centre = place;
    for (const std::size_t item : layers_[n]) {
      const auto& neighbours = by_above ? items_[item].above : items_[item].below;
      if (neighbours.empty()) continue;
      double sum = 0;
      for (const std::size_t other : neighbours) sum += place[other];
      centre[item] = sum / static_cast<double>(neighbours.size());
    }
    std::stable_sort(layers_[n].begin(), layers_[n].end(),
                     [&](std::size_t a, std::size_t b) { return centre[a] < centre[b]; });
  }

  // Pairs of edges between two layers that cross.
  [[nodiscard]] std::size_t crossings() const {
    const std::vector<double> place = places();
    std::size_t count = 0;
    for (const auto& layer : layers_) {
      std::vector<std::pair<double, double>> ends;
      for (const std::size_t item : layer)
        for (const std::size_t below : items_[item].below) ends.emplace_back(place[item], place[below]);
      for (std::size_t a = 0; a < ends.size(); ++a)
        for (std::size_t b = a + 1; b < ends.size(); ++b)
          if ((ends[a].first - ends[b].first) * (ends[a].second - ends[b].second) < 0) ++count;
    }
    return count;
  }

  void place_across() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (const std::size_t item : layer) {
        items_[item].middle = x + items_[item].width / 2;
        x += items_[item].width + spacing_.across;
      }
    }
    for (int sweep = 0; sweep < placing_sweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (std::size_t n = 0; n < layers_.size(); ++n) place_layer(down ? n : layers_.size() - 1 - n, down);
    }
  }

  // Each item wants to stand in the middle of its neighbours. Nearest to that in the square, in order and apart: with
  // the distances taken off, numbers that must not fall (pool adjacent violators).
  void place_layer(std::size_t n, bool by_above) {
    struct Pool {
      double sum = 0, weight = 0;
      std::size_t count = 0;
      [[nodiscard]] double mean() const { return sum / weight; }
    };
    const std::vector<std::size_t>& layer = layers_[n];
    std::vector<Pool> pools;
    double offset = 0;
    std::vector<double> offsets;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) offset += (items_[layer[i - 1]].width + items_[layer[i]].width) / 2 + spacing_.across;
      offsets.push_back(offset);
      const auto [wanted, weight] = wish(items_[layer[i]], by_above);
      pools.push_back({(wanted - offset) * weight, weight, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const Pool last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().weight += last.weight;
        pools.back().count += last.count;
      }
    }
    std::size_t i = 0;
    for (const Pool& pool : pools)
      for (std::size_t k = 0; k < pool.count; ++k, ++i) items_[layer[i]].middle = pool.mean() + offsets[i];
  }

  [[nodiscard]] std::pair<double, double> wish(const Item& item, bool by_above) const {
    const auto& neighbours = by_above ? item.above : item.below;
    if (neighbours.empty()) return {item.middle, 0.1};
    double sum = 0, weight = 0;
    bool ends = false;
    for (const std::size_t other : neighbours) {
      const double own = items_[other].point && !item.point ? 1.0 : pull;
      sum += own * items_[other].middle;
      weight += own;
      ends = ends || !items_[other].point;
    }
    return {sum / weight, !item.point ? 1.0 : ends ? looseness : straightness};
  }

  GraphLayout result() {
    GraphLayout layout;
    double left = std::numeric_limits<double>::max(), right = 0;
    for (const Item& item : items_) left = std::min(left, item.middle - item.width / 2);
    for (Item& item : items_) {
      item.middle -= left;
      right = std::max(right, item.middle + item.width / 2);
    }
    std::vector<double> tops, heights;
    double y = 0;
    for (const auto& layer : layers_) {
      double height = 0;
      for (const std::size_t item : layer) height = std::max(height, items_[item].height);
      tops.push_back(y);
      heights.push_back(height);
      y += height + spacing_.down;
    }
    for (std::size_t i = 0; i < nodes_; ++i) {
      const Item& item = items_[i];
      layout.layers.push_back(item.layer);
      layout.boxes.push_back({item.middle - item.width / 2, tops[item.layer] + (heights[item.layer] - item.height) / 2,
                              item.width, item.height});
    }
    for (const LayoutEdge& edge : edges_) layout.routes.push_back(route(edge, layout, tops, heights));
    layout.width = items_.empty() ? 0 : right;
    layout.height = layers_.empty() ? 0 : y - spacing_.down;
    return layout;
  }

  [[nodiscard]] std::vector<LayoutPoint> route(const LayoutEdge& edge, const GraphLayout& layout,
                                               const std::vector<double>& tops,
                                               const std::vector<double>& heights) const {
    if (edge.from == edge.to) return {};
    const std::size_t from = std::min(edge.from, edge.to), to = std::max(edge.from, edge.to);
    std::vector<LayoutPoint> points = {{layout.boxes[from].middle(), layout.boxes[from].bottom()}};
    for (std::size_t layer = items_[from].layer + 1; layer < items_[to].layer; ++layer) {
      const double x = items_[points_.at({from, layer})].middle;
      points.push_back({x, tops[layer]});
      points.push_back({x, tops[layer] + heights[layer]});
    }
    points.push_back({layout.boxes[to].middle(), layout.boxes[to].y});
    if (edge.from > edge.to) std::reverse(points.begin(), points.end());
    return points;
  }

  const std::vector<LayoutEdge>& edges_;
  LayoutSpacing spacing_;
  std::size_t nodes_;
  std::vector<Item> items_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> points_;  // by node and layer
  std::vector<std::vector<std::size_t>> layers_;
};

}  // namespace

GraphLayout lay_out(const std::vector<LayoutBox>& sizes, const std::vector<LayoutEdge>& edges,
                    const LayoutSpacing& spacing) {
  return Layerer(sizes, edges, spacing).run();
}

}  // namespace sibyl::gui
