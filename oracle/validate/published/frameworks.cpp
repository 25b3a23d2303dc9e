#include "oracle/validate/published/frameworks.h"

#include <fmt/format.h>

#include <array>

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
    {"nemo", FrameworkKind::nemo},
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
    {"pytorch", FrameworkKind::pytorch},
});

FrameworkKind kind_of(const std::string& framework) {
  const std::string text = lower_case(framework);
  for (const Named& named : names)
    if (text.find(named.word) != std::string::npos) return named.kind;
  return FrameworkKind::other;
}

void set_megatron(FrameworkRecipe& recipe) {
  recipe.name = "Megatron-LM";
  recipe.apart = {.attention = true};
  recipe.half_weights = true;
  recipe.exchange = GradientExchange::at_end;
  recipe.clip = 1.0;
  recipe.assumed = {"attention as two products and a softmax fused with scale and mask",
                    "weights of two bytes with f32 masters", "gradients exchanged after backward",
                    "Adam, gradients clipped"};
}

void set_nemo(FrameworkRecipe& recipe) {
  recipe.name = "Megatron-Core";
  recipe.half_weights = true;
  recipe.clip = 1.0;
  recipe.assumed = {"fused attention", "weights of two bytes with f32 masters", "exchanges of gradients overlapped",
                    "Adam, gradients clipped"};
}

void set_fsdp(FrameworkRecipe& recipe) {
  recipe.name = "FSDP";
  recipe.half_weights = true;
  recipe.optimizer = OptimizerKind::adamw;
  recipe.clip = 1.0;
  recipe.assumed = {"fused attention", "parameters gathered in two bytes", "AdamW, gradients clipped"};
}

void set_eager(FrameworkRecipe& recipe) {
  recipe.name = "eager PyTorch";
  recipe.apart = {.attention = true, .gelu_tanh = true};
  recipe.optimizer = OptimizerKind::adamw;
  recipe.assumed = {"every operation of attention a kernel of its own"};
}

}  // namespace

FrameworkRecipe framework_of(const Row& row) {
  FrameworkRecipe recipe;
  recipe.kind = kind_of(row.framework);
  switch (recipe.kind) {
    case FrameworkKind::megatron: set_megatron(recipe); break;
    case FrameworkKind::nemo: set_nemo(recipe); break;
    case FrameworkKind::fsdp: set_fsdp(recipe); break;
    case FrameworkKind::hugging_face: set_eager(recipe); break;
    case FrameworkKind::pytorch:
    case FrameworkKind::other:
      recipe.name = row.framework.empty() ? "data parallel training" : row.framework;
      recipe.apart = {.attention = true};
      if (row.framework.empty()) recipe.assumed.push_back("a framework that overlaps exchanges with backward");
      break;
  }
  return recipe;
}

}  // namespace sibyl::published
