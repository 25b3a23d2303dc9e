// Programs made from a few of a graph's layers beside those made from all of them.
#include "oracle/plan/folding.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/closed/closed_form.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using test::any, test::one_of;

Graph deep_model() {
  const int depth = any(7, 10), scale = one_of(1, 2);
  if (any(0, 2) == 0) return test::mlp(std::vector<std::int64_t>(static_cast<std::size_t>(depth) + 2, 24 * scale), 4);
  return test::transformer(depth, 24 * scale, 12, one_of(16, 64), 4);
}

Strategy any_split() {
  Strategy s;
  test::split_replica(s);
  s.data = any(1, 3);
  if (any(0, 2) > 0) test::put_in_stages(s);
  if (s.schedule == PipelineSchedule::interleaved) s.chunks = any(2, 3);
  s.global_batch = s.data * s.accumulation * any(1, 4);
  s.precision = one_of(Precision::fp32, Precision::fp16, Precision::bf16);
  s.half_weights = any(0, 1) == 1;
  s.optimizer = OptimizerKind::adamw;
  s.recompute = one_of(Recompute::none, Recompute::selective, Recompute::full);
  s.zero = any(0, 3);
  return s;
}

// Of two programs whose tensors have other numbers; empty where there is none.
std::string first_difference(const Stage& a, const Stage& b) {
  if (a.steps.size() != b.steps.size() || a.tensors.size() != b.tensors.size()) return "size";
  std::vector<LocalTensorId> other(a.tensors.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    const auto *one = std::get_if<Compute>(&a.steps[i]), *two = std::get_if<Compute>(&b.steps[i]);
    if ((one == nullptr) != (two == nullptr)) return "kind of step " + std::to_string(i);
    if (one && (signature(a, *one) != signature(b, *two) || one->gradients != two->gradients))
      return "operation of step " + std::to_string(i);
    for (const auto& [of_a, of_b] : {std::pair(inputs_of(a.steps[i]), inputs_of(b.steps[i])),
                                     std::pair(outputs_of(a.steps[i]), outputs_of(b.steps[i]))}) {
      if (of_a.size() != of_b.size()) return "operands of step " + std::to_string(i);
      for (std::size_t k = 0; k < of_a.size(); ++k) {
        if (!of_a[k].valid() && !of_b[k].valid()) continue;
        if (!of_a[k].valid() || !of_b[k].valid()) return "operands of step " + std::to_string(i);
        LocalTensorId& known = other[of_a[k].index()];
        if (!known.valid()) known = of_b[k];
        if (known != of_b[k] || a[of_a[k]].shape != b[of_b[k]].shape || a[of_a[k]].kind != b[of_b[k]].kind)
          return "tensors of step " + std::to_string(i);
      }
    }
  }
  return "";
}

// A linear and a ReLU each: `first` layers that are all alike, and then `second` pairs of a wide and a narrow one.
Graph of_two_kinds(int first, int second) {
  std::vector<std::int64_t> widths(static_cast<std::size_t>(first) + 1, 24);
  for (int pair = 0; pair < second; ++pair) widths.insert(widths.end(), {48, 24});
  return test::mlp(widths, 4);
}

// Wherever it lies: what covers the most. Of layers that are all alike the first one's input comes from outside.
TEST(Folding, FindsTheLongestRunOfLayersAndOfItTheShortest) {
  for (const int layers : {7, 40, 300}) {
    const std::optional<Folding> alike = fold(of_two_kinds(layers, 0));
    ASSERT_TRUE(alike.has_value()) << layers;
    EXPECT_EQ(alike->length, 2U);
  }
  const Graph pairs_behind = of_two_kinds(8, 20), pairs_few = of_two_kinds(40, 8);
  ASSERT_TRUE(fold(pairs_behind) && fold(pairs_few));
  EXPECT_EQ(fold(pairs_behind)->length, 4U);
  EXPECT_GE(fold(pairs_behind)->first, 14U);
  EXPECT_EQ(repeated_layers(pairs_behind), 20);
  EXPECT_EQ(fold(pairs_few)->length, 2U);
  EXPECT_LE(fold(pairs_few)->first, 2U);
  EXPECT_EQ(repeated_layers(pairs_few), 40);
}

RC_GTEST_PROP(Folding, MakesTheProgramOfTheWhole, ()) {
  const Graph graph = deep_model();
  const Strategy strategy = any_split();
  const std::optional<Folding> folding = fold(graph);
  RC_ASSERT(folding.has_value());
  RC_ASSERT(folding->graph.operations().size() < graph.operations().size());
  const auto whole = make_program(graph, strategy), folded = make_program(folding->graph, strategy);
  RC_ASSERT(whole.has_value() == folded.has_value());
  if (!whole) {
    RC_ASSERT(whole.error().message == folded.error().message);
    return;
  }
  const std::optional<Unfolded> unfolded = unfold(*folding, *folded);
  RC_TAG(unfolded.has_value());
  if (unfolded) RC_ASSERT(first_difference(unfolded->program, *whole) == "");
}

RC_GTEST_PROP(Folding, ChangesNoForm, ()) {
  const Graph graph = deep_model();
  const Cluster cluster = test::any_cluster();
  const Strategy strategy = any_split();
  KernelPrices kernels(cluster);
  const std::optional<Folding> folding = fold(graph);
  const auto quick = closed::ProgramForm::make(graph, &*folding, strategy, kernels);
  const auto whole = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
  RC_ASSERT(quick.has_value() == whole.has_value());
  if (!whole) return;
  const auto one = (*quick)->of(strategy), two = (*whole)->of(strategy);
  RC_ASSERT(one.has_value() == two.has_value());
  if (!one) {
    RC_ASSERT(one.error().message == two.error().message);
    return;
  }
  RC_ASSERT(std::abs(one->step_time / two->step_time - 1) < 1e-9);
  RC_ASSERT(std::abs(one->memory / two->memory - 1) < 1e-9);
}

// Models as they are exported, masks, rotary tables and tied embeddings and all.
TEST(Folding, KnowsTheLayersOfTransformers) {
  Strategy strategy;
  strategy.tensor = 2;
  strategy.global_batch = 2;
  strategy.precision = Precision::bf16;
  strategy.half_weights = true;
  for (const std::string name : {"gpt2-xl", "gpt3-175b", "llama3-8b", "bert-large"}) {
    const Graph graph = inspect_onnx_bytes(*zoo_model_bytes(name), name, {}).value().graph;
    const std::optional<Folding> folding = fold(graph);
    ASSERT_TRUE(folding.has_value()) << name;
    EXPECT_LT(folding->graph.operations().size(), graph.operations().size() / 3) << name;
    for (const bool sequence : {false, true}) {
      strategy.sequence = sequence;
      const Stage whole = make_program(graph, strategy).value();
      const std::optional<Unfolded> unfolded = unfold(*folding, make_program(folding->graph, strategy).value());
      ASSERT_TRUE(unfolded.has_value()) << name;
      EXPECT_EQ(first_difference(unfolded->program, whole), "") << name;
    }
  }
}

// As their papers count them; what the first layer reads comes from elsewhere than what others read, and so does what is
// read of the last.
TEST(Folding, CountsTheLayers) {
  const std::map<std::string, int> layers = {{"gpt2", 12},     {"gpt2-xl", 48},  {"gpt3-175b", 96}, {"bert-base", 12},
                                             {"bert-large", 24}, {"llama3-8b", 32}, {"vit-b-16", 12},  {"mixtral-8x7b", 32},
                                             {"alexnet", 0}};
  for (const auto& [name, count] : layers)
    EXPECT_EQ(repeated_layers(inspect_onnx_bytes(*zoo_model_bytes(name), name, {}).value().graph), count) << name;
}

// Layers of another width each: nothing repeats.
TEST(Folding, LeavesGraphsAloneThatDoNotRepeat) {
  EXPECT_FALSE(fold(test::mlp({16, 24, 32, 40, 48, 56, 64, 72, 80, 88}, 4)).has_value());
  EXPECT_FALSE(fold(test::transformer(3, 24, 12, 16, 4)).has_value());
}

}  // namespace
}  // namespace sibyl
