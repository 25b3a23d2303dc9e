// Plans of a strategy by its text, for tests of how programs are shared.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "oracle/plan/plan.h"

namespace sibyl::test {

// One micro-batch of the graph's batch for each replica.
inline Plan plan_of(const Graph& graph, std::string_view parallel, const std::string& until = {}) {
  Strategy strategy;
  strategy.split_until = until;
  strategy.global_batch = graph.batch();
  EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
  strategy.global_batch *= strategy.data;
  const auto plan = make_plan(graph, strategy);
  EXPECT_TRUE(plan.has_value()) << (plan ? "" : to_string(plan.error()));
  return plan ? *plan : Plan{{}, {}, 1, {Stage{}}, {}};
}

inline const LocalTensor& parameter(const Graph& graph, const Stage& stage, std::string_view name) {
  for (const LocalTensor& tensor : stage.tensors)
    if (tensor.kind == TensorKind::parameter && graph[tensor.origin].name == name) return tensor;
  ADD_FAILURE() << "no parameter " << name;
  return stage.tensors.front();
}

}  // namespace sibyl::test
