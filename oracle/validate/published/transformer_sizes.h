// Sizes of a transformer: from a row's arch_params, or, where these are silent, those that were published under its
// name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/zoo/families.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {

enum class TransformerKind { encoder, decoder, llama, nemotron };

struct TransformerSizes {
  TransformerKind kind = TransformerKind::decoder;
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, ffn = 0, vocabulary = 0, sequence = 0;
  std::int64_t head_width = 0;      // 0: width / heads
  bool biases = false;              // of queries, keys and values, where nothing else has any
  bool head_norms = false;          // of queries and keys
  bool tied = false;                // the head's weights are the embedding's
  zoo::ExpertOptions experts = {};  // in place of the feed-forward
  std::vector<std::string> assumed;
};

// Is the row's model a transformer, by its sizes or by its name?
bool is_transformer(const Row& row);
// An Error where layers, width, heads or the sequence are nowhere to be found, or are no transformer's.
Result<TransformerSizes> transformer_sizes(const Row& row);

// How many of what throughput counts there are in a sample: tokens of a sequence, or the sequence itself.
double items_of(const Row& row, std::int64_t sequence);

}  // namespace sibyl::published
