#include "trainer/emulated_device.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/graphs.h"

namespace sibyl::trainer {
namespace {

// Two stages of one rank: what both launched takes twice as long, whoever waits for it. Sleeping takes no less on any
// machine.
TEST(EmulatedDevice, RunsKernelsOfAllItsStagesInTurn) {
  const Graph graph = test::mlp({4, 3}, 2);
  Strategy strategy;
  strategy.global_batch = 2;
  const Plan plan = *make_plan(graph, strategy);
  const EmulatedStage times{};
  EmulatedClock clock;
  EmulatedDevice first(plan.stages.front(), times, Backend::cpu, false, clock);
  EmulatedDevice second(plan.stages.front(), times, Backend::cpu, false, clock);
  EmulatedWork work;
  work.duration = Seconds{0.02};
  const auto start = std::chrono::steady_clock::now();
  first.begin_step();
  second.begin_step();
  first.run(work);
  second.run(work);
  second.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40));
  second.run(work);
  first.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));
  EXPECT_NEAR(first.busy().value(), 0.02, 1e-9);
  EXPECT_NEAR(second.busy().value(), 0.04, 1e-9);
}

}  // namespace
}  // namespace sibyl::trainer
