// Which ranks share state, by a source's words and the strategy that they make.
#include "oracle/validate/published/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/validate/published/frameworks.h"
#include "oracle/validate/published/models.h"
#include "oracle/validate/published/strategies.h"

namespace sibyl::published {
namespace {

using testing::HasSubstr;

struct Said {
  std::string words;
  std::optional<int> stage;
  int ranks = 0;
  bool in_node = false;
  int replicas = 0;
};

TEST(PublishedShards, AreReadFromWords) {
  for (const Said& said : std::vector<Said>{
           {"FSDP", 3},
           {"FSDP 256", 3, 256},
           {"FSDP hybrid shard", 3, 0, true},
           {"HSDP", 3, 0, true},
           {"HSDP: full shard within node (8), replicated across 12 nodes", 3, 8, true, 12},
           {"FSDP 128 x replica 2 (HSDP; dp column = 256 = all data parallel)", 3, 128, false, 2},
           {"FSDP 8 inside the node x replica 32", 3, 8, true, 32},
           {"ZeRO-1 group of 8 GPUs in the node, replicated across nodes", 1, 8, true},
           {"ZeRO2", 2},
           {"ZeRO-1 over all of DP", 1},
           {"sharded over 4 ranks", std::nullopt, 4},
       }) {
    const std::optional<Shards> shards = shards_of(said.words);
    ASSERT_TRUE(shards) << said.words;
    EXPECT_EQ(shards->stage, said.stage) << said.words;
    EXPECT_EQ(shards->ranks, said.ranks) << said.words;
    EXPECT_EQ(shards->in_node, said.in_node) << said.words;
    EXPECT_EQ(shards->replicas, said.replicas) << said.words;
  }
}

TEST(PublishedShards, OtherWordsAreNotGuessedAt) {
  for (const char* words :
       {"", "Alpa auto sharding over a 1x8 mesh", "spatial: each sample split over 8 GPUs of a node",
        "dcn_data 16 x dcn_fsdp 2 x ici_expert 8", "FSDP 8 and 16", "FSDP over 16 nodes", "FSDP 0", "ZeRO-4", "ZeRO4",
        "8 ranks"})
    EXPECT_FALSE(shards_of(words)) << words;
}

TEST(PublishedShards, GroupsDivideTheReplicas) {
  EXPECT_EQ(group_of({.stage = 3}, 64, 8), 64);
  EXPECT_EQ(group_of({.stage = 3, .ranks = 16}, 64, 8), 16);
  EXPECT_EQ(group_of({.stage = 3, .in_node = true}, 64, 8), 8);
  EXPECT_EQ(group_of({.stage = 3, .in_node = true}, 64, 0), 64) << "a replica is wider than a node";
  EXPECT_EQ(group_of({.stage = 3, .replicas = 4}, 64, 8), 16);
  EXPECT_EQ(group_of({.stage = 3, .ranks = 16, .replicas = 4}, 64, 8), 16);
  EXPECT_EQ(group_of({.stage = 3, .ranks = 16, .replicas = 2}, 64, 8), std::nullopt);
  EXPECT_EQ(group_of({.stage = 3, .ranks = 24}, 64, 8), std::nullopt);
  EXPECT_EQ(group_of({.stage = 3, .replicas = 3}, 64, 8), std::nullopt);
}

Row row_of(const char* other_parallel) {
  Row row;
  row.model = "llama-2-7b";
  row.gpu = "A100";
  row.gpus = 64;
  row.gpus_per_node = 8;
  row.dp = 32;
  row.tp = 2;
  row.global_batch = 64;
  row.precision = "bf16";
  row.metric = Metric::iteration_time;
  row.framework = "PyTorch FSDP";
  row.other_parallel = other_parallel;
  return row;
}

Result<StrategyRecipe> recipe_of(const Row& row) {
  SIBYL_TRY(const ModelRecipe model, model_of(row));
  return strategy_of(row, framework_of(row), model, Device{});
}

TEST(PublishedShards, MakeTheStrategy) {
  const auto zero = [](const Row& row) {
    const Strategy strategy = recipe_of(row)->strategy;
    return std::pair(strategy.zero, strategy.zero_ranks);
  };
  EXPECT_EQ(zero(row_of("")), std::pair(0, 0));
  EXPECT_EQ(zero(row_of("FSDP 32")), std::pair(3, 0)) << "all of them";
  EXPECT_EQ(zero(row_of("HSDP")), std::pair(3, 4)) << "eight of a node are four replicas of two";
  EXPECT_EQ(zero(row_of("ZeRO-1 group of 8, replicated")), std::pair(1, 8));
  EXPECT_EQ(zero(row_of("ZeRO-1 group of 1, replicated")), std::pair(0, 0));
  Row silent = row_of("HSDP");
  silent.gpus_per_node.reset();
  EXPECT_EQ(zero(silent), std::pair(3, 4)) << "nodes of eight, as the machine is taken to have";
  Row stages = row_of("HSDP");
  stages.dp = 16, stages.pp = 2;
  EXPECT_EQ(zero(stages), std::pair(3, 4)) << "a pipeline's other stages lie on other nodes";
  Row stated = row_of("sharded over 8 ranks");
  stated.zero = 2;
  EXPECT_EQ(zero(stated), std::pair(2, 8));
}

TEST(PublishedShards, SayTheStageWhereNoColumnDoes) {
  EXPECT_EQ(zero_stage(row_of("FSDP 256")), 3);
  EXPECT_EQ(zero_stage(row_of("a mesh of its own")), 0);
  Row deepspeed = row_of("ZeRO-3 over all");
  deepspeed.framework = "DeepSpeed";
  EXPECT_EQ(framework_of(deepspeed).exchange, GradientExchange::overlapped);
  deepspeed.other_parallel = "ZeRO-1 over all";
  EXPECT_EQ(framework_of(deepspeed).exchange, GradientExchange::at_end);
}

TEST(PublishedShards, SayWhatIsWrong) {
  EXPECT_THAT(recipe_of(row_of("FSDP 24")).error().message, HasSubstr("'FSDP 24' does not divide 32 replicas"));
  EXPECT_THAT(recipe_of(row_of("a mesh of its own")).error().message, HasSubstr("not modelled"));
  Row twice = row_of("FSDP");
  twice.zero = 1;
  EXPECT_THAT(recipe_of(twice).error().message, HasSubstr("'FSDP' beside zero of 1"));
}

}  // namespace
}  // namespace sibyl::published
