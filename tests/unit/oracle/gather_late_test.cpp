// ZeRO 3 backward: blocks gathered beside the one before them, or behind it (--backward-prefetch post).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/predict.h"
#include "oracle/simulate/step.h"
#include "tests/support/clusters.h"
#include "tests/support/footprints.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

// Two replicas of a perceptron whose five layers are a unit each.
Strategy sharded(bool late, int zero = 3) {
  Strategy strategy;
  strategy.data = 2;
  strategy.global_batch = 8;
  strategy.zero = zero;
  strategy.bucket = Bytes{1};
  strategy.gather_late = late;
  return strategy;
}
const Ints widths = {512, 512, 512, 512, 512, 512};

std::vector<NamedSpan> spans_of(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  const Plan plan = *make_plan(graph, strategy);
  return timeline(graph, plan.stages[0], price(plan, plan.stages[0], cluster), {});
}

double step_of(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  const Plan plan = *make_plan(graph, strategy);
  return simulate_step(plan.stages[0], price(plan, plan.stages[0], cluster), {}).total.value();
}

// Of an operation's backward, not of the host's launch of it.
bool is_backward(const NamedSpan& span) {
  return span.name.find("backward") != std::string::npos && !span.name.starts_with("launch");
}

// Every layer is given up after forward and gathered again, the last one at once; late, each of the others when
// backward of the layer behind it has ended, where else it begins before that.
TEST(GatherLate, BeginsWhenTheUnitBeforeHasRun) {
  const Graph graph = test::mlp(widths, 4);
  const Cluster cluster = test::cluster(2, 1);
  for (const bool late : {false, true}) {
    const std::vector<NamedSpan> spans = spans_of(graph, sharded(late), cluster);
    int gathered = 0, behind = 0;
    Seconds backward_began{1e9};
    for (const NamedSpan& span : spans)
      if (is_backward(span)) backward_began = std::min(backward_began, span.span.start);
    for (const NamedSpan& span : spans) {
      if (span.kind != NamedSpan::Kind::gather || span.span.start < backward_began) continue;
      ++gathered;
      const bool beside = std::ranges::any_of(spans, [&](const NamedSpan& other) {
        return is_backward(other) && other.span.start < span.span.start && span.span.start < other.span.end;
      });
      behind += beside ? 0 : 1;
    }
    EXPECT_EQ(gathered, 5) << late;
    EXPECT_EQ(behind == gathered, late) << behind << " of " << gathered;
  }
}

TEST(GatherLate, WaitsForEveryGatherBackward) {
  const Graph graph = test::mlp(widths, 4);
  for (const double rate : {1e8, 1e9, 1e10}) {
    const Cluster cluster = test::cluster(2, 1, BytesPerSecond{rate});
    const double early = step_of(graph, sharded(false), cluster), late = step_of(graph, sharded(true), cluster);
    EXPECT_GE(late, early) << rate;
  }
  // Over a wire that is quicker than the layers the gathers of all units but two would have been hidden.
  const Cluster quick = test::cluster(2, 1, BytesPerSecond{1e10});
  EXPECT_GT(step_of(graph, sharded(true), quick), 1.001 * step_of(graph, sharded(false), quick));
  EXPECT_EQ(step_of(graph, sharded(true, 2), quick), step_of(graph, sharded(false, 2), quick))
      << "stage 2 has no units";
}

// Nothing but when: the same bytes, and where most is held backward one unit less, a layer's 512 * 512 weights and
// biases.
TEST(GatherLate, SendsTheSameAndHoldsAUnitLess) {
  const Graph graph = test::mlp(widths, 4);
  const auto sent = [&](bool late) {
    return bytes_sent_per_step(make_plan(graph, sharded(late)).value(), 0, Algorithm::ring);
  };
  EXPECT_EQ(sent(true), sent(false));
  const auto held = [&](bool late) { return test::footprint_of(graph, sharded(late)).peak.total; };
  EXPECT_EQ(held(false) - held(true), Bytes{4 * 513 * 512});
}

}  // namespace
}  // namespace sibyl
