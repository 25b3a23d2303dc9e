// Sibyl infers shapes by rules of its own (docs/architecture.md says why); libonnx, which knows operators up to opset
// 17, is their judge: every tensor that a node makes has the shape that libonnx infers for the value of that name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "models/onnx/choices.h"
#include "models/onnx/translate.h"
#include "models/zoo/zoo.h"

namespace sibyl {
namespace {

constexpr std::int64_t batch = 3;
const std::map<std::string, std::int64_t> sequences = {{"seq", 16}, {"decoder_seq", 8}};

struct Judged {
  int agree = 0;
  std::vector<std::string> differ;
};

// Gives the symbols of the inputs their numbers, here and in the importer's options.
void bind_symbols(onnx::GraphProto& graph, ImportOptions& options) {
  for (auto& input : *graph.mutable_input())
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (!dim.has_dim_param()) continue;
      const auto sequence = sequences.find(dim.dim_param());
      const bool is_sequence = sequence != sequences.end();
      if (is_sequence)
        options.dims.insert(*sequence);
      else
        options.batch = batch;
      dim.set_dim_value(is_sequence ? sequence->second : batch);
    }
}

std::map<std::string, Shape> inferred_by_libonnx(onnx::ModelProto& model) {
  model.mutable_graph()->clear_value_info();
  for (auto& output : *model.mutable_graph()->mutable_output())
    output.mutable_type()->mutable_tensor_type()->clear_shape();
  const onnx::ShapeInferenceOptions options(/*check_type=*/false, /*strict_mode=*/0, /*data_prop=*/true);
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options);
  std::map<std::string, Shape> shapes;
  const auto note = [&](const onnx::ValueInfoProto& value) {
    if (!value.type().tensor_type().has_shape()) return;
    Shape shape;
    for (const auto& dim : value.type().tensor_type().shape().dim()) {
      if (!dim.has_dim_value()) return;  // libonnx does not know
      shape.push_back(dim.dim_value());
    }
    shapes[value.name()] = shape;
  };
  for (const auto& value : model.graph().value_info()) note(value);
  for (const auto& value : model.graph().output()) note(value);
  return shapes;
}

// As the importer does it, which guesses where a batch is baked in; before decomposed operations are fused, so that
// values keep their names.
Result<Graph> translated(const std::string& bytes, const std::string& name, const ImportOptions& options) {
  SIBYL_TRY(const onnx_import::ModelData data, onnx_import::parse_model(bytes, name));
  Error last;
  for (const std::int64_t reference : {1, 2}) {
    SIBYL_TRY(const onnx_import::Binding binding, onnx_import::bind_inputs(data, options, reference));
    onnx_import::Choices choices;
    for (int attempt = 0; attempt < 200; ++attempt) {
      auto translation = onnx_import::translate(data, binding, choices);
      if (translation && !translation->doubtful) return std::move(translation->graph);
      if (!translation) last = translation.error().error;
      if (!choices.advance()) break;
    }
  }
  return Failure(last);
}

Judged judge(const std::string& bytes, const std::string& name) {
  Judged judged;
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) {
    judged.differ.push_back(name + " does not parse");
    return judged;
  }
  ImportOptions options;
  options.loss = LossKind::none;
  bind_symbols(*model.mutable_graph(), options);
  const auto graph = translated(bytes, name, options);
  if (!graph) {
    judged.differ.push_back(to_string(graph.error()));
    return judged;
  }
  const auto shapes = inferred_by_libonnx(model);
  for (const Tensor& tensor : graph->tensors()) {
    if (tensor.kind != TensorKind::activation) continue;
    const auto found = shapes.find(tensor.name);
    if (found == shapes.end()) continue;
    if (found->second == tensor.shape)
      ++judged.agree;
    else
      judged.differ.push_back(name + ": " + tensor.name + " is [" + to_string(tensor.shape) + "], libonnx says [" +
                              to_string(found->second) + "]");
  }
  return judged;
}

TEST(LibonnxShapes, OfEveryExportedModel) {
  int files = 0, agree = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SIBYL_EXPORTED_MODELS)) {
    if (entry.path().extension() != ".onnx") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const Judged judged = judge(bytes, entry.path().filename());
    EXPECT_THAT(judged.differ, testing::IsEmpty());
    EXPECT_GT(judged.agree, 0) << entry.path();
    ++files;
    agree += judged.agree;
  }
  EXPECT_GE(files, 30);
  EXPECT_GE(agree, 1000);
}

TEST(LibonnxShapes, OfEveryZooModel) {
  for (const ZooModel& zoo : zoo_models()) {
    const auto bytes = zoo_model_bytes(zoo.name);
    ASSERT_TRUE(bytes) << zoo.name;
    const Judged judged = judge(*bytes, zoo.name);
    EXPECT_THAT(judged.differ, testing::IsEmpty());
    EXPECT_GT(judged.agree, 5) << zoo.name;
  }
}

}  // namespace
}  // namespace sibyl
