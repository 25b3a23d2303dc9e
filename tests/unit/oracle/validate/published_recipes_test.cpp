// From what a source says in words to device, machine, strategy and model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/validate/published/clusters.h"
#include "oracle/validate/published/devices.h"
#include "oracle/validate/published/frameworks.h"
#include "oracle/validate/published/models.h"
#include "oracle/validate/published/strategies.h"
#include "oracle/validate/published/transformer_sizes.h"
#include "tests/support/published_rows.h"

namespace sibyl::published {
namespace {

using test::row_of;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> shipped = {"a100-pcie-80gb", "a100-sxm-80gb",  "h100-sxm",
                                          "rtx-6000-ada",   "v100-sxm2-16gb", "v100-sxm2-32gb"};

std::string device_of(const std::string& gpu) {
  const auto match = match_device(gpu, shipped);
  return match ? match->calibration : "none";
}

TEST(PublishedDevices, AreToldByChipFormAndMemory) {
  EXPECT_EQ(device_of("A100-SXM-80GB"), "a100-sxm-80gb");
  EXPECT_EQ(device_of("NVIDIA A100-SXM4-80GB"), "a100-sxm-80gb");
  EXPECT_EQ(device_of("A100 80GB PCIe"), "a100-pcie-80gb");
  EXPECT_EQ(device_of("Tesla V100-SXM2-16GB"), "v100-sxm2-16gb");
  EXPECT_EQ(device_of("V100"), "v100-sxm2-32gb");
  EXPECT_EQ(device_of("RTX-6000-Ada"), "rtx-6000-ada");
  EXPECT_EQ(device_of("H100-SXM-80GB"), "h100-sxm");
  EXPECT_EQ(device_of("TPUv4"), "none");
  EXPECT_EQ(device_of("A10"), "none");
}

TEST(PublishedDevices, AnotherVariantIsSaidToBeAssumed) {
  EXPECT_THAT(match_device("A100-SXM-80GB", shipped)->assumed, IsEmpty());
  EXPECT_THAT(match_device("A100-SXM-40GB", shipped)->assumed, Contains(HasSubstr("a100-sxm-80gb")));
  EXPECT_THAT(match_device("A100", shipped)->assumed, Contains(HasSubstr("a100-sxm-80gb")));
}

TEST(PublishedMachines, AreReadFromWords) {
  const auto selene =
      machine_of(row_of(64, 8, "A100-SXM-80GB", "NVLink3+NVSwitch", "IB HDR 8x200Gb/s per node (Selene)"));
  EXPECT_EQ(selene.topology.nodes, 8);
  EXPECT_EQ(selene.topology.device_link.kind, LinkKind::nvswitch);
  EXPECT_EQ(selene.topology.nics_per_node, 8);
  EXPECT_DOUBLE_EQ(selene.topology.nic_bandwidth.value(), 25e9);
  EXPECT_THAT(selene.assumed, IsEmpty());

  const auto p2 = machine_of(row_of(16, 8, "K80", "PCIe3", "10 Gb/s Ethernet (p2.8xlarge)"));
  EXPECT_EQ(p2.topology.device_link.kind, LinkKind::pcie);
  EXPECT_DOUBLE_EQ(p2.topology.device_link.bandwidth.value(), 12e9);
  EXPECT_EQ(p2.topology.nics_per_node, 1);
  EXPECT_DOUBLE_EQ(p2.topology.nic_bandwidth.value(), 1.25e9);

  for (const auto& [devices, bandwidth] : {std::pair{2, 20e9}, {4, 80e9}, {8, 120e9}, {16, 120e9}})
    EXPECT_NEAR(machine_of(row_of(devices, 8, "V100-SXM2-16GB", "NVLink2 hybrid cube mesh", "IB EDR 100Gb/s"))
                    .topology.device_link.bandwidth.value(),
                bandwidth, 1)
        << devices;
  EXPECT_NEAR(
      machine_of(row_of(4, 8, "P100-SXM2-16GB", "NVLink1 hybrid cube mesh", "")).topology.device_link.bandwidth.value(),
      54e9, 1);

  const auto mlperf = machine_of(row_of(64, 8, "A100-SXM-80GB", "NVLINK 3.0, NVSWITCH 2.0 600GB/s",
                                        "Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Management: 1x ConnectX-6 Ethernet "
                                        "100Gb/Sec, Compute: 8x ConnectX-6 IB HDR 200Gb/Sec"));
  EXPECT_EQ(mlperf.topology.nics_per_node, 8);
  EXPECT_DOUBLE_EQ(mlperf.topology.nic_bandwidth.value(), 25e9);

  const auto abci = machine_of(row_of(128, 4, "V100-SXM2-16GB", "NVLink2 (4 GPUs, 50 GB/s links) + PCIe3/PLX",
                                      "IB 2xEDR 100Gb/s per node (ABCI), 1:3 oversubscribed between racks"));
  EXPECT_EQ(abci.topology.device_link.kind, LinkKind::nvlink_mesh);
  EXPECT_EQ(abci.topology.nics_per_node, 2);
  EXPECT_DOUBLE_EQ(abci.topology.oversubscription, 3.0);
}

// 64 GPUs of one NVLink domain are 16 trays with an adapter for each of their four; 16 V100 a machine of two such.
TEST(PublishedMachines, NodesOfSeveralMachinesHaveTheAdaptersOfAll) {
  EXPECT_EQ(machine_of(row_of(128, 64, "GB200", "NVLink5+NVSwitch", "")).topology.nics_per_node, 64);
  EXPECT_EQ(machine_of(row_of(8, 4, "GB200", "NVLink5+NVSwitch", "")).topology.nics_per_node, 4);
  EXPECT_EQ(machine_of(row_of(32, 16, "V100-SXM3-32GB", "NVLink2+NVSwitch", "")).topology.nics_per_node, 8);
  EXPECT_EQ(machine_of(row_of(16, 8, "H100-SXM-80GB", "NVLink4+NVSwitch", "")).topology.nics_per_node, 8);
}

TEST(PublishedMachines, WhatIsNotSaidIsAssumed) {
  const auto silent = machine_of(row_of(16, 8, "A100-SXM-80GB", "", "not stated"));
  EXPECT_EQ(silent.topology.device_link.kind, LinkKind::nvswitch);
  EXPECT_EQ(silent.topology.nics_per_node, 8);
  EXPECT_EQ(silent.assumed.size(), 2U);
  EXPECT_THAT(machine_of(row_of(1, 1, "A100-SXM-80GB", "n/a (single GPU)", "n/a (single node)")).assumed, IsEmpty());
}

Result<StrategyRecipe> strategy_for(const Row& row) { return strategy_of(row, framework_of(row), {}, Device{}); }

TEST(PublishedRows, WordsStandByThemselves) {
  EXPECT_TRUE(says_word("fp16-mixed(AMP)", "amp"));
  EXPECT_FALSE(says_word("TF32 on Ampere+", "amp"));
  EXPECT_FALSE(says_word("p2.8xlarge", "xla"));
  EXPECT_TRUE(says_word("swamp, AMP", "amp"));
}

// torchtitan's policy; other FSDP gathers for each micro-batch.
TEST(PublishedStrategies, ParametersStayGatheredInTorchtitansPipelines) {
  Row row = row_of(8, 8, "H100-SXM-80GB", "", "");
  row.zero = 3, row.framework = "torchtitan (FSDP2)";
  const auto zero_with = [&](int pipeline) {
    row.pp = pipeline, row.dp = 8 / pipeline;
    return strategy_for(row)->strategy.zero;
  };
  EXPECT_EQ(zero_with(1), 3);
  EXPECT_EQ(zero_with(2), 2);
  row.framework = "PyTorch FSDP";
  EXPECT_EQ(zero_with(2), 3);
}

TEST(PublishedStrategies, TakeDegreesAndBatch) {
  Row row = row_of(64, 8, "A100", "", "");
  row.framework = "Megatron-LM";
  row.precision = "fp16-mixed";
  row.dp = 1, row.tp = 8, row.pp = 8, row.vpp = 3, row.sp = true;
  row.global_batch = 64, row.micro_batch = 1;
  row.recompute = "selective";
  const auto recipe = strategy_for(row);
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->strategy.accumulation, 64);  // 64 samples of one replica, one at a time
  EXPECT_EQ(recipe->strategy.schedule, PipelineSchedule::interleaved);
  EXPECT_EQ(recipe->strategy.chunks, 3);
  EXPECT_TRUE(recipe->strategy.sequence);
  EXPECT_TRUE(recipe->strategy.half_weights);
  EXPECT_EQ(recipe->strategy.recompute, Recompute::selective);
  EXPECT_EQ(recipe->strategy.exchange, GradientExchange::at_end);
  EXPECT_EQ(recipe->strategy.optimizer, OptimizerKind::adam);
}

// Two micro-batches of 4 samples on each of 64 devices.
TEST(PublishedStrategies, KnowWhoReducesEveryMicroBatch) {
  Row row = row_of(64, 8, "A100", "", "");
  row.micro_batch = 4;
  const auto reduces = [&](const char* framework, int zero, int pipeline = 1) {
    row.framework = framework, row.zero = zero, row.pp = pipeline, row.dp = 64 / pipeline;
    return strategy_for(row)->strategy.reduces_each();
  };
  EXPECT_TRUE(reduces("llm-foundry (Composer, FSDP)", 3));
  EXPECT_TRUE(reduces("Megatron-Bridge", 3));
  EXPECT_TRUE(reduces("DeepSpeed", 2));
  EXPECT_TRUE(reduces("Hugging Face Trainer + DeepSpeed", 3));
  EXPECT_EQ(strategy_for(row)->strategy.exchange, GradientExchange::overlapped);
  EXPECT_FALSE(reduces("Accelerate, FSDP", 3));
  EXPECT_FALSE(reduces("lit-gpt (Lightning Fabric FSDP)", 3));
  EXPECT_FALSE(reduces("Megatron-Bridge", 1));
  EXPECT_FALSE(reduces("Megatron-Bridge", 3, 2));
  EXPECT_FALSE(reduces("MXNet", 3));
}

// What a micro-batch is has to be told by what fits: one sample in a pipeline, else all of a replica's at first.
TEST(PublishedStrategies, TakeMicroBatchesThatAreNotStated) {
  Row row = row_of(64, 8, "A100", "", "");
  row.dp = 64, row.global_batch = 64 * 12;
  auto recipe = strategy_for(row);
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_TRUE(recipe->micro_batch_open);
  std::vector<std::int64_t> tried{micro_batch_of(recipe->strategy)};
  while (make_micro_batch_smaller(recipe->strategy)) tried.push_back(micro_batch_of(recipe->strategy));
  EXPECT_EQ(tried, (std::vector<std::int64_t>{12, 6, 3, 1}));

  row.global_batch = 64 * ((std::int64_t{1} << 31) - 1);  // a prime number of samples
  recipe = strategy_for(row);
  EXPECT_TRUE(make_micro_batch_smaller(recipe->strategy));
  EXPECT_EQ(micro_batch_of(recipe->strategy), 1);
  row.global_batch = 64 * 12;

  row.dp = 8, row.pp = 8;
  recipe = strategy_for(row);
  EXPECT_EQ(micro_batch_of(recipe->strategy), 1);
  EXPECT_EQ(recipe->strategy.accumulation, 96);
  row.micro_batch = 4;
  EXPECT_FALSE(strategy_for(row)->micro_batch_open);
  EXPECT_EQ(micro_batch_of(strategy_for(row)->strategy), 4);
}

// 2 of 8 devices share each sequence: 4 replicas. Sources do not say how attention's ranks talk.
TEST(PublishedStrategies, ShareSequences) {
  Row row = row_of(8, 8, "A100", "", "");
  row.dp = 4, row.cp = 2;
  const auto recipe = strategy_for(row);
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->strategy.context, 2);
  EXPECT_EQ(recipe->strategy.data, 4);
  EXPECT_THAT(recipe->assumed, Contains(HasSubstr("heads")));
}

TEST(PublishedStrategies, RefuseWhatIsNotStatedOrNotModelled) {
  Row row = row_of(8, 8, "A100", "", "");
  row.dp = 4;
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("8 devices"));
  row.dp = 8;
  row.micro_batch = 3;  // 64 samples are no multiple of 3 x 8
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("no multiple"));
  row.micro_batch.reset();
  row.global_batch.reset();
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("no batch"));
  row.global_batch = 64;
  row.precision = "int4";
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("int4"));
  row.precision.clear();
  row.global_batch = 4;
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("a batch of 4 leaves some of 8 replicas"));
  row.global_batch = 64;
  row.tp = 65536, row.pp = 65536;  // their product is 0 in 32 bits
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("no replicas of 4294967296"));
}

TransformerSizes sizes_of(const char* model) {
  Row row = row_of(8, 8, "A100", "", "");
  row.model = model;
  const auto sizes = transformer_sizes(row);
  EXPECT_TRUE(sizes) << model << ": " << sizes.error().message;
  return sizes.value_or(TransformerSizes{});
}

// Points between digits count, and what stands before or behind the name does not.
TEST(PublishedModels, AreKnownByManyNames) {
  EXPECT_EQ(sizes_of("GPT-3 1.3B").width, 2048);
  EXPECT_EQ(sizes_of("GPT-3 13B").width, 5120);
  EXPECT_EQ(sizes_of("GPT2-1.5B").layers, 48);
  EXPECT_EQ(sizes_of("GPT-2 Medium (345M)").layers, 24);
  EXPECT_EQ(sizes_of("gpt2-124M").layers, 12);
  EXPECT_EQ(sizes_of("meta-llama/Llama-2-7b-hf").ffn, 11008);
  EXPECT_EQ(sizes_of("Meta-Llama-3.1-8B").vocabulary, 128256);
  EXPECT_EQ(sizes_of("llama3_1_8b").vocabulary, 128256);
  EXPECT_EQ(sizes_of("LLAMA3.1-405B").layers, 126);
  EXPECT_EQ(sizes_of("Llama-3.2-1B").layers, 16);
  EXPECT_EQ(sizes_of("Mistral-7B-v0.1").kv_heads, 8);
  EXPECT_TRUE(sizes_of("Qwen2.5-7B").biases);
  EXPECT_EQ(sizes_of("Qwen3-32B").head_width, 128);  // 64 of them: wider than the model
  EXPECT_EQ(sizes_of("Qwen3-8B").head_width, 0);     // 32 of them: as wide
  EXPECT_TRUE(sizes_of("Qwen2.5-0.5B").tied);
  EXPECT_FALSE(sizes_of("Qwen2.5-7B").tied);
  Row row = row_of(8, 8, "A100", "", "");
  for (const char* model : {"ALBERT-base", "DeBERTa-large", "HuBERT-base", "XLM-RoBERTa-base", "GPT-20B", "GPT-2.7B",
                            "LLaMA-1.3B", "GPT-3 1.75B", "Switch-base"}) {
    row.model = model;
    row.family = "transformer";
    EXPECT_FALSE(transformer_sizes(row)) << model;
  }
}

// A row that states a named model's layers, width and heads is of that model in what it leaves out; another is not.
TEST(PublishedModels, AreTheNamedOnesWhereSizesAgree) {
  Row row = row_of(8, 8, "A100", "", "");
  row.model = "Llama-3-8B";
  row.architecture.set("layers", 32.0), row.architecture.set("hidden", 4096.0), row.architecture.set("heads", 32.0);
  EXPECT_EQ(transformer_sizes(row)->kv_heads, 8);
  row.architecture.set("layers", 16.0);
  EXPECT_EQ(transformer_sizes(row)->kv_heads, 32);
}

TEST(PublishedModels, HaveTheExpertsThatAreStatedOrKnown) {
  const TransformerSizes mixtral = sizes_of("Mixtral 8x7B");
  EXPECT_EQ(mixtral.experts.count, 8);
  EXPECT_EQ(mixtral.experts.chosen, 2);
  EXPECT_EQ(mixtral.experts.width, 14336);
  EXPECT_EQ(sizes_of("DeepSeek-MoE-16B").experts.shared_width, 2816);
  EXPECT_EQ(sizes_of("Llama-2-7B").experts.count, 0);

  Row row = row_of(8, 8, "A100", "", "");
  row.model = "my-moe", row.sequence_length = 2048;
  for (const auto& [key, value] :
       {std::pair{"layers", 24.0}, {"hidden", 1024.0}, {"heads", 16.0}, {"ffn", 4096.0}, {"experts", 16.0}})
    row.architecture.set(key, value);
  row.architecture.set("act", std::string("swiglu"));
  EXPECT_THAT(transformer_sizes(row).error().message, HasSubstr("how many experts"));
  row.architecture.set("top_k", 4.0);
  EXPECT_EQ(transformer_sizes(row)->experts.width, 4096);
  row.architecture.set("moe_ffn", 512.0);
  const auto sizes = transformer_sizes(row);
  EXPECT_EQ(sizes->experts.count, 16);
  EXPECT_EQ(sizes->experts.chosen, 4);
  EXPECT_EQ(sizes->experts.width, 512);
  row.architecture.set("top_k", 32.0);
  EXPECT_THAT(transformer_sizes(row).error().message, HasSubstr("32 of 16"));
  row.architecture.set("experts", 1.0);
  EXPECT_THAT(transformer_sizes(row).error().message, HasSubstr("does not state the model's experts"));
}

// 64 devices, each replica of 2: expert parallelism is among the 32 replicas, or stated beside them.
TEST(PublishedStrategies, RanksOfExpertsAreReplicasOfTheRest) {
  Row row = row_of(64, 8, "H100", "", "");
  row.tp = 2, row.dp = 32, row.ep = 8, row.zero = 1;
  row.global_batch = 128, row.micro_batch = 2;
  for (const int dp : {32, 4}) {
    row.dp = dp;
    const auto recipe = strategy_for(row);
    ASSERT_TRUE(recipe) << recipe.error().message;
    EXPECT_EQ(recipe->strategy.data, 4);
    EXPECT_EQ(recipe->strategy.expert, 8);
    EXPECT_EQ(recipe->strategy.accumulation, 2);  // of 128 / 32 / 2
    EXPECT_EQ(recipe->strategy.zero, 1);
  }
  row.dp.reset();
  EXPECT_EQ(strategy_for(row)->strategy.data, 4);
  row.ep = 5;
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("expert parallelism of 5"));
  row.ep = 8, row.dp = 3;
  EXPECT_THAT(strategy_for(row).error().message, HasSubstr("expert=8"));
}

TEST(PublishedModels, VisionTransformersAndT5) {
  const auto name_of = [](const char* model) {
    Row row = row_of(8, 8, "A100", "", "");
    row.model = model;
    const auto recipe = model_of(row);
    return recipe ? recipe->name : recipe.error().message;
  };
  EXPECT_EQ(name_of("ViT-B/16"), "vit 12x768/12 patch 16");
  EXPECT_EQ(name_of("ViT-L/16"), "vit 24x1024/16 patch 16");
  EXPECT_EQ(name_of("vit_huge_patch14_224"), "vit 32x1280/16 patch 14");
  EXPECT_EQ(name_of("DeiT-Base"), "vit 12x768/12 patch 16");
  EXPECT_EQ(name_of("deit_small_patch16_224"), "vit 12x384/6 patch 16");
  EXPECT_EQ(name_of("ViT-H"), "vit 32x1280/16 patch 14");
  EXPECT_THAT(name_of("ViT-X"), HasSubstr("layers"));
  EXPECT_THAT(name_of("T5-base"), HasSubstr("t5base 114"));
  EXPECT_THAT(name_of("T5-base-v1.1"), HasSubstr("version 1.0"));
}

TEST(PublishedModels, SizesComeFromTheRowOrFromTheName) {
  Row row = row_of(8, 8, "A100", "", "");
  row.model = "LLaMA-2-7B";
  const auto named = transformer_sizes(row);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->width, 4096);
  EXPECT_EQ(named->ffn, 11008);
  EXPECT_EQ(named->sequence, 4096);
  EXPECT_FALSE(named->assumed.empty());
  row.architecture.set("hidden", 2048.0);
  row.sequence_length = 512;
  EXPECT_EQ(transformer_sizes(row)->width, 2048);
  EXPECT_EQ(transformer_sizes(row)->sequence, 512);
  row.model = "mystery";
  row.family = "transformer";
  EXPECT_THAT(model_of(row).error().message, HasSubstr("layers"));
  row.model = "T5-11B";
  EXPECT_THAT(model_of(row).error().message, HasSubstr("decoders"));
  row.model = "GPT-530B";
  EXPECT_THAT(model_of(row).error().message, HasSubstr("layers"));
  row.model = "mystery";
  row.family.clear();
  row.architecture = {};
  EXPECT_THAT(model_of(row).error().message, HasSubstr("no recipe"));
}

}  // namespace
}  // namespace sibyl::published
