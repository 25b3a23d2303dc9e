#include "oracle/wiring_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/predict.h"
#include "tests/support/cancelling.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

Graph gpt2(std::int64_t batch) {
  ImportOptions options;
  options.batch = batch;
  options.dims["seq"] = 64;
  return inspect_onnx_bytes(*zoo_model_bytes("gpt2-mini"), "gpt2-mini", options)->graph;
}

// Weights 4 x 8, 8, 8 x 3 and 3; every operation once, in order; nothing is sent but gradients.
TEST(Wiring, OfReplicasHasGradientsAlone) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Strategy strategy{.data = 2, .global_batch = 4};
  const auto wired = wiring(graph, strategy, test::cluster(2, 1));
  ASSERT_TRUE(wired.has_value());
  ASSERT_EQ(wired->operations.size(), 4U);
  EXPECT_EQ(wired->operations[0].parameters, 4 * 8 + 8);
  EXPECT_EQ(wired->operations[2].parameters, 8 * 3 + 3);
  EXPECT_EQ(wired->operations[0].output, "2x8");
  EXPECT_EQ(wired->operations[0].local_output, "2x8");
  EXPECT_GE(wired->operations[0].forward.value(), 2 * 2 * 4 * 8);
  EXPECT_TRUE(wired->wires.empty());
  ASSERT_EQ(wired->gradients.size(), 1U);
  EXPECT_EQ(wired->gradients[0].kind, "all-reduce");
  EXPECT_EQ(wired->gradients[0].ranks, 2);
  EXPECT_EQ(wired->gradients[0].bytes.value(), 67 * 4);
  EXPECT_THAT(wired->operations[0].gradients, testing::ElementsAre(0U));
  EXPECT_TRUE(wired->operations[1].gradients.empty());
}

// The second stage begins with fc2: what the ReLU makes, 2 x 8 floats, goes there and its gradient comes back.
TEST(Wiring, StagesAreJoinedBySends) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy{.data = 1, .pipeline = 2, .stage_starts = {"fc2"}, .global_batch = 4, .accumulation = 2};
  const auto wired = wiring(graph, strategy, test::cluster(2, 1));
  ASSERT_TRUE(wired.has_value()) << wired.error().message;
  EXPECT_EQ(wired->stages, 2);
  std::vector<int> stages;
  for (const WiredOperation& operation : wired->operations) stages.push_back(operation.stage);
  EXPECT_THAT(stages, testing::ElementsAre(0, 0, 1, 1));
  ASSERT_EQ(wired->wires.size(), 1U);
  const Wire& wire = wired->wires[0];
  EXPECT_EQ(graph[wire.from].name, "fc1.relu");
  ASSERT_EQ(wire.to.size(), 1U);
  EXPECT_EQ(graph[wire.to[0]].name, "fc2");
  ASSERT_EQ(wire.transfers.size(), 2U);
  EXPECT_EQ(wire.transfers[0].kind, "send");
  EXPECT_EQ(wire.transfers[0].bytes.value(), 2 * 8 * 4);
  EXPECT_EQ(wire.transfers[1].pass, Pass::backward);
  EXPECT_EQ(wire.transfers[1].bytes.value(), 2 * 8 * 4);
}

// By hand: fc1 has 4 x 8 + 8 parameters, fc2 8 x 3 + 3; what the stages send is one message each way.
TEST(Wiring, PartsAreSummed) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy{.data = 1, .pipeline = 2, .stage_starts = {"fc2"}, .global_batch = 4, .accumulation = 2};
  const Wiring wired = wiring(graph, strategy, test::cluster(2, 1)).value();
  Prediction prediction;
  prediction.operations = {{"fc1", "", {Seconds{1}}, {Seconds{2}}},
                           {"fc2", "", {Seconds{4}}, {Seconds{8}}},
                           {"fc2", "", {Seconds{16}}, {Seconds{}}},
                           {"of another model", "", {Seconds{32}}, {Seconds{32}}}};
  const std::vector<PassTimes> times = pass_times(graph, prediction);
  ASSERT_EQ(times.size(), graph.operations().size());
  const std::vector<OperationId> both{OperationId{0}, OperationId{2}};
  const PartSum sum = sum_of_part(wired, times, both);
  EXPECT_EQ(sum.parameters, 4 * 8 + 8 + 8 * 3 + 3);
  EXPECT_EQ(sum.forward, wired.operations[0].forward + wired.operations[2].forward);
  EXPECT_EQ(sum.backward, wired.operations[0].backward + wired.operations[2].backward);
  EXPECT_EQ(sum.time.forward.value(), 1 + 4 + 16);
  EXPECT_EQ(sum.time.both().value(), 21 + 2 + 8);
  const std::vector<std::size_t> all{0};
  const std::vector<SentByKind> kinds = sent_by_kind(wired, all);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].pass, Pass::forward);
  EXPECT_EQ(kinds[1].pass, Pass::backward);
  EXPECT_EQ(kinds[1].kind, "send");
  EXPECT_EQ(kinds[0].sent.bytes.value(), 2 * 8 * 4);
  EXPECT_EQ(sent_in_all(wired, all).messages, 2);
  EXPECT_EQ(sent_in_all(wired, all).bytes.value(), 2 * 2 * 8 * 4);
  EXPECT_EQ(sent_in_all(wired, {}).messages, 0);
}

// One message of the 67 parameters' gradients carries those of both layers.
TEST(Wiring, MessagesOfAPartAreCountedOnce) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Wiring wired = wiring(graph, {.data = 2, .global_batch = 4}, test::cluster(2, 1)).value();
  EXPECT_EQ(gradient_bytes(wired).value(), 67 * 4);
  const std::vector<PassTimes> times(wired.operations.size());
  EXPECT_THAT(sum_of_part(wired, times, wired.order).gradients, testing::ElementsAre(0U));
}

// Per layer attention and MLP each sum their ranks' shares forward, and their input's gradients backward (Megatron-LM):
// of 4 layers 8 all-reduces of batch x sequence x width floats each way.
TEST(Wiring, TensorParallelLayersAreSummed) {
  const Graph graph = gpt2(2);
  const Strategy strategy{.tensor = 2, .global_batch = 2};
  const auto wired = wiring(graph, strategy, test::cluster(1, 2));
  ASSERT_TRUE(wired.has_value()) << wired.error().message;
  const double bytes = 2.0 * 64 * 256 * 4;
  int forward = 0, backward = 0;
  for (const Wire& wire : wired->wires)
    for (const WireTransfer& transfer : wire.transfers) {
      EXPECT_EQ(transfer.axis, MeshAxis::tensor);
      EXPECT_EQ(transfer.ranks, 2);
      EXPECT_GT(transfer.time.value(), 0);
      if (transfer.kind != "all-reduce" || transfer.bytes.value() != bytes) continue;
      (transfer.pass == Pass::forward ? forward : backward) += 1;
    }
  EXPECT_GE(forward, 8);
  EXPECT_GE(backward, 8);
  const auto split = [&](const std::string& name) {
    const auto found = std::ranges::find(graph.operations(), name, &Operation::name);
    return wired->operations[static_cast<std::size_t>(found - graph.operations().begin())].splits;
  };
  ASSERT_EQ(split("h.0.mlp.c_fc").size(), 1U);
  EXPECT_EQ(split("h.0.mlp.c_fc")[0].ways, 2);
  EXPECT_THAT(split("h.0.mlp.c_fc")[0].what, testing::HasSubstr("split"));
}

// Equal layers are blocks of one kind, apart and in order; with them each operation has its place once.
TEST(Wiring, LayersAreBlocks) {
  const Graph graph = gpt2(2);
  const auto wired = wiring(graph, {.data = 2, .global_batch = 4}, test::cluster(2, 1));
  ASSERT_TRUE(wired.has_value());
  std::set<OperationId> once(wired->order.begin(), wired->order.end());
  EXPECT_EQ(once.size(), graph.operations().size());
  EXPECT_EQ(wired->order.size(), graph.operations().size());
  ASSERT_GE(wired->blocks.size(), 4U);
  std::size_t end = 0, alike = 0;
  for (const Wiring::Block& block : wired->blocks) {
    EXPECT_GE(block.begin, end);
    EXPECT_GT(block.end, block.begin);
    end = block.end;
    alike += block.kind == wired->blocks[1].kind ? 1 : 0;
  }
  EXPECT_GE(alike, 3U);
}

TEST(Wiring, EndsWhenItIsCancelled) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  test::expect_ends_when_cancelled([&](const Cancelled& cancelled) {
    return wiring(graph, {.pipeline = 2, .global_batch = 2}, test::cluster(2, 1), cancelled);
  });
}

TEST(Wiring, WhatCannotBeSplitHasNone) {
  EXPECT_EQ(wiring(test::mlp({4, 3}, 2), {.tensor = 7, .global_batch = 2}, test::cluster(7, 1)).error().code,
            ErrorCode::infeasible);
}

}  // namespace
}  // namespace sibyl
