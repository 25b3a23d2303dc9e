// Whether ranks have processors to themselves. Of this folder alone, as it shows MPI.
#pragma once

#include <mpi.h>

namespace sibyl::comm {

// True where the ranks of `ranks` that can run on no other processors than this one can, on this machine, in whatever
// namespaces or containers, are no more than these processors. Each of the ranks must call it. Several compute threads
// of a rank, and a container's quota of time, are not seen.
bool processor_each(MPI_Comm ranks);

}  // namespace sibyl::comm
