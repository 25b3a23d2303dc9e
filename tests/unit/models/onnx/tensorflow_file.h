// Files as tf2onnx writes them, built in tests node by node.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/models/graph_builder.h"
#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {

// A file under construction; each call adds a node, or an initializer, and returns its name.
struct TensorFlowFile : testing::Test {
  using Attribute = std::pair<std::string, ModelBuilder::Value>;

  ModelBuilder file{15};
  int count_ = 0;
  Graph graph;

  std::string fresh(const std::string& stem) { return stem + std::to_string(count_++); }
  std::string op(const std::string& type, const std::vector<std::string>& inputs,
                 const std::vector<Attribute>& attributes = {}) {
    const std::string name = fresh(type);
    file.node(type, inputs, {name}, attributes);
    return name;
  }
  std::string input(const std::vector<Extent>& shape) {
    const std::string name = fresh("x");
    file.input(name, shape);
    return name;
  }
  std::string weight(const std::vector<std::int64_t>& shape) {
    const std::string name = fresh("w");
    file.weight(name, shape);
    return name;
  }
  std::string number(double value) {
    const std::string name = fresh("c");
    file.scalar(name, static_cast<float>(value));
    return name;
  }
  std::string ints(const std::vector<std::int64_t>& values) {
    const std::string name = fresh("i");
    file.ints(name, values);
    return name;
  }
  std::string transpose(const std::string& x, const std::vector<int>& permutation) {
    return op("Transpose", {x}, {{"perm", permutation}});
  }
  std::string mean(const std::string& x, const std::vector<int>& axes, bool keep = true) {
    return op("ReduceMean", {x}, {{"axes", axes}, {"keepdims", keep ? 1 : 0}});
  }
  std::string einsum(const std::string& equation, const std::string& a, const std::string& b) {
    return op("Einsum", {a, b}, {{"equation", equation}});
  }

  // The operations that the file with this result becomes.
  std::vector<std::string> operations(const std::string& result, std::int64_t batch = 2) {
    file.output(result);
    ImportOptions options;
    options.batch = batch;
    auto imported = import(file, options);
    if (!imported) return {to_string(imported.error())};
    for (const Unsupported& entry : imported->unsupported) return {entry.op_type + ": " + entry.reason};
    graph = std::move(imported->graph);
    return test::operations_of(graph);
  }
  const Operation& last() { return graph.operations().back(); }
  Shape shape_of(TensorId id) { return graph[id].shape; }
};

}  // namespace sibyl
