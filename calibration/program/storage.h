// How fast a folder's storage writes and reads.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "calibration/calibration.h"

namespace sibyl {

// Files of several sizes up to `largest`, each written through to the device (fsync) and read back from it (the
// kernel's cached pages dropped first by posix_fadvise; a memory file system keeps them all the same, and reads as fast
// as memory). One sample a size and direction, the median of three. The files are removed.
Result<std::vector<IoSample>> measure_storage(const std::filesystem::path& folder, Bytes largest);

}  // namespace sibyl
