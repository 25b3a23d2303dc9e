// How one axis of the mesh shares the work: the little in which strategies differ, once the rules are known.
#pragma once

#include <cstddef>
#include <vector>

#include "oracle/plan/plan.h"
#include "oracle/plan/sharding/variant.h"

namespace sibyl {

struct Policy {
  // How multiplications by weights are cut: the first possible of these. alternate: by rows where the operand arrives
  // with its features split, else by columns. image, tokens: whole; what is multiplied is split, and how it comes in.
  // experts, tables: each rank takes its samples through layers whose weights all ranks have, and experts, or columns
  // of the tables that are looked up in, are dealt out. none: the axis splits no replica.
  enum class Weights { none, alternate, columns, rows, image, tokens, experts, tables } weights = Weights::alternate;
  // How summands are put together: on every rank, or split over ranks along the features or along the sequence
  // (dimension 1 of [batch, sequence, features]) where that divides.
  enum class Home { whole, features, sequence } home = Home::whole;
  MeshAxis axis = MeshAxis::tensor;
  std::size_t image_dim = 0;  // image: the model's images are split along this dimension, the last being 1
  // Home::sequence: an axis after this one divides the sequence into so many parts, of each of which this one's ranks
  // hold theirs.
  std::int64_t sequence_parts = 1;
  ContextExchange context_exchange = ContextExchange::automatic;  // tokens
  bool whole_experts = false;                                     // alternate: experts are dealt out and not cut
  OperationId until = {};  // the last operation that it splits; invalid: it goes as far as it can
};

// The axes that share one replica's work, in the order they are applied. To add one: its line in axis_list.h
// (docs/adding.md).
std::vector<Policy> policies(const Strategy& strategy);

}  // namespace sibyl
