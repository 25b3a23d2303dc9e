// Trained weights in the safetensors format: 8 bytes of header length, a JSON header of types, shapes and offsets, the
// data.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "trainer/session.h"

namespace sibyl::trainer {

// Parameters, and running statistics, under their names in the model, put together from all ranks' parts: each rank
// must call. Rank 0 writes; of replicas that differ the first's are taken.
Result<void> save_weights(const Session& session, const std::filesystem::path& path);

}  // namespace sibyl::trainer
