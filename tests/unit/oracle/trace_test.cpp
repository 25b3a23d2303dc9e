#include "oracle/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "oracle/cost/kernels.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

using testing::ElementsAre;

Strategy data_parallel(int replicas, std::int64_t batch) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = batch;
  return strategy;
}

// Every kernel at 1 ms; networks are so fast that messages take microseconds.
Cluster one_millisecond_each(const Graph& graph, const Strategy& strategy, Device device = test::cpu_device()) {
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(*make_plan(graph, strategy), device.backend))
    samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
  return test::cluster(strategy.data, 1, BytesPerSecond{1e9}, std::move(samples), std::move(device));
}

std::vector<std::string> names(const TraceTrack& track) {
  std::vector<std::string> result;
  for (const TraceSpan& span : track.spans) result.push_back(span.name);
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
  EXPECT_EQ(compute->spans[compute->spans.size() - 2].name, "copy gradients back");
  EXPECT_EQ(compute->spans.back().name, "optimizer");
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
    const auto found = std::ranges::find(span.arguments, name, &TraceArgument::name);
    EXPECT_NE(found, span.arguments.end()) << name;
    return found == span.arguments.end() ? TraceArgument{} : *found;
  };
  const TraceSpan& fc1 = track(trace->processes[0], "compute")->spans[0];
  const double flops = std::get<double>(argument(fc1, "flops").value);
  EXPECT_GE(flops, 128);
  EXPECT_LE(flops, 128 + 16);  // the bias' additions may count
  EXPECT_EQ(std::get<std::string>(argument(fc1, "kind").value), "linear");
  EXPECT_EQ(std::get<std::string>(argument(fc1, "provenance").value), "measured");
  EXPECT_EQ(std::get<std::int64_t>(argument(fc1, "micro_batch").value), 0);
  const TraceSpan& bucket = track(trace->processes[0], "communication")->spans[0];
  EXPECT_DOUBLE_EQ(std::get<double>(argument(bucket, "bytes").value), 268);
}

TEST(TraceStep, MicroBatchesAreNumbered) {
  const Graph graph = test::mlp({4, 3}, 2);
  Strategy strategy = data_parallel(1, 4);
  strategy.accumulation = 2;
  const auto trace = trace_step(graph, strategy, one_millisecond_each(graph, strategy));
  std::vector<std::int64_t> numbers;
  for (const TraceSpan& span : trace->processes[0].tracks[0].spans)
    for (const TraceArgument& a : span.arguments)
      if (a.name == "micro_batch") numbers.push_back(std::get<std::int64_t>(a.value));
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
        EXPECT_GE(span.start.value(), before.value() - 1e-15) << t.name << span.name;
        EXPECT_GE(span.end, span.start) << span.name;
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

TEST(TraceStep, WhatCannotBePricedCannotBeDrawn) {
  EXPECT_EQ(trace_step(test::mlp({4, 3}, 2), data_parallel(4, 4), test::cluster(2, 1)).error().code,
            ErrorCode::infeasible);
}

}  // namespace
}  // namespace sibyl
