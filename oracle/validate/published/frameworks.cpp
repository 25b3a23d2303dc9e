#include "oracle/validate/published/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "oracle/validate/published/cells.h"
#include "oracle/validate/published/shards.h"

namespace sibyl::published {
namespace {

struct Named {
  std::string_view word;  // in the row's framework, lower case; the first that is there counts
  FrameworkKind kind;
};

constexpr auto names = std::to_array<Named>({
    {"accelerate", FrameworkKind::hugging_face},
    {"hugging", FrameworkKind::hugging_face},
    {"transformers", FrameworkKind::hugging_face},
    {"(hf)", FrameworkKind::hugging_face},
    {"paxml", FrameworkKind::jax},
    {"t5x", FrameworkKind::jax},
    {"flax", FrameworkKind::jax},
    {"nemo megatron (22.", FrameworkKind::megatron},  // before FlashAttention and Transformer Engine were in it
    {"oneflow-gpt", FrameworkKind::megatron},         // DLPerf's, after Megatron-LM, with its fused kernels
    {"nemo", FrameworkKind::nemo},
    {"megatron-bridge", FrameworkKind::nemo},
    {"megatron bridge", FrameworkKind::nemo},
    {"megatron-core", FrameworkKind::nemo},
    {"megatron core", FrameworkKind::nemo},
    {"transformer engine", FrameworkKind::nemo},
    {"maxtext", FrameworkKind::nemo},
    {"megatron", FrameworkKind::megatron},
    {"deepspeed", FrameworkKind::megatron},
    {"colossal", FrameworkKind::megatron},
    {"torchtitan", FrameworkKind::fsdp},
    {"fsdp", FrameworkKind::fsdp},
    {"llm-foundry", FrameworkKind::fsdp},
    {"composer", FrameworkKind::fsdp},
    {"litgpt", FrameworkKind::fsdp},
    {"lit-gpt", FrameworkKind::fsdp},
    {"torchtune", FrameworkKind::fsdp},
    {"fairscale", FrameworkKind::fsdp},
    {"metaseq", FrameworkKind::fsdp},
    {"neox", FrameworkKind::megatron},
    {"nanotron", FrameworkKind::megatron},
    {"internevo", FrameworkKind::internevo},
    {"internlm", FrameworkKind::internevo},
    {"pytorch", FrameworkKind::pytorch},
    {"tensorflow", FrameworkKind::tensorflow},
});

bool says(const std::string& text, std::string_view word) { return lower_case(text).find(word) != std::string::npos; }

FrameworkKind kind_of(const std::string& framework) {
  const std::string text = lower_case(framework);
  for (const Named& named : names)
    if (text.find(named.word) != std::string::npos) return named.kind;
  return FrameworkKind::other;
}

// Executors of static graphs, and launches captured once in CUDA graphs (NVIDIA's submissions to MLPerf): no Python
// stands between two operations. What one takes there was not measured.
constexpr Seconds without_python{8e-6};
constexpr auto executors =
    std::to_array<std::string_view>({"tensorflow", "mxnet", "oneflow", "paddle", "jax", "maxtext"});

void set_dispatch(const Row& row, FrameworkRecipe& recipe) {
  const bool executed = recipe.kind == FrameworkKind::jax || std::ranges::any_of(executors, [&](std::string_view word) {
                          return says(row.framework, word);
                        });
  if (!executed && !says(row.source, "mlperf")) return;
  recipe.dispatch = without_python;
  recipe.assumed.emplace_back("8 us of the host for an operation, of which none is Python's");
}

bool pre_trains_bert(const Row& row) { return says(row.model, "bert") && !says(row.model, "squad"); }

void set_megatron(FrameworkRecipe& recipe) {
  recipe.name = "Megatron-LM";
  recipe.fused_pointwise = true;  // bias_dropout_add, bias_gelu (megatron/model)
  recipe.apart = {.attention = true};
  recipe.half_weights = true;
  recipe.exchange = GradientExchange::at_end;
  recipe.clip = 1.0;
  recipe.assumed = {"attention as two products and a softmax fused with scale and mask",
                    "weights of two bytes with f32 masters", "gradients exchanged after backward",
                    "Adam, gradients clipped", "elementwise operations in a row one kernel"};
}

// Transformer Engine takes cuDNN's attention on Hopper where it can (its documentation, "Attention", backends).
void set_nemo(FrameworkRecipe& recipe) {
  recipe.name = "Megatron-Core";
  recipe.attention = AttentionLibrary::cudnn;
  recipe.overlap_tensor = true;   // ub_tp_comm_overlap of its performance configurations
  recipe.fused_pointwise = true;  // rotary positions, SwiGLU, bias_dropout_add (megatron/core/fusions)
  recipe.half_weights = true;
  recipe.clip = 1.0;
  recipe.assumed = {"fused attention, cuDNN's",
                    "weights of two bytes with f32 masters",
                    "exchanges of gradients overlapped",
                    "those of tensor parallelism beside products",
                    "Adam, gradients clipped",
                    "elementwise operations in a row one kernel"};
}

// One program that XLA compiles: what is elementwise is fused, weights are f32 and cast where they are used, and nobody
// stands between kernels. Attention is XLA's, two products and a softmax, unless Transformer Engine brings cuDNN's.
void set_jax(const Row& row, FrameworkRecipe& recipe) {
  recipe.name = "JAX";
  const bool fused = says(row.framework, "transformer engine") || says_word(row.framework, "te");
  recipe.fused_pointwise = true;
  recipe.apart = {.attention = !fused};
  recipe.attention = AttentionLibrary::cudnn;
  recipe.optimizer = OptimizerKind::adam;
  recipe.assumed = {fused ? "fused attention, cuDNN's" : "attention as two products and a softmax",
                    "weights of f32, cast where they are used", "exchanges of gradients overlapped",
                    "elementwise operations in a row one kernel"};
}

// LLM Foundry's benchmarks run Triton's FlashAttention of before 2023-07 (attn_impl, scripts/train/benchmarking/
// submit_benchmarks.py of v0.5).
void set_fsdp(const Row& row, FrameworkRecipe& recipe) {
  recipe.name = "FSDP";
  recipe.half_weights = true;
  recipe.optimizer = OptimizerKind::adamw;
  recipe.clip = 1.0;
  recipe.assumed = {"fused attention", "parameters gathered in two bytes", "AdamW, gradients clipped"};
  if (!says(row.framework, "foundry")) return;
  recipe.attention = AttentionLibrary::flash1;
  recipe.assumed.emplace_back("attention by Triton's kernels, as fast as FlashAttention's first");
}

// HybridZeroOptimizer (solver/optimizer): weights and gradients of two bytes, masters in f32, gradients exchanged in
// backward (overlap_sync_grad of its configurations).
void set_internevo(FrameworkRecipe& recipe) {
  recipe.name = "InternEvo";
  recipe.apart = {.attention = true};
  recipe.half_weights = true;
  recipe.optimizer = OptimizerKind::adamw;
  recipe.clip = 1.0;
  recipe.assumed = {"weights of two bytes with f32 masters", "AdamW, gradients clipped"};
}

void set_eager(FrameworkRecipe& recipe) {
  recipe.name = "eager PyTorch";
  recipe.fused_update = false;
  recipe.apart = {.attention = true, .gelu_tanh = true};
  recipe.optimizer = OptimizerKind::adamw;
  recipe.assumed = {"every operation of attention a kernel of its own"};
}

// NVIDIA's DeepLearningExamples, PyTorch/LanguageModeling/BERT: gradients are exchanged once backward is over, by apex
// with message_size=250000000 (elements; BERT-base has 110 million), by a flat all-reduce after accumulation, later by
// DDP with one bucket of all. BertForPreTraining of the containers up to 20.03 (5cc03caa) gives every position to the
// decoder.
void set_nvidia_bert(const Row& row, FrameworkRecipe& recipe) {
  recipe.optimizer = OptimizerKind::lamb;  // run_pretraining.py: apex's FusedLAMB
  recipe.exchange = GradientExchange::at_end;
  recipe.every_logit = says(row.framework, "20.03");
  recipe.assumed.emplace_back("gradients exchanged after backward");
}

// The same examples' apex, with which run_squad.py trains in fp16 (and run_pretraining.py up to 20.03), at its level
// O2: the model in two bytes, and a copy of its weights in f32 for the optimizer. Later pre-training is
// torch.autocast's.
bool by_apex(const Row& row) {
  return says(row.model, "bert") && says(row.precision, "fp16") &&
         (!pre_trains_bert(row) || says(row.framework, "20.03"));
}

void set_apex(FrameworkRecipe& recipe) {
  recipe.half_weights = true;
  recipe.assumed.emplace_back("weights of two bytes with f32 masters (apex O2)");
}

// Their run_squad.py takes apex's fused Adam in fp16 and BertAdam (optimization.py) else, whose every operator is a
// kernel.
bool by_bert_adam(const Row& row) {
  return says(row.model, "bert") && !pre_trains_bert(row) && !says(row.precision, "fp16");
}

void set_bert_adam(FrameworkRecipe& recipe) {
  recipe.fused_update = false;
  recipe.written_update = true;
  recipe.optimizer = OptimizerKind::adamw;
  recipe.assumed.emplace_back("an update that is not fused (BertAdam)");
}

// ChainerMN's multi-node optimizer averages all gradients, packed into one message, between backward and update
// (optimizers.py; double buffering, which is the exception, trains with gradients of the step before).
void set_chainer(FrameworkRecipe& recipe) {
  recipe.exchange = GradientExchange::at_end;
  recipe.assumed.emplace_back("gradients exchanged in one message after backward");
}

// Google's BERT (modeling.py of TensorFlow 1, official/nlp of 2.3): GELU by its tanh and tf.nn.moments with
// tf.nn.batch_normalization, an operation each. Keras' layer norm takes a fused kernel only where epsilon is 1.001e-5
// or more; BERT's is 1e-12. MultiWorkerMirroredStrategy packs all gradients into one message (bytes_per_pack = 0).
void set_tensorflow(const Row& row, FrameworkRecipe& recipe) {
  recipe.name = row.framework;
  const bool compiled = says_word(row.notes, "xla");
  recipe.apart = {.attention = true, .gelu_tanh = !compiled, .layer_norm = !compiled};
  // AdamWeightDecayOptimizer (optimization.py) of TensorFlow 1; Keras' Adam of 2.3 is one kernel beside the decay.
  if (says(row.model, "bert") && says(row.framework, "tensorflow1") && !compiled) {
    recipe.fused_update = false;
    recipe.written_update = true;
    recipe.optimizer = OptimizerKind::adamw;
    recipe.assumed.emplace_back("an update written in TensorFlow's operations");
  }
  if (says(row.model, "bert") && !compiled)
    recipe.assumed.emplace_back("GELU and layer norm as TensorFlow's operations, a kernel each");
  if (!says(row.framework, "mirrored")) return;
  recipe.exchange = GradientExchange::at_end;
  recipe.assumed.emplace_back("gradients exchanged in one message after backward");
}

// A bias that is added in a kernel of its own, which reads and writes the result once more. Behind convolutions all of
// them do so (PyTorch's _convolution by add_, TensorFlow's BiasAdd, MXNet's and Chainer's cudnnAddTensor), but for XLA.
// Behind products: TensorFlow's and OneFlow's BiasAdd, Paddle's elementwise_add (layers.fc), MXNet's repmat
// (nn/fully_connected-inl.h), and PyTorch's in-place addition wherever the input has more than two dimensions
// (nn/functional/linear.h), until linear() flattened these (1.12) and addmm had cuBLASLt add it (CUDA 11.4,
// native/cuda/Blas.cpp).
void set_biases(const Row& row, FrameworkRecipe& recipe) {
  constexpr auto apart = std::to_array<std::string_view>({"tensorflow", "mxnet", "oneflow", "paddle", "ngc 20.03"});
  if (says_word(row.notes, "xla") || recipe.kind == FrameworkKind::jax) return;
  recipe.apart.convolution_bias = true;
  recipe.apart.linear_bias =
      std::ranges::any_of(apart, [&](std::string_view word) { return says(row.framework, word); });
  if (recipe.apart.linear_bias && says(row.model, "bert"))
    recipe.assumed.emplace_back("biases added to products in a kernel of their own");
}

// BERT's gradients are clipped to a norm of 1 by all these scripts: Google's optimization.py, on which those for
// TensorFlow, OneFlow and Paddle are modelled, NVIDIA's run_squad.py (GradientClipper), and LAMB (max_grad_norm).
void set_clip(const Row& row, FrameworkRecipe& recipe) {
  constexpr auto scripts = std::to_array<std::string_view>({"tensorflow", "oneflow", "paddle", "ngc"});
  const bool known = std::ranges::any_of(scripts, [&](std::string_view word) { return says(row.framework, word); });
  if (!known || !says(row.model, "bert") || says(row.notes, "no grad clip")) return;
  recipe.clip = 1.0;
  recipe.assumed.emplace_back("gradients clipped to a norm of 1");
}

// "FlashAttention-2", "flash attention", "flash-attn 3": its version, 0 where none is said; nothing: another's.
std::optional<int> flash_version(const std::string& said) {
  for (const std::string_view word :
       {"flashattention", "flash-attention", "flash attention", "flash-attn", "flash attn", "--flash 1", "sdpa",
        "scaled_dot_product_attention", "scaled dot product attention"}) {
    const std::size_t at = said.find(word);
    if (at == std::string::npos) continue;
    std::size_t digit = at + word.size();
    while (digit < said.size() && (said[digit] == ' ' || said[digit] == '-' || said[digit] == 'v')) ++digit;
    const auto is_digit_at = [&](std::size_t i) { return i < said.size() && said[i] >= '0' && said[i] <= '9'; };
    return is_digit_at(digit) && !is_digit_at(digit + 1) ? said[digit] - '0' : 0;
  }
  return std::nullopt;
}

// What the framework would run apart, where the source says that its attention was fused.
void set_flash_attention(const Row& row, FrameworkRecipe& recipe) {
  const std::string said = lower_case(row.framework + " " + row.notes);
  const std::optional<int> version = flash_version(said);
  const bool denied = has(said, "no flash") || has(said, "without flash") || has(said, "w/o flash");
  if (!recipe.apart.attention || denied || !version) return;
  recipe.apart.attention = false;
  std::erase_if(recipe.assumed, [](const std::string& sentence) {
    return sentence.starts_with("attention as ") || sentence.starts_with("every operation of attention ");
  });
  recipe.attention = *version == 1   ? AttentionLibrary::flash1
                     : *version == 3 ? AttentionLibrary::flash3
                                     : AttentionLibrary::flash2;
  recipe.assumed.push_back(fmt::format("fused attention, FlashAttention's version {}", *version == 0 ? 2 : *version));
}

// torch.compile, or kernels that are written by hand for norms, gates and positions (apex, flash-attn, Liger).
bool says_fused(const std::string& said) {
  constexpr auto denials = std::to_array<std::string_view>({"compile off", "no torch.compile", "no compile",
                                                            "not compiled", "without torch.compile", "without compil",
                                                            "compile 0", "compile=false", "compile: false"});
  constexpr auto fusions = std::to_array<std::string_view>(
      {"liger", "fused rmsnorm", "fused rms", "rmsnorm fused", "fused layernorm", "fused layer norm", "fused norm",
       "fused swiglu", "fused rotary", "fused rope", "fused kernels", "fused ops", "fused dropout", "fused mlp"});
  const auto says_one = [&](const auto& phrases) {
    return std::ranges::any_of(phrases, [&](std::string_view phrase) { return has(said, phrase); });
  };
  return says_one(fusions) || (has(said, "compile") && !has(said, "compiler") && !says_one(denials));
}

void set_fusions(const Row& row, FrameworkRecipe& recipe) {
  if (recipe.fused_pointwise || !says_fused(lower_case(row.framework + " " + row.notes))) return;
  recipe.fused_pointwise = true;
  recipe.assumed.emplace_back("elementwise operations in a row one kernel");
}

// Karpathy's llm.c: C and CUDA without a framework, weights of two bytes with f32 masters, cuDNN's attention, norms and
// residuals in one kernel (llmc/layernorm.cuh), gradients reduced layer by layer beside backward.
void set_llm_c(const Row& row, FrameworkRecipe& recipe) {
  if (!says(row.framework, "llm.c") || says(row.framework, "pytorch")) return;
  recipe.apart = {};
  recipe.half_weights = recipe.fused_pointwise = true;
  recipe.attention = AttentionLibrary::cudnn;
  recipe.optimizer = OptimizerKind::adamw;
  recipe.clip = 1.0;
  recipe.dispatch = without_python;
  recipe.assumed.emplace_back("weights of two bytes with f32 masters, cuDNN's attention, no Python between kernels");
}

// Parts of gradients are all that PyTorch's FSDP keeps between micro-batches (of FSDP2 pytorch's #126166 says so)
// unless its user asks for no_sync, which Composer (distributed/dist_strategy.py, ddp_sync_context) and metaseq do not,
// but Accelerate (accumulate()) and Lit-GPT (no_backward_sync()) do. DeepSpeed refuses no_sync from stage 2 on
// (runtime/engine.py), and exchanges while backward goes on: beside it where overlap_comm says so, as stage 3 does
// unless told otherwise.
void set_sharded(const Row& row, FrameworkRecipe& recipe) {
  const auto is = [&](std::string_view word) { return says(row.framework, word); };
  const bool fully_sharded = is("fsdp") || recipe.kind == FrameworkKind::fsdp || recipe.kind == FrameworkKind::nemo;
  recipe.reduce_each =
      is("deepspeed") || (fully_sharded && !is("accelerate") && !is("trainer") && !is("lit-gpt") && !is("litgpt"));
  // Composer's default (backward_prefetch='BACKWARD_POST', composer.utils.FSDPConfig); PyTorch's is BACKWARD_PRE.
  recipe.gather_late = is("composer") || is("foundry");
  // Its reshard_after_forward policy (parallelize.py): not with a pipeline, to avoid gathers of every micro-batch.
  recipe.stays_gathered = is("torchtitan");
  if (recipe.gather_late && zero_stage(row) == 3)
    recipe.assumed.emplace_back("backward, blocks are gathered when the one before has run");
  if (!is("deepspeed") || zero_stage(row) < 2) return;
  std::erase(recipe.assumed, "gradients exchanged after backward");
  recipe.exchange = GradientExchange::overlapped;
  recipe.assumed.emplace_back("gradients exchanged beside backward");
}

// Megatron-LM sums gradients of bf16 in f32 unless told --grad-reduce-in-bf16 (arguments.py), and so does DeepSpeed's
// BF16_Optimizer. NeMo's and Megatron-Bridge's performance configurations turn it off (grad_reduce_in_fp32,
// grad_sync_dtype).
void set_sums(const Row& row, FrameworkRecipe& recipe) {
  const bool by_default = says(row.framework, "megatron-lm") || says(row.framework, "megatron-deepspeed");
  recipe.bf16_sums_in_full = recipe.half_weights && by_default && !says(row.notes, "gradients reduced in bf16");
}

}  // namespace

FrameworkRecipe framework_of(const Row& row) {
  FrameworkRecipe recipe;
  recipe.kind = kind_of(row.framework);
  switch (recipe.kind) {
    case FrameworkKind::megatron: set_megatron(recipe); break;
    case FrameworkKind::nemo: set_nemo(recipe); break;
    case FrameworkKind::fsdp: set_fsdp(row, recipe); break;
    case FrameworkKind::internevo: set_internevo(recipe); break;
    case FrameworkKind::jax: set_jax(row, recipe); break;
    case FrameworkKind::hugging_face: set_eager(recipe); break;
    case FrameworkKind::tensorflow: set_tensorflow(row, recipe); break;
    case FrameworkKind::pytorch:
    case FrameworkKind::other:
      recipe.name = row.framework.empty() ? "data parallel training" : row.framework;
      recipe.apart = {.attention = true};
      if (row.framework.empty()) recipe.assumed.push_back("a framework that overlaps exchanges with backward");
      if (says(row.framework, "chainer")) set_chainer(recipe);
      if (says(row.framework, "pytorch") && says(row.framework, "ngc")) {
        if (pre_trains_bert(row)) set_nvidia_bert(row, recipe);
        if (by_apex(row)) set_apex(recipe);
        if (by_bert_adam(row)) set_bert_adam(recipe);
      }
      break;
  }
  set_flash_attention(row, recipe);
  set_biases(row, recipe);
  set_clip(row, recipe);
  set_dispatch(row, recipe);
  set_sharded(row, recipe);
  set_llm_c(row, recipe);
  set_sums(row, recipe);
  set_fusions(row, recipe);
  return recipe;
}

}  // namespace sibyl::published
