// All-to-alls whose ranks get unlike amounts (MPI_Alltoallv; tokens on their way to experts).
//
// Every rank gives as much as in an even exchange of the same bytes; one, the busiest, gets `busiest` times what each
// would get there, from all alike, and the others get equal shares of what is left. The way back, on which the busiest
// gives that much, takes as long. From 1 (even) to the number of ranks (all goes to one).
#pragma once

namespace sibyl::collective {

struct Imbalance {
  double busiest = 1.0;

  [[nodiscard]] bool even() const { return busiest == 1.0; }
  // What each of the others gets, of `size` ranks.
  [[nodiscard]] double others(int size) const { return size > 1 ? (size - busiest) / (size - 1) : 1.0; }
  // What `ranks` of them get in the mean, the busiest among them.
  [[nodiscard]] double among(int ranks, int size) const { return (busiest + (ranks - 1) * others(size)) / ranks; }
};

}  // namespace sibyl::collective
