#include "oracle/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "oracle/cost/kernels.h"
#include "tests/support/cancelling.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/strategies.h"

namespace sibyl {
namespace {

using test::data_parallel;
using testing::ElementsAre;

// Every kernel at 1 ms; networks are so fast that messages take microseconds.
Cluster one_millisecond_each(const Graph& graph, const Strategy& strategy, Device device = test::cpu_device()) {
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(*make_plan(graph, strategy), device.backend))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  return test::cluster(strategy.data, 1, BytesPerSecond{1e9}, std::move(samples), std::move(device));
}

std::vector<std::string> names(const TraceTrack& track) {
  std::vector<std::string> result;
  for (const TraceSpan& span : track.spans) result.push_back(span.name());
  return result;
}

const TraceTrack* track(const TraceProcess& process, const std::string& name) {
  const auto found = std::ranges::find(process.tracks, name, &TraceTrack::name);
  return found == process.tracks.end() ? nullptr : &*found;
}

// One rank computes, and has neither messages nor waits. Each of 4 operations takes 1 ms each way, 4 updates 4 ms.
TEST(TraceStep, SerialStepIsOneTrack) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Strategy strategy = data_parallel(1, 2);
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy));
  ASSERT_TRUE(trace.has_value());
  ASSERT_EQ(trace->processes.size(), 1U);
  const TraceProcess& rank = trace->processes[0];
  EXPECT_EQ(rank.name, "rank 0, predicted");
  ASSERT_EQ(rank.tracks.size(), 1U);
  EXPECT_EQ(rank.tracks[0].name, "compute");
  EXPECT_THAT(names(rank.tracks[0]),
              ElementsAre("fc1 forward", "fc1.relu forward", "fc2 forward", "loss forward", "loss backward",
                          "fc2 backward", "fc1.relu backward", "fc1 backward", "optimizer"));
  const TraceSpan& relu = rank.tracks[0].spans[1];
  EXPECT_NEAR(relu.start.value(), 1e-3, 1e-12);
  EXPECT_NEAR(relu.end.value(), 2e-3, 1e-12);
  EXPECT_NEAR(rank.tracks[0].spans.back().end.value(), 12e-3, 1e-12);
}

// Two replicas: each gradient is copied to the bucket when it is there, sent when all are, and copied back.
TEST(TraceStep, BucketsStandOnTheirOwnTrack) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Strategy strategy = data_parallel(2, 4);
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy));
  const TraceProcess& rank = trace->processes.at(0);
  EXPECT_EQ(rank.name, "rank 0 (and 1 alike), predicted");
  const TraceTrack* compute = track(rank, "compute");
  const TraceTrack* communication = track(rank, "communication");
  ASSERT_TRUE(compute != nullptr && communication != nullptr);
  EXPECT_THAT(names(*communication), ElementsAre("all-reduce bucket 0"));
  EXPECT_EQ(compute->spans[compute->spans.size() - 2].name(), "copy gradients back");
  EXPECT_EQ(compute->spans.back().name(), "optimizer");
  // Sent after the last backward, copied back after that.
  const TraceSpan& message = communication->spans[0];
  EXPECT_GE(message.start, compute->spans[compute->spans.size() - 3].end);
  EXPECT_NEAR(compute->spans[compute->spans.size() - 2].start.value(), message.end.value(), 1e-12);
}

// 4 x 8 weights times 2 samples: 2 * 2 * 4 * 8 FLOPs; the bucket holds 4*8 + 8 + 8*3 + 3 = 67 elements of 4 B.
TEST(TraceStep, SpansSayWhatIsKnown) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Strategy strategy = data_parallel(2, 4);
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy));
  const auto argument = [](const TraceSpan& span, std::string_view name) {
    const auto found = std::ranges::find(span.arguments(), name, &TraceArgument::name);
    EXPECT_NE(found, span.arguments().end()) << name;
    return found == span.arguments().end() ? TraceArgument{} : *found;
  };
  const TraceSpan& fc1 = track(trace->processes[0], "compute")->spans[0];
  const double flops = std::get<double>(argument(fc1, "flops").value);
  EXPECT_GE(flops, 128);
  EXPECT_LE(flops, 128 + 16);  // the bias' additions may count
  EXPECT_EQ(std::get<std::string>(argument(fc1, "kind").value), "linear");
  EXPECT_EQ(std::get<std::string>(argument(fc1, "provenance").value), "measured");
  EXPECT_EQ(fc1.micro_batch, 0);
  const TraceSpan& bucket = track(trace->processes[0], "communication")->spans[0];
  EXPECT_DOUBLE_EQ(std::get<double>(argument(bucket, "bytes").value), 268);
}

TEST(TraceStep, MicroBatchesAreNumbered) {
  const Graph graph = test::mlp({4, 3}, 2);
  Strategy strategy = data_parallel(1, 4);
  strategy.accumulation = 2;
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy));
  std::vector<int> numbers;
  for (const TraceSpan& span : trace->processes[0].tracks[0].spans)
    if (span.micro_batch) numbers.push_back(*span.micro_batch);  // the update has none
  EXPECT_THAT(numbers, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

// Launches of 10 ms for kernels of 1 ms: before each kernel the host is waited for.
TEST(TraceStep, LaunchesThatAreWaitedForStandOnTheHost) {
  Device slow_host = test::cpu_device();
  slow_host.backend = Backend::cuda;
  slow_host.dispatch = Seconds{10e-3};
  const Graph graph = test::mlp({4, 3}, 2);
  const Strategy strategy = data_parallel(1, 2);
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy, slow_host));
  const TraceTrack* host = track(trace->processes[0], "host");
  ASSERT_NE(host, nullptr);
  EXPECT_THAT(names(*host), ElementsAre("launch fc1 forward", "launch loss forward", "launch loss backward",
                                        "launch fc1 backward", "launch optimizer"));
  EXPECT_NEAR(host->spans[1].start.value(), 11e-3, 1e-12);
  EXPECT_NEAR(host->spans[1].end.value(), 20e-3, 1e-12);
}

// Whatever is waited for, the timeline ends when the predicted step does, and no track overlaps itself.
TEST(TraceStep, EndsAtThePredictedStepTime) {
  const Graph graph = test::mlp({64, 128, 10}, 4);
  Strategy strategy = data_parallel(4, 16);
  strategy.bucket = strategy.first_bucket = Bytes{1024};
  strategy.data_source = DataSource::storage;
  for (const double rate : {1e12, 100.0}) {
    Cluster cluster = test::cluster(4, 1);
    cluster.storage_read = BytesPerSecond{rate};
    cluster.overlap = {1.2, 1.3, 0.0};
    cluster.composition.spread = 0.05;  // so that there is a slowest rank
    const auto trace = trace_step(graph, strategy, cluster);
    ASSERT_TRUE(trace.has_value());
    Seconds end;
    for (const TraceTrack& t : trace->processes[0].tracks) {
      Seconds before;
      for (const TraceSpan& span : t.spans) {
        EXPECT_GE(span.start.value(), before.value() - 1e-15) << t.name << span.name();
        EXPECT_GE(span.end, span.start) << span.name();
        before = span.end;
      }
      end = std::max(end, before);
    }
    EXPECT_NEAR(end.value(), trace->prediction.step_time.value(), 1e-12);
    std::vector<std::string> waits = names(*track(trace->processes[0], "host"));
    EXPECT_EQ(std::ranges::count(waits, "wait for the slowest rank"), 1);
    EXPECT_EQ(std::ranges::count(waits, "wait for samples"), rate < 1e6 ? 1 : 0);
  }
}

// The critical spans in order of time.
std::vector<TraceSpan> critical(const PredictedTrace& trace) {
  std::vector<TraceSpan> chain;
  for (const TraceProcess& process : trace.processes)
    for (const TraceTrack& t : process.tracks)
      for (const TraceSpan& span : t.spans)
        if (span.critical) chain.push_back(span);
  std::ranges::stable_sort(chain, {}, [](const TraceSpan& span) { return span.start.value(); });
  return chain;
}

// Each begins when the one before it ends, the first at once and the last with the step.
void expect_chain(const PredictedTrace& trace) {
  Seconds before;
  for (const TraceSpan& span : critical(trace)) {
    EXPECT_NEAR(span.start.value(), before.value(), 1e-9) << span.name();
    before = span.end;
  }
  EXPECT_NEAR(before.value(), trace.prediction.step_time.value(), 1e-9);
}

TEST(CriticalPath, SerialStepIsAllOfIt) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Strategy strategy = data_parallel(1, 2);
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy));
  EXPECT_EQ(critical(*trace).size(), 9U);
  expect_chain(*trace);
}

// A network so slow that the message of fc3 outlasts what is left of backward: then the others are sent, and what was
// computed beside them waits. Kernels before the last three (loss and fc3's backward with its copies) are on the path.
TEST(CriticalPath, GoesThroughTheMessagesThatAreWaitedFor) {
  const Graph graph = test::mlp({4, 8, 8, 3}, 2);
  Strategy strategy = data_parallel(2, 4);
  strategy.bucket = strategy.first_bucket = Bytes{64};  // a bucket for every parameter but small ones
  Cluster slow = one_millisecond_each(graph, strategy);
  slow.network = test::cluster(2, 1, BytesPerSecond{1e3}).network;
  const auto trace = trace_step(graph, strategy, slow);
  expect_chain(*trace);
  const TraceTrack* messages = track(trace->processes[0], "communication");
  ASSERT_NE(messages, nullptr);
  ASSERT_GT(messages->spans.size(), 1U);
  for (const TraceSpan& message : messages->spans) EXPECT_TRUE(message.critical) << message.name();
  const TraceTrack* compute = track(trace->processes[0], "compute");
  const auto named = [&](const std::string& name) {
    return *std::ranges::find(compute->spans, name, &TraceSpan::name);
  };
  EXPECT_TRUE(named("fc3 backward").critical);
  EXPECT_FALSE(named("fc2 backward").critical);
  EXPECT_FALSE(named("fc1 backward").critical);
  EXPECT_TRUE(named("optimizer").critical);
}

TEST(CriticalPath, GoesThroughLaunches) {
  Device slow_host = test::cpu_device();
  slow_host.backend = Backend::cuda;
  slow_host.dispatch = Seconds{10e-3};
  const Graph graph = test::mlp({4, 3}, 2);
  const Strategy strategy = data_parallel(1, 2);
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy, slow_host));
  expect_chain(*trace);
  for (const TraceSpan& span : track(trace->processes[0], "host")->spans) EXPECT_TRUE(span.critical) << span.name();
}

// Two stages, fc1 of 1 ms a pass and all else of 3 ms. With GPipe's order the second stage is busy from when it gets
// the first micro-batch: the path is the forward that it waits for, all its turns, and the backward that waits for it.
TEST(CriticalPath, CrossesAPipeline) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = data_parallel(1, 4);
  strategy.pipeline = 2;
  strategy.accumulation = 2;
  strategy.schedule = PipelineSchedule::gpipe;
  strategy.stage_starts = {"fc1.relu"};
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(*make_plan(graph, strategy), Backend::cpu))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  const auto trace = trace_step(graph, strategy, test::cluster(2, 1, BytesPerSecond{1e9}, std::move(samples)));
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  expect_chain(*trace);
  const TraceProcess& first = trace->processes.at(0);
  const TraceProcess& second = trace->processes.at(1);
  const auto lit = [](const TraceTrack* spans) {
    std::vector<std::string> result;
    for (const TraceSpan& span : spans->spans)
      if (span.critical) result.push_back(span.name());
    return result;
  };
  EXPECT_THAT(lit(track(first, "compute")), ElementsAre("fc1 forward", "fc1 backward", "optimizer"));
  EXPECT_THAT(lit(track(second, "compute")),
              ElementsAre("fc1.relu forward", "fc2 forward", "loss forward", "fc1.relu forward", "fc2 forward",
                          "loss forward", "loss backward", "fc2 backward", "fc1.relu backward", "loss backward",
                          "fc2 backward", "fc1.relu backward"));
  EXPECT_EQ(lit(track(first, "sends")).size(), 1U);
  EXPECT_EQ(lit(track(second, "sends")).size(), 1U);
}

// Whatever the schedule and whatever else the plan does.
TEST(CriticalPath, IsAsLongAsTheStep) {
  const Graph graph = test::mlp({64, 128, 128, 128, 128, 10}, 4);
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                              PipelineSchedule::interleaved, PipelineSchedule::zero_bubble})
    for (const double clip : {0.0, 1.0}) {
      Strategy strategy = data_parallel(2, 32);
      strategy.pipeline = 2;
      strategy.accumulation = 4;
      strategy.schedule = schedule;
      strategy.chunks = schedule == PipelineSchedule::interleaved ? 2 : 1;
      strategy.clip = clip;
      Cluster cluster = test::cluster(4, 1);
      cluster.overlap = {1.2, 1.3, 0.0};
      const auto trace = trace_step(graph, strategy, cluster);
      ASSERT_TRUE(trace.has_value()) << trace.error().message;
      const std::vector<TraceSpan> chain = critical(*trace);
      ASSERT_FALSE(chain.empty());
      Seconds length;
      for (const TraceSpan& span : chain) length += span.end - span.start;
      EXPECT_NEAR(length.value(), trace->prediction.step_time.value(), 1e-9) << schedule_text(strategy) << clip;
    }
  for (const int zero : {1, 3}) {
    Strategy strategy = data_parallel(4, 16);
    strategy.zero = zero;
    const auto trace = trace_step(graph, strategy, test::cluster(4, 1, BytesPerSecond{1e7}));
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    expect_chain(*trace);
  }
}

// Beyond what can be shown a pipeline's turns stand for their kernels, and still end with the step.
TEST(TraceStep, LongPipelinesShowTurnsAlone) {
  const Graph graph = test::mlp({64, 128, 10}, 4);
  Strategy strategy = data_parallel(1, 32);
  strategy.pipeline = 2;
  strategy.accumulation = 4;
  const auto all = trace_step(graph, strategy, test::cluster(2, 1));
  const auto few = trace_step(graph, strategy, test::cluster(2, 1), 10);
  ASSERT_TRUE(all.has_value() && few.has_value());
  ASSERT_NE(track(few->processes[0], "turns"), nullptr);
  EXPECT_EQ(track(few->processes[0], "turns")->spans.size(), track(all->processes[0], "turns")->spans.size());
  EXPECT_THAT(names(*track(few->processes[0], "compute")), ElementsAre("optimizer"));
  expect_chain(*few);
  strategy.pipeline = 1;
  EXPECT_EQ(trace_step(graph, strategy, test::cluster(2, 1), 10).error().code, ErrorCode::infeasible);
}

TEST(TraceStep, EndsWhenItIsCancelled) {
  const Graph graph = test::mlp({64, 128, 10}, 4);
  for (const int stages : {1, 2}) {
    Strategy strategy = data_parallel(1, 8);
    strategy.pipeline = stages;
    strategy.accumulation = 2;
    test::expect_ends_when_cancelled(
        [&](const Cancelled& cancelled) { return trace_step(graph, strategy, test::cluster(2, 1), 1000, cancelled); });
  }
}

TEST(TraceStep, WhatCannotBePricedCannotBeDrawn) {
  EXPECT_EQ(trace_step(test::mlp({4, 3}, 2), data_parallel(4, 4), test::cluster(2, 1)).error().code,
            ErrorCode::infeasible);
}

}  // namespace
}  // namespace sibyl
