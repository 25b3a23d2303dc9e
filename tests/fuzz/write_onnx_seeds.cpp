// Writes small models for the fuzzer to start from: write_onnx_seeds FOLDER. One holds nodes of many operators, so that
// mutations reach their rules; others come from the zoo.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "models/zoo/zoo.h"
#include "tests/unit/models/onnx/model_builder.h"

namespace sibyl {
namespace {

using Ints = std::vector<int>;

void write(const std::filesystem::path& path, const std::string& bytes) {
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

}  // namespace
}  // namespace sibyl

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_onnx_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  sibyl::write(folder / "images.onnx", sibyl::images().bytes());
  sibyl::write(folder / "tokens.onnx", sibyl::tokens().bytes());
  for (const char* name : {"lenet", "small-cnn-bn", "gpt2-mini", "bert-tiny"})
    if (const auto bytes = sibyl::zoo_model_bytes(name)) sibyl::write(folder / (std::string(name) + ".onnx"), *bytes);
  return 0;
}
