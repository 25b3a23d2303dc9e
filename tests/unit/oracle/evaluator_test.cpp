// Many strategies by one Evaluator, and memory by few micro-batches: what is saved is work, not answers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "oracle/cost/price.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/plan.h"
#include "oracle/predict.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using test::any_cluster, test::any_model, test::any_strategy;

RC_GTEST_PROP(Evaluator, AnswersAsPredictDoesWhateverItWasAskedBefore, ()) {
  const Graph graph = any_model();
  const Cluster cluster = any_cluster();
  Evaluator evaluator(graph, cluster);
  for (int drawn = 0; drawn < 8; ++drawn) {
    const Strategy strategy = any_strategy();
    const auto alone = predict(graph, strategy, cluster);
    const auto evaluation = evaluator.evaluate(strategy);
    const auto prediction = evaluator.predict(strategy);
    RC_ASSERT(alone.has_value() == evaluation.has_value());
    RC_ASSERT(alone.has_value() == prediction.has_value());
    if (!alone) {
      RC_ASSERT(alone.error() == evaluation.error());
      continue;
    }
    for (const Evaluation& other : {*evaluation, static_cast<const Evaluation&>(*prediction)}) {
      RC_ASSERT(alone->step_time.value() == other.step_time.value());
      RC_ASSERT(alone->interval_low.value() == other.interval_low.value());
      RC_ASSERT(alone->memory.total.value() == other.memory.total.value());
      RC_ASSERT(alone->memory.reserved.value() == other.memory.reserved.value());
      RC_ASSERT(alone->fits == other.fits);
    }
    RC_ASSERT(alone->bottleneck.name == prediction->bottleneck.name);
    RC_ASSERT(alone->limits.size() == prediction->limits.size());
  }
}

// A strategy that differs from another in one thing.
Strategy changed(Strategy s) {
  using test::any, test::one_of;
  switch (any(0, 24)) {
    case 0: s.tensor = one_of(1, 2, 4); break;
    case 1: s.sequence = !s.sequence; break;
    case 2: s.filter = one_of(1, 2); break;
    case 3: s.channel = one_of(1, 2); break;
    case 4: s.height = one_of(1, 2); break;
    case 5: s.precision = one_of(Precision::fp32, Precision::bf16); break;
    case 6: s.half_weights = !s.half_weights; break;
    case 7: s.fused_norms = !s.fused_norms; break;
    case 8: s.batch_norm = one_of(BatchNorm::replica, BatchNorm::synchronised); break;
    case 9: s.global_batch *= 2; break;
    case 10: s.data *= 2; break;  // half the micro-batch
    case 11: s.data *= 2, s.global_batch *= 2; break;
    case 12: s.accumulation *= 2, s.global_batch *= 2; break;
    case 13: s.zero = any(0, 3); break;
    case 14: s.recompute = one_of(Recompute::none, Recompute::full); break;
    case 15: s.attention = one_of(AttentionLibrary::flash2, AttentionLibrary::cudnn, AttentionLibrary::timed); break;
    case 16: s.fused_pointwise = !s.fused_pointwise; break;
    case 17: s.overlap_tensor = !s.overlap_tensor; break;
    case 18: s.fused_update = !s.fused_update; break;
    case 19: s.written_update = !s.written_update; break;
    case 20: s.zero = any(2, 3), s.reduce_each = !s.reduce_each; break;
    case 21: s.zero = 3, s.gather_late = !s.gather_late; break;
    case 22: s.fp32_gradients = !s.fp32_gradients; break;
    case 23: s.whole_experts = !s.whole_experts; break;
    default: s.optimizer = one_of(OptimizerKind::sgd, OptimizerKind::adam); break;
  }
  return s;
}

bool equal(const Stage& a, const Stage& b) {
  if (a.steps.size() != b.steps.size() || a.tensors.size() != b.tensors.size()) return false;
  for (std::size_t t = 0; t < a.tensors.size(); ++t)
    if (a.tensors[t].shape != b.tensors[t].shape || a.tensors[t].dtype != b.tensors[t].dtype) return false;
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    const auto *one = std::get_if<Compute>(&a.steps[i]), *other = std::get_if<Compute>(&b.steps[i]);
    if ((one == nullptr) != (other == nullptr)) return false;
    if (one && (signature(a, *one) != signature(b, *other) || one->fused != other->fused)) return false;
  }
  return true;
}

// Programs are kept by what they depend on: a strategy that has another one must not be given this.
RC_GTEST_PROP(Evaluator, StrategiesOfOneProgramHaveIt, ()) {
  const Graph graph = any_model();
  Strategy a = any_strategy();
  a.batch_norm = test::one_of(BatchNorm::replica, BatchNorm::synchronised);
  const Strategy b = changed(changed(a));
  const auto one = make_program(graph, a), other = make_program(graph, b);
  if (one && other && program_key(a) == program_key(b)) RC_ASSERT(equal(*one, *other));
}

// What is not looked at: else little would be saved.
TEST(Evaluator, ProgramsDoNotDependOnWhatComesAfterThem) {
  const Strategy a{.tensor = 2, .data = 2, .global_batch = 16, .accumulation = 2, .precision = Precision::bf16};
  Strategy b = a;
  b.pipeline = 4, b.schedule = PipelineSchedule::interleaved, b.chunks = 2, b.zero = 3, b.recompute = Recompute::full;
  b.optimizer = OptimizerKind::adam, b.clip = 1, b.order = {MeshAxis::data}, b.bucket = Bytes{1};
  EXPECT_TRUE(program_key(a) == program_key(b));
  b.data = 4, b.accumulation = 1;  // four samples at once, still
  EXPECT_TRUE(program_key(a) == program_key(b));
  b.accumulation = 2;
  EXPECT_FALSE(program_key(a) == program_key(b));
}

RC_GTEST_PROP(Footprint, IsThatOfAllMicroBatches, ()) {
  constexpr Bytes segment{20.0 * 1024 * 1024};  // of the caching allocator: the free lists do not come again exactly
  const Graph graph = any_model();
  const Cluster cluster = any_cluster();
  const Device& device = cluster.kernels.device();
  const Strategy strategy = any_strategy();
  const auto plan = make_plan(graph, strategy);
  if (!plan) return;
  const std::vector<PricedStage> priced = price(*plan, cluster);
  const auto peak = [&](int coordinate, MicroBatches which) {
    return plan->stages.size() == 1 ? footprint(plan->stages[0], priced[0], strategy, device, which).peak
                                    : footprint(*plan, priced, coordinate, device, which).peak;
  };
  for (int c = 0; c < static_cast<int>(plan->schedule.size()); ++c) {
    const MemoryBreakdown all = peak(c, MicroBatches::all), enough = peak(c, MicroBatches::enough);
    RC_ASSERT(all.total.value() == enough.total.value());
    RC_ASSERT(all.reserved >= enough.reserved);
    RC_ASSERT(all.reserved - enough.reserved <= segment);
  }
}

}  // namespace
}  // namespace sibyl
