// Timelines of real steps.
#include "trainer/recorder.h"

#include <gmock/gmock.h>

#include "tests/support/graphs.h"
#include "tests/unit/trainer/alone.h"
#include "trainer/operation_spans.h"
#include "trainer/replica.h"

namespace sibyl::trainer {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const TraceTrack& track) {
  std::vector<std::string> result;
  for (const TraceSpan& span : track.spans) result.push_back(span.name());
  return result;
}

void expect_in_order(const TraceTrack& track) {
  Seconds before;
  for (const TraceSpan& span : track.spans) {
    EXPECT_GE(span.start, before) << span.name();
    EXPECT_GE(span.end, span.start) << span.name();
    before = span.end;
  }
}

// The very names that a predicted step of the same model has (tests/unit/oracle/trace_test.cpp).
TEST(OperationSpans, name_every_operation_both_ways) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  const Plan plan = *make_plan(graph, strategy);
  Replica replica = *Replica::create(graph, plan.stages.front(), alone, 1);
  Recorder recorder;
  OperationSpans spans(graph, plan.stages.front(), recorder);
  recorder.start();
  spans.begin_turn({Turn::Kind::forward, 0, 0});
  const at::Tensor loss = replica.forward(&spans);
  spans.begin_turn({Turn::Kind::backward, 0, 0});
  loss.backward();
  spans.end_backward();
  const TraceProcess process = recorder.process(3);
  EXPECT_EQ(process.name, "rank 3, measured");
  ASSERT_EQ(process.tracks.size(), 1U);
  EXPECT_EQ(process.tracks[0].name, "compute");
  EXPECT_THAT(names(process.tracks[0]),
              ElementsAre("fc1 forward", "fc1.relu forward", "fc2 forward", "loss forward", "loss backward",
                          "fc2 backward", "fc1.relu backward", "fc1 backward"));
  expect_in_order(process.tracks[0]);
}

// Both forwards before both backwards, the later one first, as a pipeline's stage may run them.
TEST(OperationSpans, tell_micro_batches_apart) {
  const Graph graph = test::mlp({4, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  const Plan plan = *make_plan(graph, strategy);
  Replica replica = *Replica::create(graph, plan.stages.front(), alone, 1);
  Recorder recorder;
  OperationSpans spans(graph, plan.stages.front(), recorder);
  recorder.start();
  std::vector<at::Tensor> losses;
  for (int i = 0; i < 2; ++i) {
    spans.begin_turn({Turn::Kind::forward, i, 0});
    losses.push_back(replica.forward(&spans));
  }
  for (const int i : {1, 0}) {
    spans.begin_turn({Turn::Kind::backward, i, 0});
    (losses[static_cast<std::size_t>(i)] / 2.0).backward();  // the division belongs to no operation
    spans.end_backward();
  }
  const TraceProcess process = recorder.process(0);
  std::vector<int> micro_batches;
  for (const TraceSpan& span : process.tracks[0].spans) micro_batches.push_back(span.micro_batch.value_or(-1));
  EXPECT_THAT(micro_batches, ElementsAre(0, 0, 1, 1, 1, 1, 0, 0));
  EXPECT_THAT(names(process.tracks[0]), ElementsAre("fc1 forward", "loss forward", "fc1 forward", "loss forward",
                                                    "loss backward", "fc1 backward", "loss backward", "fc1 backward"));
}

TEST(OperationSpans, watch_nothing_once_gone) {
  const Graph graph = test::mlp({4, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  const Plan plan = *make_plan(graph, strategy);
  Replica replica = *Replica::create(graph, plan.stages.front(), alone, 1);
  Recorder recorder;
  at::Tensor loss;
  {
    OperationSpans spans(graph, plan.stages.front(), recorder);
    recorder.start();
    spans.begin_turn({Turn::Kind::forward, 0, 0});
    loss = replica.forward(&spans);
  }
  loss.backward();
  EXPECT_THAT(names(recorder.process(0).tracks.at(0)), ElementsAre("fc1 forward", "loss forward"));
}

TEST(Recorder, starts_anew) {
  Recorder recorder;
  recorder.start();
  { const Recording recording(&recorder, Recorder::Track::host, "fill inputs", "data"); }
  ASSERT_EQ(recorder.process(0).tracks.size(), 1U);
  EXPECT_EQ(recorder.process(0).tracks[0].name, "host");
  recorder.start();
  EXPECT_TRUE(recorder.process(0).tracks.empty());
}

}  // namespace
}  // namespace sibyl::trainer
