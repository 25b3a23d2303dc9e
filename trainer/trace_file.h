// Writes the timelines of all ranks to one file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "comm/communicator.h"

namespace sibyl::trainer {

// Whether the file could be written, asked before a long run; on rank 0.
Result<void> can_write(const std::filesystem::path& path);

// Every rank calls it with its own timeline; rank 0 writes. The Error is rank 0's alone.
Result<void> write_trace(Communicator& communicator, const TraceProcess& own, const std::vector<TraceArgument>& about,
                         const std::filesystem::path& path);

}  // namespace sibyl::trainer
