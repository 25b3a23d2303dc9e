// Which library runs the collectives, for what it chooses by itself: the algorithm for a collective, by ranks and size.
//
// A library is a list of rules, the first that fits holds (netmodel/collective/choice, one library a file); a user may
// give a list of their own. NCCL has none: it takes what it reckons to be fastest.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "netmodel/network.h"

namespace sibyl {

// automatic: NCCL between GPUs, sibyl::Communicator between CPU ranks.
enum class Library { automatic, sibyl, nccl, open_mpi, mpich, gloo, table };
std::string_view to_string(Library library);  // "automatic", "sibyl", "nccl", "open mpi", "mpich", "gloo", "table"
Result<Library> parse_library(std::string_view text);

struct ChoiceRule {
  static constexpr int any_ranks = std::numeric_limits<int>::max();
  static constexpr std::int64_t any_size = std::numeric_limits<std::int64_t>::max();

  Collective collective = Collective::all_reduce;
  int ranks = any_ranks;         // up to so many
  std::int64_t bytes = any_size;  // up to so many, as CollectiveSample counts them
  Algorithm algorithm = Algorithm::automatic;
  enum class Of { buffer, part } of = Of::buffer;  // part: bytes are of the buffer over the ranks
  bool only_powers_of_two = false;                 // of ranks

  bool operator==(const ChoiceRule&) const = default;
};

struct LibraryChoice {
  Library library = Library::automatic;
  std::vector<ChoiceRule> table = {};  // of Library::table; what no rule says is chosen automatically
};

}  // namespace sibyl
