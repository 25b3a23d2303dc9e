#include "netmodel/collective/reach.h"

#include <algorithm>
#include <vector>

#include "netmodel/collective/partition.h"

namespace sibyl::collective {
namespace {

// Edges of both trees that lead up from the switch, or down into it, with the most of them one way; each has half of
// what a node sends that way.
double edges_of_a_switch(int below, int nodes) {
  const auto switches = static_cast<std::size_t>((nodes + below - 1) / below);
  std::vector<int> out(switches, 0), in(switches, 0);
  for (int node = 0; node < nodes; ++node)
    for (const int parent : {TreePlace::of(nodes, node).parent, TreePlace::second(nodes, node).parent}) {
      if (parent < 0 || parent / below == node / below) continue;
      ++out[static_cast<std::size_t>(node / below)];
      ++in[static_cast<std::size_t>(parent / below)];
    }
  return std::max(std::ranges::max(out), std::ranges::max(in)) / 2.0;
}

}  // namespace

double Reach::climbs(double below, int of) const {
  if (of <= below) return 0.0;
  switch (to) {
    case To::neighbours: return 0.0;
    case To::top: return 1.0;
    case To::everyone: return (of - below) / (of - 1);
    case To::shifted: return std::min(1.0, std::min(nodes, of - nodes) / below);
    case To::tree: return std::min(1.0, edges_of_a_switch(static_cast<int>(below), of) / below);
  }
  return 1.0;
}

}  // namespace sibyl::collective
