// The k nearest of a fixed set of points, exactly, by a k-d tree: a few microseconds among 10^5 points.
//
// Distance is Euclidean over the features, plus `variant_gap`^2 where the variants differ. Ties are broken by index, so
// that answers do not depend on the tree.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/interpolation/family.h"

namespace sibyl::interpolation {

struct Site {
  Features at{};
  std::uint32_t variant = 0;
};

struct Neighbour {
  double squared_distance = 0.0;
  std::uint32_t index = 0;
  auto operator<=>(const Neighbour&) const = default;
};

constexpr std::uint32_t no_site = UINT32_MAX;

class NearestSites {
 public:
  NearestSites() = default;
  NearestSites(std::vector<Site> sites, double variant_gap);

  [[nodiscard]] std::size_t size() const { return sites_.size(); }
  [[nodiscard]] const Site& operator[](std::size_t i) const { return sites_[i]; }
  // Nearest first, at most `count`; `skip` is left out.
  [[nodiscard]] std::vector<Neighbour> nearest(const Site& query, std::size_t count,
                                               std::uint32_t skip = no_site) const;

 private:
  struct Node {
    std::uint32_t site;
    std::uint8_t axis;
  };
  struct Search;
  void build(std::size_t begin, std::size_t end);
  void visit(std::size_t begin, std::size_t end, Search& search) const;

  std::vector<Site> sites_;
  std::vector<Node> nodes_;  // a range's middle splits it, along the axis in which it is widest
  double variant_gap_ = 0.0;
};

}  // namespace sibyl::interpolation
