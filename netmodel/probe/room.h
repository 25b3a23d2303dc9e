// How much memory the buffers of what is timed may take.
#pragma once

#include <filesystem>

#include "base/units.h"
#include "comm/communicator.h"

namespace sibyl::probe {

// What this machine can still give, or the control group (of version 1 or 2) that holds this process, whichever is
// less. `root`: of the file system. Where nothing is told of either, without end.
Bytes free_memory(const std::filesystem::path& root = "/");

// Half of it, in equal shares of the ranks that share the machine, in whatever namespaces. Called by all ranks.
Bytes room_of_rank(const Communicator& world);

}  // namespace sibyl::probe
