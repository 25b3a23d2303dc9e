// The small models that tests of sharing train, by name.
#pragma once

#include <cstdint>
#include <string>

#include "models/graph.h"

namespace sibyl::trainer {

constexpr std::int64_t sharded_batch = 8;

// With that batch; kept once it is made.
const Graph& graph_of(const std::string& model);

}  // namespace sibyl::trainer
