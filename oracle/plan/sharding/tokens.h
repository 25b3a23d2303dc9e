// What sharing a sequence must know ahead (context parallelism): where its tokens come into the program, and where
// attention mixes them. Everything between follows from how tokens arrive (rules/).
//
// Tokens come in as ids that an Embedding looks up, or as features [B, S, E]; the places of a positional table are
// constant ids, one for each token.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

struct Tokens {
  explicit Tokens(const Stage& stage);

  // attention: fused. scores, mix: the two products of one that is taken apart (plan/attention_cores.h). lookup: the
  // first step that reads ids on their way to an Embedding.
  enum class Role { any, lookup, attention, scores, mix };
  std::vector<Role> roles;  // by step

  // A source and the dimension of the sequence in it.
  struct Source {
    LocalTensorId tensor;
    std::size_t dim = 0;
  };
  std::vector<Source> ids;       // what a lookup reads
  std::vector<Source> features;  // inputs of floats

  [[nodiscard]] bool has_sequence() const { return !ids.empty() || !features.empty(); }
  // Of what a lookup reads the dimension of the sequence.
  [[nodiscard]] std::optional<std::size_t> dim_of(LocalTensorId ids) const;
};

// The operand of a lookup that is ids.
std::size_t ids_operand(const Step& lookup);

// The dimension along which heads lie in the operands of a product of attention, fused or not, that ranks may share:
// the one before rows, or before that where the product is broadcast along it. Where that is of extent 1 for queries
// and keys alike it is that of the samples: theirs are heads too, or there is one head of each. None where keys have
// one head for many queries.
std::optional<std::size_t> heads_dim(const Shape& queries, const Shape& keys);

}  // namespace sibyl
