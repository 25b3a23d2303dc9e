// Transpositions around fused attention move nothing on a GPU.
#include "oracle/plan/strided.h"

#include <gtest/gtest.h>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/cost/kernels.h"
#include "tests/support/sharded.h"

namespace sibyl {
namespace {

Graph graph_of(const std::string& model, bool apart = false) {
  ImportOptions options;
  options.batch = 2;
  options.apart.attention = apart;
  return inspect_onnx_bytes(*zoo_model_bytes(model), model, options).value().graph;
}

struct Transpositions {
  int strided = 0, dense = 0, moved_on_a_gpu = 0, moved_on_a_processor = 0;  // kernels that read something
  bool operator==(const Transpositions&) const = default;
};

Transpositions transpositions(const Stage& stage) {
  Transpositions found;
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (!compute || !std::holds_alternative<Transpose>(compute->attributes)) continue;
    (compute->strided ? found.strided : found.dense) += 1;
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const auto& [backend, moved] :
           {std::pair(Backend::cuda, &found.moved_on_a_gpu), std::pair(Backend::cpu, &found.moved_on_a_processor)})
        *moved += work_of(*kernel_of(stage, *compute, backend, pass, 1), backend) == Work{} ? 0 : 1;
    }
  }
  return found;
}

Stage program(const Graph& graph, const std::string& parallel = "data=1") {
  return test::plan_of(graph, parallel).stages[0];
}

// Of each of four layers the queries, keys and values, and what attention gives. Rotary positions stand between
// projections and attention in a Llama.
TEST(Strided, AreThoseAroundFusedAttention) {
  for (const char* model : {"gpt2-mini", "llama-mini"})
    EXPECT_EQ(transpositions(program(graph_of(model))), (Transpositions{16, 0, 0, 32})) << model;
  EXPECT_EQ(transpositions(program(graph_of("gpt2-mini"), "tensor=2")), (Transpositions{16, 0, 0, 32}));
}

// 64 sums of a tensor with itself stand between: 2^64 ways lead back, and each tensor is looked at once.
TEST(Strided, AreFoundHoweverManyWaysLeadThere) {
  Stage stage;
  const auto tensor = [&] {
    stage.tensors.emplace_back();
    return LocalTensorId{stage.tensors.size() - 1};
  };
  LocalTensorId x = tensor();
  const auto step = [&](Attributes attributes, std::vector<LocalTensorId> inputs) {
    x = tensor();
    Compute compute;
    compute.attributes = std::move(attributes), compute.inputs = std::move(inputs), compute.outputs = {x};
    stage.steps.emplace_back(std::move(compute));
  };
  step(Transpose{{0, 2, 1, 3}}, {x});
  for (int i = 0; i < 64; ++i) step(Binary{}, {x, x});
  step(Attention{}, {x, x, x});
  EXPECT_TRUE(std::get<Compute>(with_strided_attention(stage).steps.front()).strided);
}

TEST(Strided, NoneAreWhereAttentionIsTakenApart) {
  const Transpositions found = transpositions(program(graph_of("gpt2-mini", true)));
  EXPECT_EQ(found.strided, 0);
  EXPECT_EQ(found.moved_on_a_gpu, 2 * found.dense);
}

// Convolutions and layer norms read dense images.
TEST(Strided, NoneAreElsewhere) {
  EXPECT_EQ(transpositions(program(graph_of("convnext-tiny"))).strided, 0);
  EXPECT_EQ(transpositions(program(graph_of("mixer-s-16"))).strided, 0);
}

// Its result is its operand's memory, and nothing else: no copy of either is kept.
TEST(Strided, AreViewsOnAGpu) {
  const Stage stage = program(graph_of("gpt2-mini"));
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (!compute || !compute->strided) continue;
    EXPECT_TRUE(rule_of(stage, *compute, Backend::cuda).view);
    EXPECT_FALSE(rule_of(stage, *compute, Backend::cpu).view);
    EXPECT_EQ(rule_of(stage, *compute, Backend::cuda).forward, Work{});
    EXPECT_EQ(rule_of(stage, *compute, Backend::cuda).backward, Work{});
    EXPECT_TRUE(passes_gradient(stage, *compute, 0, Backend::cuda));
    EXPECT_FALSE(passes_gradient(stage, *compute, 0, Backend::cpu));
  }
}

}  // namespace
}  // namespace sibyl
