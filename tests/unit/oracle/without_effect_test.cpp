// What was asked for in vain is said; what counts is not.
#include "oracle/without_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/experts.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WithoutEffect : public testing::Test {
 protected:
  static Strategy strategy(const char* parallel) {
    Strategy s;
    s.global_batch = 8;
    EXPECT_TRUE(parse_parallel(parallel, s)) << parallel;
    return s;
  }
  std::vector<std::string> of(const Graph& graph, const Strategy& s) const {
    const auto p = predict(graph, s, cluster_);
    EXPECT_TRUE(p) << to_string(p.error());
    return p ? p->without_effect : std::vector<std::string>{};
  }

  Graph cnn_ = test::zoo("small-cnn-bn", 8), lenet_ = test::zoo("lenet", 8), bert_ = test::zoo("bert-tiny", 8);
  Cluster cluster_ = test::cluster(1, 4);
};

TEST_F(WithoutEffect, SequencesThatAreNotThere) {
  EXPECT_THAT(of(cnn_, strategy("tensor=2,sequence=2")),
              ElementsAre("sequence=2: no sums of sequences of tokens were found that 2 ranks could share"));
  EXPECT_THAT(of(bert_, strategy("tensor=2,sequence=2")), IsEmpty());
  Strategy beside = strategy("tensor=2");
  beside.overlap_tensor = true;
  EXPECT_THAT(of(bert_, beside),
              ElementsAre("--overlap-tensor: there are no exchanges of sequence= to go on beside products"));
  beside.sequence = true;
  EXPECT_THAT(of(bert_, beside), IsEmpty());
}

TEST_F(WithoutEffect, WhatReplicasWouldShare) {
  for (int zero : {1, 2, 3}) {
    Strategy alone = strategy("tensor=2"), two = strategy("data=2");
    alone.zero = two.zero = zero;
    EXPECT_THAT(of(cnn_, alone),
                ElementsAre("--zero " + std::to_string(zero) + ": there are no replicas that could share state"));
    EXPECT_THAT(of(cnn_, two), IsEmpty());
  }
  Strategy once = strategy("data=2"), single = strategy("tensor=2");
  once.zero = single.zero = 2, once.reduce_each = single.reduce_each = true;
  EXPECT_THAT(of(cnn_, once), ElementsAre("--reduce-each: there is one micro-batch"));
  once.accumulation = single.accumulation = 2;
  EXPECT_THAT(of(cnn_, once), IsEmpty());
  EXPECT_THAT(of(cnn_, single), testing::Contains("--reduce-each: there are no replicas that could share state"));
  Strategy late = strategy("data=2");
  late.gather_late = true, late.zero = 2;
  EXPECT_THAT(of(cnn_, late),
              ElementsAre("--backward-prefetch post: no parameters are gathered block by block (--zero 3)"));
  late.zero = 3;
  EXPECT_THAT(of(cnn_, late), IsEmpty());
  Strategy alone = strategy("data=1"), two = strategy("data=2"), pixels = strategy("spatial=2x1");
  alone.compression = two.compression = pixels.compression = {Compression::Kind::fp16};
  EXPECT_THAT(of(cnn_, alone), ElementsAre("--compress fp16: no gradients are summed over ranks"));
  EXPECT_THAT(of(cnn_, two), IsEmpty());
  EXPECT_THAT(of(cnn_, pixels), IsEmpty()) << "ranks that share an image sum them, too";
}

TEST_F(WithoutEffect, BatchNormThatIsWholeOrNotThere) {
  Strategy alone = strategy("filter=2"), two = strategy("data=2");
  alone.batch_norm = two.batch_norm = BatchNorm::synchronised;
  EXPECT_THAT(of(cnn_, alone), ElementsAre("--batch-norm synchronised: one rank has all samples"));
  EXPECT_THAT(of(lenet_, two), ElementsAre("--batch-norm synchronised: the model has no batch-norm"));
  EXPECT_THAT(of(cnn_, two), IsEmpty());
}

TEST_F(WithoutEffect, SelectiveRecomputingWithoutAttention) {
  Strategy s = strategy("data=2");
  s.recompute = Recompute::selective;
  EXPECT_THAT(of(lenet_, s), ElementsAre("--recompute selective: no attention was found that could be run again"));
  EXPECT_THAT(of(bert_, s), IsEmpty());
}

// The last two stages, the norm behind the layers and the head, run again what they have from the stage before alone.
TEST_F(WithoutEffect, ActivationsThatCannotLeave) {
  const Graph gpt2 = test::zoo("gpt2-mini", 8);
  Strategy stages = strategy("pipeline=4"), one = strategy("data=1");
  stages.recompute = one.recompute = Recompute::full;
  stages.stage_starts = {"h.2.ln_2", "ln_f", "MatMul.123"};
  EXPECT_THAT(of(gpt2, stages), IsEmpty());
  stages.activation_tier = one.activation_tier = Tier::host;
  EXPECT_THAT(of(gpt2, stages),
              ElementsAre("--offload activations: nothing that blocks keep could leave the device of stages 2, 3; "
                          "what a stage has from another, or hands on, stays"));
  EXPECT_THAT(of(gpt2, one), IsEmpty());
}

// A device of before Ampere computes in f32 what may be tf32: the step is the same to the last bit.
TEST_F(WithoutEffect, Tf32OnADeviceThatHasNone) {
  const Cluster v100 = *load_cluster("dgx1-v100"), a100 = *load_cluster("dgx-a100");
  Strategy tf32 = strategy("data=2"), fp32 = tf32;
  tf32.precision = Precision::tf32;
  const Prediction on_v100 = *predict(cnn_, tf32, v100), on_a100 = *predict(cnn_, tf32, a100);
  EXPECT_THAT(on_v100.without_effect, ElementsAre("--precision tf32: the device has none, and computes in fp32"));
  EXPECT_EQ(on_v100.step_time, predict(cnn_, fp32, v100)->step_time);
  EXPECT_EQ(on_v100.memory.needed(), predict(cnn_, fp32, v100)->memory.needed());
  EXPECT_THAT(on_a100.without_effect, IsEmpty());
  EXPECT_NE(on_a100.step_time, predict(cnn_, fp32, a100)->step_time);
}

TEST_F(WithoutEffect, OptionsOfWhatIsNotThere) {
  Strategy ring = strategy("data=2"), experts = ring, norms = ring, kinds = ring;
  ring.context_exchange = ContextExchange::ring;
  EXPECT_THAT(of(bert_, ring), ElementsAre("--context-exchange ring: sequences are not split (context=)"));
  experts.dropless = true;
  EXPECT_THAT(of(test::mixture_of_experts(1), experts), ElementsAre("--dropless: experts are not dealt out (expert=)"));
  experts.dropless = false, experts.whole_experts = true;
  EXPECT_THAT(of(test::mixture_of_experts(1), experts),
              ElementsAre("--whole-experts: there are no ranks of tensor= that could deal them out"));
  norms.fused_norms = true;
  EXPECT_THAT(of(lenet_, norms), ElementsAre("--fused-norms: the model has no batch-norm"));
  EXPECT_THAT(of(cnn_, norms), IsEmpty());
  kinds.recompute = Recompute::operations, kinds.recompute_kinds = {"gelu"};
  EXPECT_THAT(of(lenet_, kinds), ElementsAre("--recompute gelu: nothing was found that could be run again so"));
  EXPECT_THAT(of(bert_, kinds), IsEmpty());
}

TEST_F(WithoutEffect, UpdatesThatAreOneKernelInAnyCase) {
  Device gpu = test::cpu_device();  // whose host takes no time to launch
  gpu.backend = Backend::cuda;
  const Cluster cluster = test::cluster(1, 4, BytesPerSecond{1e9}, {}, gpu);
  for (const auto& [kind, counts] : {std::pair{OptimizerKind::adam, true}, {OptimizerKind::lamb, false}}) {
    Strategy fused = strategy("data=2");
    fused.optimizer = kind, fused.fused_update = true;
    const Prediction with = *predict(cnn_, fused, cluster);
    EXPECT_EQ(with.without_effect.empty(), counts);
    fused.fused_update = false;
    EXPECT_EQ(with.step_time < predict(cnn_, fused, cluster)->step_time, counts);
  }
}

// What is said to have no effect has none.
TEST_F(WithoutEffect, ChangesNeitherTimeNorMemoryNorBytes) {
  const Strategy plain = strategy("tensor=2");
  std::vector<Strategy> others(7, plain);
  others[0].zero = 1, others[1].zero = 3, others[2].sequence = true, others[3].overlap_tensor = true;
  others[4].compression = {Compression::Kind::one_bit};
  others[5].batch_norm = BatchNorm::synchronised;
  others[6].recompute = Recompute::selective;
  const Prediction expected = *predict(cnn_, plain, cluster_);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Prediction other = *predict(cnn_, others[i], cluster_);
    EXPECT_EQ(other.without_effect.size(), 1U) << i;
    EXPECT_EQ(other.step_time, expected.step_time) << i;
    EXPECT_EQ(other.memory.needed(), expected.memory.needed()) << i;
    EXPECT_EQ(other.bytes_sent, expected.bytes_sent) << i;
  }
}

TEST_F(WithoutEffect, NothingOfAPlainStrategy) {
  for (const char* parallel : {"data=1", "data=4", "data=2,tensor=2", "pipeline=2"})
    EXPECT_THAT(of(cnn_, strategy(parallel)), IsEmpty()) << parallel;
}

}  // namespace
}  // namespace sibyl
