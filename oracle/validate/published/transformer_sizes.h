// Sizes of a transformer: from a row's arch_params, or, where these are silent, those that were published under its
// name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {

enum class TransformerKind { encoder, decoder, llama, nemotron };

struct TransformerSizes {
  TransformerKind kind = TransformerKind::decoder;
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, ffn = 0, vocabulary = 0, sequence = 0;
  std::vector<std::string> assumed;
};

// Is the row's model a transformer, by its sizes or by its name?
bool is_transformer(const Row& row);
// An Error where layers, width, heads or the sequence are nowhere to be found, or are no transformer's.
Result<TransformerSizes> transformer_sizes(const Row& row);

// How many of what throughput counts there are in a sample: tokens of a sequence, or the sequence itself.
double items_of(const Row& row, std::int64_t sequence);

}  // namespace sibyl::published
