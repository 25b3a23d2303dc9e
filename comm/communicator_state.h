// What a Communicator holds: an MPI communicator of its own. Of this folder alone, as it shows MPI.
#pragma once

#include <mpi.h>

#include "comm/collectives.h"
#include "comm/communicator.h"
#include "comm/messages.h"

namespace sibyl {

struct Communicator::State {
  explicit State(MPI_Comm communicator) : handle(communicator), messages(communicator) {
    MPI_Comm_rank(handle, &rank);
    MPI_Comm_size(handle, &size);
  }
  ~State() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] comm::Group group(Reduction reduction = Reduction::sum) { return {messages, rank, size, reduction}; }

  MPI_Comm handle;
  comm::Messages messages;
  int rank = 0, size = 1;
  std::int64_t gathered = 0;
};

}  // namespace sibyl
