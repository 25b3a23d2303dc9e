// When replicas begin to exchange gradients; that the means are right is checked by training (sharded/).
#include "trainer/gradient_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/support/graphs.h"
#include "tests/unit/trainer/alone.h"

namespace sibyl::trainer {
namespace {

using Clock = std::chrono::steady_clock;  // one for all processes of a machine

double since_boot(Clock::time_point time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

// Who is done first, rank 1, must not send its part of a parameter of several stages while rank 0 still computes.
TEST(GradientExchange, OfSeveralStagesBeginsWhenAllAreReady) {
  Communicator world = Communicator::world();
  const Graph graph = test::mlp({8, 4}, world.size());
  Strategy strategy;
  strategy.global_batch = world.size();
  strategy.data = world.size();
  const Plan plan = *make_plan(graph, strategy);
  Replica replica = *Replica::create(graph, plan.stages.front(), alone, 1);
  GradientSync sync = plan.stages.front().gradients.front();
  sync.stages = {0, 1};
  sync.overlapped = false;
  GradientExchange exchange(replica, sync, world, world.size());
  Recorder recorder;
  exchange.record(&recorder);
  exchange.begin(true, {});
  replica.forward().backward();
  exchange.pack();
  const Clock::time_point recorded = Clock::now();
  recorder.start();
  if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double ready = since_boot(Clock::now());
  exchange.finish();
  exchange.record(nullptr);

  const std::vector<double> all_ready = world.gather_doubles(ready);
  const TraceProcess process = recorder.process(world.rank());
  std::size_t messages = 0;
  for (const TraceTrack& track : process.tracks)
    for (const TraceSpan& span : track.spans) {
      EXPECT_GE(since_boot(recorded) + span.start.value(), std::ranges::max(all_ready)) << span.name();
      ++messages;
    }
  EXPECT_EQ(messages, sync.first_buckets.size());
}

}  // namespace
}  // namespace sibyl::trainer
