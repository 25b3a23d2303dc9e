#include "oracle/plan/sharding/policy.h"

#include <algorithm>

#include "oracle/axis_list.h"

namespace sibyl {
namespace {

struct Row {
  Policy policy;
  int turn = 0;
};

std::vector<Row> in_their_turns() {
  using W = Policy::Weights;
  using H = Policy::Home;
  std::vector<Row> rows = {
#define SIBYL_POLICY(name, shares, weights, sums, image_dim, turn) \
  Row{{W::weights, H::sums, MeshAxis::name, image_dim}, turn},
      SIBYL_AXES(SIBYL_POLICY)
#undef SIBYL_POLICY
  };
  std::erase_if(rows, [](const Row& row) { return row.policy.weights == W::none; });
  std::ranges::sort(rows, {}, &Row::turn);
  return rows;
}

}  // namespace

std::vector<Policy> policies(const Strategy& s) {
  static const std::vector<Row> rows = in_their_turns();
  std::vector<Policy> used;
  for (const Row& row : rows)
    if (s.degree(row.policy.axis) > 1) used.push_back(row.policy);
  for (Policy& policy : used) {
    policy.context_exchange = s.context_exchange;
    if (policy.axis != MeshAxis::tensor) continue;
    policy.whole_experts = s.whole_experts;
    if (!s.sequence) continue;
    policy.home = Policy::Home::sequence;
    policy.sequence_parts = s.context;
  }
  return used;
}

}  // namespace sibyl
