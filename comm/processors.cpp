#include "comm/processors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "comm/machine.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace sibyl::comm {
namespace {

struct Place {
  double machine = 0;
  std::array<std::uint64_t, 16> processors{};  // a bit for each that the rank may run on
};

Place place() {
  Place result{machine_number(), {}};
#ifdef __linux__
  static_assert(sizeof result.processors == sizeof(cpu_set_t));
  // Refused on machines of more than 1,024: then the rank is taken to have none of its own.
  static_cast<void>(
      sched_getaffinity(0, sizeof result.processors, reinterpret_cast<cpu_set_t*>(result.processors.data())));
#endif
  return result;
}

bool is_part_of(std::uint64_t part, std::uint64_t whole) { return (part & ~whole) == 0; }

}  // namespace

bool processor_each(MPI_Comm ranks) {
  int size = 1;
  MPI_Comm_size(ranks, &size);
  const Place own = place();
  std::vector<Place> places(static_cast<std::size_t>(size));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, places.data(), sizeof own, MPI_BYTE, ranks);
  int sharing = 0, processors = 0;
  for (const Place& one : places)
    if (one.machine == own.machine && std::ranges::equal(one.processors, own.processors, is_part_of)) ++sharing;
  for (const std::uint64_t word : own.processors) processors += std::popcount(word);
  return sharing <= processors;
}

}  // namespace sibyl::comm
