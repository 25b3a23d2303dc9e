#include "profiler/interpolation/nearest.h"

#include <algorithm>

namespace sibyl::interpolation {

struct NearestSites::Search {
  const Site& query;
  std::size_t count;
  std::uint32_t skip;
  std::vector<Neighbour> heap;  // worst on top

  [[nodiscard]] bool full() const { return heap.size() == count; }
  void offer(Neighbour n) {
    if (full() && !(n < heap.front())) return;
    if (full()) {
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    heap.push_back(n);
    std::push_heap(heap.begin(), heap.end());
  }
};

NearestSites::NearestSites(std::vector<Site> sites, double variant_gap)
    : sites_(std::move(sites)), nodes_(sites_.size()), variant_gap_(variant_gap) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i] = {static_cast<std::uint32_t>(i), 0};
  build(0, nodes_.size());
}

void NearestSites::build(std::size_t begin, std::size_t end) {
  if (end - begin < 2) return;
  Features low = sites_[nodes_[begin].site].at, high = low;
  for (std::size_t i = begin; i < end; ++i)
    for (std::size_t a = 0; a < max_features; ++a) {
      const double v = sites_[nodes_[i].site].at[a];
      low[a] = std::min(low[a], v);
      high[a] = std::max(high[a], v);
    }
  std::size_t axis = 0;
  for (std::size_t a = 1; a < max_features; ++a)
    if (high[a] - low[a] > high[axis] - low[axis]) axis = a;

  const std::size_t middle = begin + (end - begin) / 2;
  auto less = [&](const Node& a, const Node& b) {
    const double x = sites_[a.site].at[axis], y = sites_[b.site].at[axis];
    return x != y ? x < y : a.site < b.site;
  };
  std::nth_element(nodes_.begin() + static_cast<std::ptrdiff_t>(begin),
                   nodes_.begin() + static_cast<std::ptrdiff_t>(middle),
                   nodes_.begin() + static_cast<std::ptrdiff_t>(end), less);
  nodes_[middle].axis = static_cast<std::uint8_t>(axis);
  build(begin, middle);
  build(middle + 1, end);
}

void NearestSites::visit(std::size_t begin, std::size_t end, Search& search) const {
  if (begin >= end) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const Node node = nodes_[middle];
  const Site& site = sites_[node.site];
  if (node.site != search.skip) {
    double d = site.variant == search.query.variant ? 0.0 : variant_gap_ * variant_gap_;
    for (std::size_t a = 0; a < max_features; ++a) {
      const double step = site.at[a] - search.query.at[a];
      d += step * step;
    }
    search.offer({d, node.site});
  }
  const double gap = search.query.at[node.axis] - site.at[node.axis];
  const bool left_first = gap < 0;
  auto descend = [&](bool left) { left ? visit(begin, middle, search) : visit(middle + 1, end, search); };
  descend(left_first);
  if (!search.full() || gap * gap <= search.heap.front().squared_distance) descend(!left_first);
}

std::vector<Neighbour> NearestSites::nearest(const Site& query, std::size_t count, std::uint32_t skip) const {
  Search search{query, count, skip, {}};
  search.heap.reserve(count + 1);
  if (count > 0) visit(0, nodes_.size(), search);
  std::sort(search.heap.begin(), search.heap.end());
  return std::move(search.heap);
}

}  // namespace sibyl::interpolation
