// What machine this is and which libraries it computes with: enough to tell two machines apart, without naming any.
#pragma once

#include <map>
#include <string>

#include "base/units.h"
#include "netmodel/probe/probe.h"

namespace sibyl {

std::map<std::string, std::string> machine_fingerprint();  // cpu, sockets, cores, hardware_threads, caches, memory, os
std::map<std::string, std::string> library_versions();     // libtorch, mpi, blas, onednn where known

Bytes machine_memory();

// Where this process may run.
RankPlace place_of_this_process();

}  // namespace sibyl
