// Files that torch.onnx wrote (tests/models/make_models.py): fixed and open batch, training and inference, opsets 9
// to 17.
#include <gmock/gmock.h>

#include "models/signature.h"
#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

std::filesystem::path exported(const std::string& name) {
  return std::filesystem::path(SIBYL_EXPORTED_MODELS) / (name + ".onnx");
}

struct Model {
  std::string file;
  std::int64_t parameters;
  Shape output;  // of one sample, without the batch
  bool sequence = false;
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.file; }

ImportOptions options_for(const Model& model, std::optional<std::int64_t> batch) {
  ImportOptions options;
  options.batch = batch;
  options.loss = LossKind::none;
  if (model.sequence) options.dims["seq"] = 16;
  return options;
}

class ExportedModel : public testing::TestWithParam<Model> {};

// At any batch the parameters are the model's, the result has the batch in front, and every tensor that grows says
// where.
TEST_P(ExportedModel, ImportsAtTheBatchAsked) {
  const Model& model = GetParam();
  for (const std::int64_t batch : {1, 2, 3, 16}) {
    const auto imported = inspect_onnx(exported(model.file), options_for(model, batch));
    Shape expected{batch};
    expected.insert(expected.end(), model.output.begin(), model.output.end());
    EXPECT_EQ(result_shape(imported), expected);
    ASSERT_TRUE(imported);
    const Graph& graph = imported->graph;
    EXPECT_EQ(graph.batch(), batch);
    EXPECT_EQ(graph.parameter_count(), model.parameters);
    EXPECT_EQ(graph[graph.outputs.front()].batch_axis, 0u);
  }
}

// The graph at batch 8 seen at 2 samples is the graph at batch 2: batch axes are right everywhere.
TEST_P(ExportedModel, LocalShapesAreThoseOfASmallerBatch) {
  const Model& model = GetParam();
  const auto large = inspect_onnx(exported(model.file), options_for(model, 8));
  const auto small = inspect_onnx(exported(model.file), options_for(model, 2));
  ASSERT_TRUE(large && small);
  ASSERT_EQ(large->graph.operations().size(), small->graph.operations().size());
  for (std::size_t i = 0; i < small->graph.operations().size(); ++i)
    EXPECT_EQ(to_string(signature(large->graph, OperationId{i}, 2, DType::f32)),
              to_string(signature(small->graph, OperationId{i}, 2, DType::f32)));
}

// Parameter counts: torchvision's published ones, also of inference exports, which fold batch-norms into convolutions.
// gpt: 1000*64 + 32*64 + 2*(64*192+192 + 64*64+64 + 64*256+256 +
// 256*64+64 + 4*64) + 2*64 = 166,144; the head is tied.
//   Its inference export stores the head once more, transposed; without values it cannot be told: + 64,000.
// vit: 32*3*64+32 + 32 + 17*32 + 2*(96*32+96 + 32*32+32 + 64*32+64 + 32*64+32 + 4*32) + 64 + 330 = 24,234.
// encoder: 8*32+32 + 2*(96*32+96 + 32*32+32 + 64*32+64 + 32*64+32 + 4*32) + 330 = 17,706.
// padded: 100*32 + 2*(96*32+96 + 32*32+32 + 64*32+64 + 32*64+32 + 4*32) + 32*100+100 = 23,588.
// pooling: 4*32 + 96*32+96 + 32*32+32 + 2*32 + 330 = 4,746.
// llama: 100*32 + 2*(2*32*32 + 2*32*16 + 3*32*88 + 2*32) + 32 + 32*100 = 29,600; not its tables and mask.
// cnn: 216 + 16 + 8 + 264 + 292 + 84 + 50 = 930.
INSTANTIATE_TEST_SUITE_P(
    Torch, ExportedModel,
    testing::Values(
        Model{"resnet18_o9_eval_b1", 11689512, {1000}}, Model{"resnet18_o11_train_b2", 11689512, {1000}},
        Model{"resnet18_o13_train_dynamic", 11689512, {1000}}, Model{"resnet18_o16_eval_dynamic", 11689512, {1000}},
        Model{"resnet18_o17_train_dynamic", 11689512, {1000}}, Model{"mobilenet_v2_o13_train_b2", 3504872, {1000}},
        Model{"mobilenet_v2_o9_eval_dynamic", 3504872, {1000}}, Model{"densenet121_o17_eval_dynamic", 7978856, {1000}},
        Model{"mobilenet_v3_o14_train_dynamic", 2542856, {1000}}, Model{"densenet121_o11_train_b2", 7978856, {1000}},
        Model{"shufflenet_o13_train_b1", 1366792, {1000}}, Model{"vit_o13_eval_b1", 24234, {10}},
        Model{"vit_o14_train_b8", 24234, {10}}, Model{"vit_o16_train_dynamic", 24234, {10}},
        Model{"vit_o17_eval_dynamic", 24234, {10}}, Model{"gpt_o11_train_b1", 166144, {16, 1000}},
        Model{"gpt_o13_train_dynamic", 166144, {16, 1000}, true},
        Model{"gpt_o16_eval_dynamic", 230144, {16, 1000}, true}, Model{"gpt_o17_train_b8", 166144, {16, 1000}},
        Model{"encoder_o13_train_b1", 17706, {10}}, Model{"encoder_o16_train_dynamic", 17706, {10}},
        Model{"encoder_o17_train_b4", 17706, {10}}, Model{"padded_o9_train_b1", 23588, {16, 100}},
        Model{"padded_o13_train_b2", 23588, {16, 100}}, Model{"padded_o17_eval_dynamic", 23588, {16, 100}},
        Model{"pooling_o11_train_b1", 4746, {10}}, Model{"pooling_o13_eval_b1", 4746, {10}},
        Model{"pooling_o17_train_dynamic", 4746, {10}}, Model{"llama_o11_train_b1", 29600, {16, 100}},
        Model{"llama_o13_eval_dynamic", 29600, {16, 100}}, Model{"llama_o17_train_dynamic", 29600, {16, 100}},
        Model{"llama_pairs_o11_eval_b1", 29600, {16, 100}}, Model{"llama_pairs_o17_train_dynamic", 29600, {16, 100}},
        Model{"cnn_o11_train_b1", 930, {10}}, Model{"cnn_o14_train_dynamic", 930, {10}},
        Model{"cnn_o17_eval_b1", 930, {10}}),
    [](const auto& tested) { return tested.param.file; });

// An export with a baked-in batch, rebound, computes what the export with an open batch computes.
TEST(ExportedModels, RebindingABakedBatchGivesTheOpenModelsOperations) {
  const std::pair<Model, Model> pairs[] = {{{"vit_o14_train_b8", 0, {}}, {"vit_o16_train_dynamic", 0, {}}},
                                           {{"vit_o13_eval_b1", 0, {}}, {"vit_o17_eval_dynamic", 0, {}}},
                                           {{"encoder_o13_train_b1", 0, {}}, {"encoder_o16_train_dynamic", 0, {}}},
                                           {{"encoder_o17_train_b4", 0, {}}, {"encoder_o16_train_dynamic", 0, {}}},
                                           {{"gpt_o17_train_b8", 0, {}}, {"gpt_o13_train_dynamic", 0, {}, true}},
                                           {{"cnn_o11_train_b1", 0, {}}, {"cnn_o14_train_dynamic", 0, {}}}};
  for (const auto& [baked, open] : pairs) {
    const auto a = inspect_onnx(exported(baked.file), options_for(baked, 3));
    const auto b = inspect_onnx(exported(open.file), options_for(open, 3));
    ASSERT_TRUE(a && b) << baked.file;
    ASSERT_EQ(a->graph.operations().size(), b->graph.operations().size()) << baked.file;
    for (std::size_t i = 0; i < a->graph.operations().size(); ++i)
      EXPECT_EQ(to_string(signature(a->graph, OperationId{i}, 3, DType::f32)),
                to_string(signature(b->graph, OperationId{i}, 3, DType::f32)));
  }
}

// What a step computes, but for dropout, which an export for inference leaves out.
std::vector<std::string> computed(const Graph& graph) {
  std::vector<std::string> signatures;
  for (std::size_t i = 0; i < graph.operations().size(); ++i)
    if (!std::holds_alternative<Dropout>(graph.operations()[i].attributes))
      signatures.push_back(to_string(signature(graph, OperationId{i}, 3, DType::f32)));
  return signatures;
}

// Batch-norms that torch folded into convolutions are back, those that it could not fold (densenet's) are there once.
TEST(ExportedModels, AnInferenceExportTrainsAsTheTrainingExport) {
  const std::pair<const char*, const char*> pairs[] = {{"resnet18_o9_eval_b1", "resnet18_o11_train_b2"},
                                                       {"resnet18_o16_eval_dynamic", "resnet18_o17_train_dynamic"},
                                                       {"mobilenet_v2_o9_eval_dynamic", "mobilenet_v2_o13_train_b2"},
                                                       {"densenet121_o17_eval_dynamic", "densenet121_o11_train_b2"}};
  for (const auto& [inference, training] : pairs) {
    const auto a = inspect_onnx(exported(inference), options_for({}, 3));
    const auto b = inspect_onnx(exported(training), options_for({}, 3));
    ASSERT_TRUE(a && b) << inference;
    EXPECT_EQ(computed(a->graph), computed(b->graph)) << inference;
    EXPECT_EQ(a->graph.assumed.size(), 1U) << inference;
    EXPECT_TRUE(b->graph.assumed.empty()) << training;
  }
}

TEST(ExportedModels, WithoutABatchAskedTheBakedOneHoldsAndTheOpenOneIsOne) {
  EXPECT_EQ(result_shape(inspect_onnx(exported("vit_o14_train_b8"), {})), Shape{});  // a loss is attached: a scalar
  const auto baked = inspect_onnx(exported("vit_o14_train_b8"), options_for({}, std::nullopt));
  EXPECT_EQ(result_shape(baked), (Shape{8, 10}));
  const auto open = inspect_onnx(exported("vit_o16_train_dynamic"), options_for({}, std::nullopt));
  EXPECT_EQ(result_shape(open), (Shape{1, 10}));
}

TEST(ExportedModels, AnOpenDimensionThatIsNotTheBatchMustBeBound) {
  ImportOptions options;
  const auto unbound = inspect_onnx(exported("gpt_o13_train_dynamic"), options);
  ASSERT_FALSE(unbound);
  EXPECT_THAT(unbound.error().message, testing::HasSubstr("'seq'"));
  EXPECT_THAT(unbound.error().hint, testing::HasSubstr("--dim seq=VALUE"));
  EXPECT_EQ(unbound.error().where, "input");
}

TEST(ExportedModels, IdsAreBoundedByTheVocabulary) {
  ImportOptions options;
  options.dims["seq"] = 16;
  const auto imported = inspect_onnx(exported("gpt_o13_train_dynamic"), options);
  ASSERT_TRUE(imported);
  const Tensor* ids = find_tensor(imported->graph, "input");
  ASSERT_NE(ids, nullptr);
  EXPECT_EQ(ids->index_bound, 1000);
}

// Both blocks' attention takes keys and values of 2 heads for queries of 4, and its mask is the causal one.
TEST(ExportedModels, GroupedQueriesComeBackWhole) {
  for (const char* file : {"llama_o11_train_b1", "llama_o13_eval_dynamic", "llama_pairs_o17_train_dynamic"}) {
    const auto imported = inspect_onnx(exported(file), options_for({}, 3));
    ASSERT_TRUE(imported) << to_string(imported.error());
    int attentions = 0, norms = 0;
    for (const Operation& operation : imported->graph.operations()) {
      if (const auto* norm = std::get_if<Normalization>(&operation.attributes))
        norms += norm->kind == NormalizationKind::rms ? 1 : 0;
      const auto* attention = std::get_if<Attention>(&operation.attributes);
      if (!attention) continue;
      ++attentions;
      EXPECT_TRUE(attention->causal);
      ASSERT_EQ(operation.inputs.size(), 3U);
      EXPECT_EQ(imported->graph[operation.inputs[0]].shape, (Shape{3, 4, 16, 8}));
      EXPECT_EQ(imported->graph[operation.inputs[1]].shape, (Shape{3, 2, 16, 8}));
      EXPECT_EQ(imported->graph[operation.inputs[2]].shape, (Shape{3, 2, 16, 8}));
    }
    EXPECT_EQ(attentions, 2) << file;
    EXPECT_EQ(norms, 5) << file;
  }
}

// A batch-norm's running statistics are kept, not trained: 20 layers' means and variances, 2 * 4800 elements.
TEST(ExportedModels, RunningStatisticsAreBuffers) {
  const auto imported = inspect_onnx(exported("resnet18_o13_train_dynamic"), {});
  ASSERT_TRUE(imported);
  std::int64_t statistics = 0;
  for (const Tensor& tensor : imported->graph.tensors())
    if (tensor.kind == TensorKind::buffer) statistics += element_count(tensor.shape);
  EXPECT_EQ(statistics, 2 * 4800);
}

}  // namespace
}  // namespace sibyl
