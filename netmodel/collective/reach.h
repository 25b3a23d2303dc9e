// How far messages go that leave a node at once, of a group over consecutive nodes: what of them climbs above a switch.
#pragma once

namespace sibyl::collective {

struct Reach {
  enum class To {
    neighbours,  // next to each other: nothing worth counting climbs
    top,         // the farthest: all of them do
    everyone,    // as much to each other node
    shifted,     // each to the node so many further on
    tree,        // to the node above in two binary trees (TreePlace)
  };
  To to = To::neighbours;
  int nodes = 0;  // shifted: so many

  // The share of them that leaves a switch above `below` consecutive nodes of the group's `of`, of the fullest such.
  [[nodiscard]] double climbs(double below, int of) const;
  bool operator==(const Reach&) const = default;
};

inline constexpr Reach to_neighbours{Reach::To::neighbours}, to_the_top{Reach::To::top},
    to_everyone{Reach::To::everyone}, up_a_tree{Reach::To::tree};
constexpr Reach shifted_by(int nodes) { return {Reach::To::shifted, nodes}; }

}  // namespace sibyl::collective
