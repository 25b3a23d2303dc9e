// Writes what the fuzzers start from: write_seeds FOLDER, which gets a folder for each fuzzer. Of the models, two hold
// nodes of many operators, so that mutations reach their rules; others come from the zoo.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/trace.h"
#include "calibration/codec.h"
#include "calibration/shipped.h"
#include "models/zoo/zoo.h"
#include "oracle/report/report.h"
#include "tests/unit/calibration/example.h"
#include "tests/unit/calibration/import_samples.h"
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
  m.input("ids3", {"batch", 4, 2}, onnx::TensorProto::INT64);
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
      .node("CumSum", {"q", "two"}, {"sums"})
      .node("GatherElements", {"e", "ids3"}, {"picked"}, {{"axis", 2}})
      .node("Dropout", {"u"}, {"y"})
      .output("y")
      .output("v")
      .output("sums")
      .output("picked");
  return m;
}

void write_models(const std::filesystem::path& folder) {
  write(folder / "images.onnx", images().bytes());
  write(folder / "tokens.onnx", tokens().bytes());
  for (const char* name : {"lenet", "small-cnn-bn", "gpt2-mini", "bert-tiny"})
    if (const auto bytes = zoo_model_bytes(name)) write(folder / (std::string(name) + ".onnx"), *bytes);
}

// Those that are shipped, and a fabric of each kind.
void write_clusters(const std::filesystem::path& folder) {
  for (const std::string& name : shipped::names(shipped::Kind::cluster))
    write(folder / (name + ".yaml"), *shipped::find(shipped::Kind::cluster, name));
  const std::string head =
      "name: f\ncalibration: v100-sxm2-16gb\nnodes: 4\ndevices_per_node: 8\n"
      "device_link: {kind: nvswitch, bandwidth: 100GB/s, latency: 2us, reduces: true, background: 0.2}\n"
      "nic: {per_node: 2, bandwidth: 100Gb/s, latency: 2us, background: 0.1}\nprotocol: LL128\n"
      "library:\n- {collective: all_reduce, ranks: 16, bytes: 4KiB, algorithm: ring}\n"
      "- {collective: all_to_all, bytes_each: 256B, algorithm: bruck}\n"
      "fabric:\n  background: 0.1\n  ecmp: hash\n";
  int number = 0;
  for (const char* fabric :
       {"  kind: torus\n  dimensions: [2, 2]\n  inside: {kind: hybrid cube mesh, links: 6}\n",
        "  kind: ring\n  size: 4\n  inside: {kind: pcie tree, sockets: 2, between_sockets: {bandwidth: 20GB/s}}\n",
        "  kind: fat tree\n  ports: 4\n  link: {latency: 100ns}\n",
        "  kind: fat tree\n  down: [4, 2]\n  up: 2\n  oversubscription: 3\n",
        "  kind: leaf spine\n  nodes_per_leaf: 2\n  leaves: 2\n  spines: 2\n",
        "  kind: rail optimised\n  nodes_per_leaf: 2\n  leaves: 2\n  spines: 2\n  cross_inside: false\n",
        "  kind: dragonfly\n  groups: 3\n  routers: 2\n  hosts: 2\n  global_links: 1\n  routing: valiant\n",
        "  kind: dragonfly plus\n  groups: 3\n  leaves: 2\n  spines: 1\n  hosts: 2\n  global_links: 2\n",
        "  kind: ring\n  size: 4\n  inside:\n    kind: custom\n    links:\n    - {from: device0, to: plx, latency: "
        "1us}\n"
        "    - {from: nic1, to: plx}\n    - {from: device1, to: plx, bandwidth: 1GB/s, duplex: half, parallel: 2}\n",
        "  kind: fully connected\n  inside: {kind: nvswitch, switches: 2}\n",
        "  kind: custom\n  links:\n  - {from: node0, to: s, bandwidth: 1GB/s, duplex: half}\n"
        "  - {from: node1.nic1, to: s, bandwidth: 1GB/s, back: 2GB/s, parallel: 2}\n"})
    write(folder / fmt::format("fabric{}.yaml", number++), head + fabric);
}

void write_imports(const std::filesystem::path& folder) {
  for (const auto& [name, text] : test::import_samples) write(folder / name, text);
}

void write_reports(const std::filesystem::path& folder) {
  const PredictionReport sample = sample_prediction();
  write(folder / "prediction.json", to_json(sample));
  const ScalePoint runs{64, sample.prediction, 1.0};
  const ScalePoint fails{65, fail(ErrorCode::infeasible, "4096 is not divisible by 65", "--batch", "use 4095"), 0.0};
  write(folder / "scale.json", to_json(ScaleReport{sample.model, sample.cluster, Scaling::strong, {runs, fails}}));
}

void write_trace(const std::filesystem::path& folder) {
  const TraceSpan span{"conv forward", "forward", Seconds{1e-3}, Seconds{2e-3}, {{"kind", std::string("convolution")}}};
  const TraceProcess process{TraceSource::measured, 1, "rank 1, measured", {{"compute", {span, span}}}};
  write(folder / "measured.json", trace_file({trace_events(process)}, {{"model", std::string("m")}}));
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
  write_clusters(folder / "cluster");
  write_imports(folder / "import");
  write_reports(folder / "report");
  write_trace(folder / "trace");
  return 0;
}
