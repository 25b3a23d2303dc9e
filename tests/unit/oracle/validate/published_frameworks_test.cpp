// What frameworks do beside the passes, as their names and a source's notes tell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/import.h"
#include "models/zoo/families.h"
#include "oracle/validate/published/frameworks.h"
#include "oracle/validate/published/models.h"
#include "tests/support/published_rows.h"

namespace sibyl::published {
namespace {

using test::row_of;
using testing::Contains;
using testing::HasSubstr;

FrameworkRecipe framework_for(const char* framework, const char* model, const char* notes = "") {
  Row row = row_of(8, 8, "V100", "", "");
  row.framework = framework;
  row.model = model;
  row.notes = notes;
  return framework_of(row);
}

TEST(PublishedFrameworks, ExchangeWhenTheirScriptsDo) {
  using enum GradientExchange;
  EXPECT_EQ(framework_for("TensorFlow 2.3 (MultiWorkerMirrored)", "BERT-base").exchange, at_end);
  EXPECT_EQ(framework_for("TensorFlow 2.3 (MultiWorkerMirrored)", "ResNet-50 v1.5").exchange, at_end);
  EXPECT_EQ(framework_for("TensorFlow1 (NGC 20.03, Horovod)", "BERT-base").exchange, overlapped);
  EXPECT_EQ(framework_for("PyTorch (NGC 20.03, APEX DDP)", "BERT-base").exchange, at_end);
  EXPECT_EQ(framework_for("PyTorch NGC", "BERT-large-pretrain").exchange, at_end);
  EXPECT_EQ(framework_for("PyTorch NGC (DLE fork)", "BERT-large-SQuAD").exchange, overlapped);
  EXPECT_EQ(framework_for("PyTorch (NGC 20.03, DALI, APEX)", "ResNet-50 v1.5").exchange, overlapped);
  EXPECT_EQ(framework_for("MXNet 1.6 gluon-nlp (Horovod)", "BERT-base").exchange, overlapped);
  EXPECT_EQ(framework_for("Chainer/ChainerMNX", "ResNet-50").exchange, at_end);
}

TEST(PublishedFrameworks, ComputeWhatTheirModelsSpell) {
  EXPECT_TRUE(framework_for("PyTorch (NGC 20.03, APEX DDP)", "BERT-base").every_logit);
  EXPECT_FALSE(framework_for("PyTorch NGC", "BERT-large-pretrain").every_logit);
  EXPECT_FALSE(framework_for("TensorFlow1 (NGC 20.03, Horovod)", "BERT-base").every_logit);
  const FrameworkRecipe plain = framework_for("TensorFlow1 (NGC 20.03, Horovod)", "BERT-base");
  EXPECT_TRUE(plain.apart.layer_norm && plain.apart.gelu_tanh);
  EXPECT_THAT(plain.assumed, Contains(HasSubstr("a kernel each")));
  const FrameworkRecipe compiled = framework_for("TensorFlow NGC", "BERT-base", "XLA; synthetic data");
  EXPECT_FALSE(compiled.apart.layer_norm || compiled.apart.gelu_tanh);
  const FrameworkRecipe other = framework_for("MXNet 1.6 gluon-nlp (Horovod)", "BERT-base");
  EXPECT_FALSE(other.apart.layer_norm || other.apart.gelu_tanh);
}

TEST(PublishedFrameworks, AddBiasesInKernelsOfTheirOwn) {
  for (const char* name : {"TensorFlow1 (NGC 20.03, Horovod)", "MXNet 1.6 gluon-nlp (Horovod)", "OneFlow 0.2",
                           "PaddlePaddle 1.8.3", "PyTorch (NGC 20.03, APEX DDP)"}) {
    const FrameworkRecipe recipe = framework_for(name, "BERT-base");
    EXPECT_TRUE(recipe.apart.linear_bias && recipe.apart.convolution_bias) << name;
  }
  const FrameworkRecipe later = framework_for("PyTorch NGC (DLE fork)", "BERT-large-SQuAD");
  EXPECT_TRUE(!later.apart.linear_bias && later.apart.convolution_bias);
  const FrameworkRecipe compiled = framework_for("TensorFlow NGC", "BERT-base", "XLA; synthetic data");
  EXPECT_FALSE(compiled.apart.linear_bias || compiled.apart.convolution_bias);
}

TEST(PublishedFrameworks, UpdateAsTheirScriptsAreWritten) {
  const FrameworkRecipe first = framework_for("TensorFlow1 (NGC 20.03, Horovod)", "BERT-base");
  EXPECT_TRUE(first.written_update && !first.fused_update);
  EXPECT_TRUE(framework_for("TensorFlow 2.3 (MultiWorkerMirrored)", "BERT-base").fused_update);
  EXPECT_FALSE(framework_for("TensorFlow1 (NGC 20.03, DALI, Horovod)", "ResNet-50 v1.5").written_update);
  EXPECT_EQ(framework_for("PyTorch NGC", "BERT-large-pretrain").optimizer, OptimizerKind::lamb);
  EXPECT_TRUE(framework_for("PyTorch NGC (DLE fork)", "BERT-large-SQuAD").written_update);
}

TEST(PublishedFrameworks, ClipGradientsUnlessTheSourceSaysNot) {
  EXPECT_EQ(framework_for("OneFlow 0.2", "BERT-base").clip, 1);
  EXPECT_EQ(framework_for("OneFlow 0.2", "BERT-base", "no grad clip").clip, 0);
  EXPECT_EQ(framework_for("PyTorch NGC (DLE fork)", "BERT-large-SQuAD").clip, 1);
  EXPECT_EQ(framework_for("MXNet 1.6 gluon-nlp (Horovod)", "BERT-base").clip, 0);
  EXPECT_EQ(framework_for("OneFlow 0.2", "ResNet-50 v1.5").clip, 0);
}

// A layer has two norms and a GELU, the head one each, the embedding a norm; BERT's pooler is not in this model. With
// an operation each there is no norm, but a reciprocal root for each, and a tanh for each GELU.
TEST(PublishedFrameworks, TensorFlowRunsNormsAndGelusInPieces) {
  zoo::Builder builder("bert");
  zoo::BertOptions options{
      .layers = 2, .width = 64, .heads = 4, .seq = 16, .head = zoo::BertHead::masked_language_model};
  options.of_tensorflow = true;
  zoo::bert(builder, options);
  const auto counts = [&](const Apart& apart) {
    ImportOptions import;
    import.batch = 2;
    import.apart = apart;
    const Graph graph = inspect_onnx_bytes(builder.bytes(), "bert", import).value().graph;
    int norms = 0, roots = 0, tanhs = 0, gelus = 0;
    for (const Operation& operation : graph.operations()) {
      norms += std::holds_alternative<Normalization>(operation.attributes) ? 1 : 0;
      const auto* unary = std::get_if<Unary>(&operation.attributes);
      roots += unary && unary->kind == UnaryKind::pow && unary->alpha == -0.5 ? 1 : 0;
      tanhs += unary && unary->kind == UnaryKind::tanh ? 1 : 0;
      gelus += unary && unary->kind == UnaryKind::gelu_tanh ? 1 : 0;
    }
    return std::vector<int>{norms, roots, tanhs, gelus};
  };
  EXPECT_EQ(counts({}), (std::vector<int>{2 * 2 + 2, 0, 0, 3}));
  EXPECT_EQ(counts({.attention = true, .gelu_tanh = true, .layer_norm = true}), (std::vector<int>{0, 6, 3, 0}));
}

TEST(PublishedFrameworks, SayWhereAttentionIsFused) {
  Row row = row_of(8, 8, "A100", "", "");
  row.framework = "Megatron-LM";
  EXPECT_TRUE(framework_of(row).apart.attention);
  row.notes = "with FlashAttention-2";
  EXPECT_FALSE(framework_of(row).apart.attention);
  EXPECT_EQ(framework_of(row).attention, AttentionLibrary::flash2);
  row.notes = "flash attention 3";
  EXPECT_EQ(framework_of(row).attention, AttentionLibrary::flash3);
  row.notes = "flash attention 16 heads";
  EXPECT_EQ(framework_of(row).attention, AttentionLibrary::flash2);
  row.notes = "without FlashAttention";
  EXPECT_TRUE(framework_of(row).apart.attention);
  row.notes = "SDPA";
  EXPECT_FALSE(framework_of(row).apart.attention);
  row.framework = "Megatron-Bridge";
  EXPECT_EQ(framework_of(row).kind, FrameworkKind::nemo);
}

TEST(PublishedFrameworks, FuseWhatTheSourceSays) {
  const auto fused = [](const char* framework, const char* notes) {
    Row row = row_of(8, 8, "A100", "", "");
    row.framework = framework, row.notes = notes;
    return framework_of(row).fused_pointwise;
  };
  EXPECT_FALSE(fused("PyTorch FSDP", ""));
  EXPECT_TRUE(fused("PyTorch FSDP", "torch.compile, SDPA"));
  EXPECT_TRUE(fused("PyTorch DDP", "train_gpt2.py --compile 1 --flash 1"));
  EXPECT_TRUE(fused("lit-gpt (FSDP)", "fused layernorm, swiglu and rotary"));
  EXPECT_TRUE(fused("PyTorch FSDP with Liger kernels", ""));
  EXPECT_FALSE(fused("PyTorch FSDP", "torch.compile off"));
  EXPECT_FALSE(fused("PyTorch FSDP", "no torch.compile"));
  EXPECT_TRUE(fused("Megatron-LM", "no compile")) << "by hand";
}

TEST(PublishedFrameworks, ComposerGathersBlocksLate) {
  Row row = row_of(8, 8, "A100", "", "");
  row.framework = "llm-foundry (Composer, FSDP)", row.zero = 3;
  EXPECT_TRUE(framework_of(row).gather_late);
  EXPECT_THAT(framework_of(row).assumed, Contains(HasSubstr("when the one before has run")));
  row.framework = "PyTorch FSDP";
  EXPECT_FALSE(framework_of(row).gather_late);
}

TEST(PublishedFrameworks, LlmCRunsWithoutOne) {
  Row row = row_of(8, 8, "A100", "", "");
  row.framework = "llm.c", row.model = "gpt2";
  const FrameworkRecipe recipe = framework_of(row);
  EXPECT_TRUE(recipe.half_weights && recipe.fused_pointwise && recipe.dispatch);
  EXPECT_FALSE(recipe.apart.attention);
  EXPECT_THAT(model_of(row)->assumed, Contains(HasSubstr("no dropout")));
  row.framework = "PyTorch DDP (llm.c's train_gpt2.py)";
  EXPECT_FALSE(framework_of(row).half_weights);
  EXPECT_THAT(model_of(row)->assumed, Contains(HasSubstr("no dropout")));
  row.framework = "PyTorch DDP";
  EXPECT_THAT(model_of(row)->assumed, Contains(HasSubstr("dropout of 0.1")));
  row.notes = "no dropout";
  EXPECT_THAT(model_of(row)->assumed, Contains(HasSubstr("no dropout")));
}

TEST(PublishedFrameworks, NemoOf2022HasNoFusedAttention) {
  EXPECT_TRUE(framework_for("NeMo Megatron (22.08)", "GPT3-5B").apart.attention);
  EXPECT_FALSE(framework_for("NeMo 2 (Megatron-Core + TE)", "GPT3-5B").apart.attention);
  const FrameworkRecipe oneflow = framework_for("OneFlow 0.3.5 (OneFlow-GPT)", "GPT-1536x16");
  EXPECT_TRUE(oneflow.fused_pointwise && oneflow.half_weights);
  EXPECT_EQ(oneflow.dispatch, Seconds{8e-6});
}

// Of bf16 and fp8; of fp16 it is an option that nobody is known to have used.
TEST(PublishedFrameworks, MegatronSumsGradientsOfBf16InFull) {
  EXPECT_TRUE(framework_for("Megatron-LM (core 0.6.0)", "llama-3-8b").bf16_sums_in_full);
  EXPECT_TRUE(framework_for("Megatron-DeepSpeed", "GPT-106x12288").bf16_sums_in_full);
  EXPECT_FALSE(framework_for("NeMo 2 (Megatron-Core + TE)", "GPT3-5B").bf16_sums_in_full);
  EXPECT_FALSE(framework_for("llm-foundry (Composer, FSDP)", "mpt-7b").bf16_sums_in_full);
  Row row = row_of(8, 8, "H100-SXM", "", "");
  row.framework = "Megatron-LM (core 0.12, Transformer Engine)", row.notes = "gradients reduced in bf16";
  EXPECT_FALSE(framework_of(row).bf16_sums_in_full);
}

TEST(PublishedFrameworks, JaxIsOneProgram) {
  const FrameworkRecipe jax = framework_for("T5X (JAX)", "T5-v1.1-large");
  EXPECT_TRUE(jax.fused_pointwise && jax.apart.attention && !jax.half_weights);
  EXPECT_FALSE(jax.apart.convolution_bias);
  EXPECT_EQ(jax.dispatch, Seconds{8e-6});
  const FrameworkRecipe engine = framework_for("Paxml (JAX, TE)", "GPT3-5B");
  EXPECT_FALSE(engine.apart.attention);
  EXPECT_EQ(engine.attention, AttentionLibrary::cudnn);
  EXPECT_THAT(engine.assumed, Contains(HasSubstr("weights of f32")));
}

}  // namespace
}  // namespace sibyl::published
