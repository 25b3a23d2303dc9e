// Writes what the fuzzers start from: write_seeds FOLDER, which gets a folder for each fuzzer. Of the models, two hold
// nodes of many operators, so that mutations reach their rules; others come from the zoo.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "calibration/codec.h"
#include "calibration/shipped.h"
#include "models/zoo/zoo.h"
#include "oracle/report/report.h"
#include "tests/unit/calibration/example.h"
#include "tests/unit/models/onnx/model_builder.h"
#include "tests/unit/oracle/report/sample_prediction.h"

namespace sibyl {
namespace {

using Ints = std::vector<int>;

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

ModelBuilder images() {
  ModelBuilder m(13);
  m.input("x", {1, 3, 8, 8}).weight("w", {4, 3, 3, 3}).weight("v", {4, 2, 2, 2}).weight("c", {4});
  m.ints("flat", {1, -1})
      .ints("pads", {0, 0, 1, 1, 0, 0, -1, 1})
      .ints("s", {0})
      .ints("e", {9})
      .ints("sizes", {1, 4, 16, 16});
  m.node("Conv", {"x", "w"}, {"a"}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}, {"group", 1}});
  m.node("BatchNormalization", {"a", "c", "c", "c", "c"}, {"b"}).node("Clip", {"b"}, {"d"});
  m.node("MaxPool", {"d"}, {"f"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}});
  m.node("ConvTranspose", {"f", "v"}, {"g"}, {{"strides", Ints{2, 2}}, {"group", 2}, {"output_shape", Ints{8, 8}}});
  m.node("Pad", {"g", "pads"}, {"h"}).node("Resize", {"h", "", "", "sizes"}, {"i"});
  m.node("Slice", {"i", "s", "e", "s"}, {"j"})
      .node("GlobalAveragePool", {"j"}, {"k"})
      .node("Reshape", {"k", "flat"}, {"l"});
  m.node("Softmax", {"l"}, {"y"}, {{"axis", 1}}).output("y");
  return m;
}

ModelBuilder tokens() {
  ModelBuilder m(17);
  m.input("ids", {"batch", 4}, onnx::TensorProto::INT64).weight("table", {10, 8}).weight("w", {8, 24}).weight("g", {8});
  m.ints("two", {2})
      .ints("minus", {-1})
      .ints("zero", {0})
      .ints("target", {0, 4, 2, 4})
      .ints("r", {1, 2, 1})
      .ints("parts", {8, 8, 8});
  m.node("Gather", {"table", "ids"}, {"e"})
      .node("LayerNormalization", {"e", "g", "g"}, {"n"})
      .node("MatMul", {"n", "w"}, {"q"});
  m.node("Split", {"q", "parts"}, {"a", "b", "c"}, {{"axis", 2}}).node("Reshape", {"a", "target"}, {"h"});
  m.node("Transpose", {"h"}, {"t"}, {{"perm", Ints{0, 2, 1, 3}}}).node("Shape", {"t"}, {"shape"});
  m.node("Gather", {"shape", "zero"}, {"d"})
      .node("Concat", {"d", "minus"}, {"f"}, {{"axis", 0}})
      .node("Reshape", {"t", "f"}, {"u"});
  m.node("Tile", {"b", "r"}, {"i"}).node("ReduceMean", {"i"}, {"j"}, {{"axes", Ints{1}}, {"keepdims", 0}});
  m.node("Einsum", {"u", "u"}, {"k"}, {{"equation", std::string("ij,kj->ik")}}).node("Expand", {"j", "target"}, {"l"});
  m.node("ConstantOfShape", {"shape"}, {"o"})
      .node("Trilu", {"o"}, {"p"})
      .node("NonZero", {"p"}, {"z"})
      .node("CumSum", {"z", "zero"}, {"s"});
  m.node("Where", {"p", "t", "o"}, {"v"})
      .node("Range", {"zero", "two", "two"}, {"rng"})
      .node("Dropout", {"u"}, {"y"})
      .output("y")
      .output("v");
  return m;
}

void write_models(const std::filesystem::path& folder) {
  write(folder / "images.onnx", images().bytes());
  write(folder / "tokens.onnx", tokens().bytes());
  for (const char* name : {"lenet", "small-cnn-bn", "gpt2-mini", "bert-tiny"})
    if (const auto bytes = zoo_model_bytes(name)) write(folder / (std::string(name) + ".onnx"), *bytes);
}

void write_reports(const std::filesystem::path& folder) {
  const PredictionReport sample = sample_prediction();
  write(folder / "prediction.json", to_json(sample));
  const ScalePoint runs{64, sample.prediction, 1.0};
  const ScalePoint fails{65, fail(ErrorCode::infeasible, "4096 is not divisible by 65", "--batch", "use 4095"), 0.0};
  write(folder / "scale.json", to_json(ScaleReport{sample.model, sample.cluster, Scaling::strong, {runs, fails}}));
}

}  // namespace
}  // namespace sibyl

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 2;
  }
  using namespace sibyl;
  const std::filesystem::path folder = argv[1];
  write_models(folder / "onnx");
  write(folder / "calibration" / "example.json", calibration_codec::write(example_calibration()));
  for (const std::string& name : shipped::names(shipped::Kind::cluster))
    write(folder / "cluster" / (name + ".yaml"), *shipped::find(shipped::Kind::cluster, name));
  write_reports(folder / "report");
  return 0;
}
