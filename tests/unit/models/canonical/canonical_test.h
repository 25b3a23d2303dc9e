// A graph that a test builds, and what canonicalisation makes of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/canonical/canonical.h"
#include "tests/unit/models/graph_builder.h"

namespace sibyl::test {

using Names = std::vector<std::string>;

struct CanonicalTest : testing::Test {
  GraphBuilder b;
  Graph result;

  // The operations that are left, or the error.
  Names canonical(std::vector<TensorId> outputs = {}) {
    auto graph = canonicalize(b.finish(std::move(outputs)));
    if (!graph) return {to_string(graph.error())};
    result = std::move(*graph);
    return operations_of(result);
  }
};

inline Names canonical(GraphBuilder& b, std::vector<TensorId> outputs = {}) {
  const auto graph = canonicalize(b.finish(std::move(outputs)));
  return graph ? operations_of(*graph) : Names{to_string(graph.error())};
}

}  // namespace sibyl::test
