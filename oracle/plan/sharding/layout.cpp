#include "oracle/plan/sharding/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace sibyl {

std::string to_string(const Layout& layout) {
  switch (layout.kind) {
    case Layout::Kind::whole: return "whole";
    case Layout::Kind::partial: return "partial";
    case Layout::Kind::split: break;
  }
  if (layout.surplus > 0) return fmt::format("split {} less {}", layout.dim, layout.surplus);
  if (layout.pieces.empty()) return fmt::format("split {}", layout.dim);
  return fmt::format("split {} of {}", layout.dim, fmt::join(layout.pieces, "+"));
}

bool divides(const Shape& shape, const Layout& layout, std::int64_t ways) {
  if (!layout.is_split()) return true;
  if (layout.dim >= shape.size()) return false;
  const std::int64_t extent = shape[layout.dim];
  if (layout.pieces.empty()) return extent > 0 && (extent + layout.surplus) % ways == 0;
  return std::accumulate(layout.pieces.begin(), layout.pieces.end(), std::int64_t{0}) == extent &&
         std::all_of(layout.pieces.begin(), layout.pieces.end(),
                     [&](std::int64_t piece) { return piece > 0 && piece % ways == 0; });
}

Shape part_of(Shape shape, const Layout& layout, std::int64_t ways) {
  if (layout.is_split()) shape[layout.dim] = (shape[layout.dim] + layout.surplus) / ways;
  return shape;
}

std::int64_t surplus_of(std::int64_t extent, std::int64_t ways) { return (ways - extent % ways) % ways; }

}  // namespace sibyl
