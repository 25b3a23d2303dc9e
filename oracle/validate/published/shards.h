// Which ranks a source shards parameters, gradients or optimizer state over, from its words: "FSDP 256", "HSDP: full
// shard within node (8), replicated across 16 nodes", "FSDP 128 x replica 2", "ZeRO-1 group of 8 GPUs in the node,
// replicated across nodes", "ZeRO-1 over all of DP".
#pragma once

#include <optional>
#include <string_view>

#include "oracle/validate/published/row.h"

namespace sibyl::published {

struct Shards {
  std::optional<int> stage;  // of ZeRO
  int ranks = 0;             // that hold all parts together; 0: all replicas
  bool in_node = false;      // those of a node, where `ranks` are not said
  int replicas = 0;          // of such a group; 0: not said
};

// Nothing where a word is none of these.
std::optional<Shards> shards_of(std::string_view text);
// How many of `replicas`, of which a node has `in_node` (0: none whole), hold all parts together; nothing where that
// does not divide them.
std::optional<int> group_of(const Shards& shards, int replicas, int in_node);

// Of a row, by its column or else by these words; 0: none is said.
int zero_stage(const Row& row);

}  // namespace sibyl::published
