// An ONNX file as plain values: what protobuf parsed, checked, with large payloads left out. The only code that sees a
// protobuf type is document.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/cancelled.h"
#include "base/result.h"
#include "models/dtype.h"
#include "models/onnx/fact.h"
#include "models/operations/operations.h"
#include "models/shape.h"

namespace sibyl::onnx_import {

// Where a tensor's bytes lie beside the model's file.
struct ExternalData {
  std::string location;  // relative to the model's folder, and inside it
  std::uint64_t offset = 0;
};

struct TensorData {
  std::string name;
  std::optional<DType> dtype;  // none: strings, complex numbers, sub-byte types
  Shape shape;
  KnownValues values;  // small tensors stored in the file; null for the rest
  std::optional<ExternalData> external = {};
  bool mask = false;  // of attention, by its elements: no weight, though it is floating (mask.h)
};

struct GraphData;

struct AttributeData {
  std::string name;
  std::string reference;  // inside a function: the caller's attribute that this one stands for
  std::variant<std::monostate, std::int64_t, double, std::string, Ints, std::vector<double>, std::vector<std::string>,
               TensorData, std::shared_ptr<const GraphData>>
      value;
};

struct NodeData {
  std::string name;    // never empty: the first output's name where the file has none
  std::string domain;  // "" for ai.onnx
  std::string op_type;
  std::vector<std::string> inputs;  // "" is an absent operand
  std::vector<std::string> outputs;
  std::vector<AttributeData> attributes;
};

// Either a number or a name; neither: the file leaves the extent open.
struct Dimension {
  std::optional<std::int64_t> value;
  std::string symbol;
};

struct ValueData {
  std::string name;
  std::optional<DType> dtype;  // none: not a tensor, or of a type that does not train
  std::optional<std::vector<Dimension>> shape;
};

struct GraphData {
  std::string name;
  std::vector<NodeData> nodes;
  std::vector<TensorData> initializers;
  std::vector<ValueData> inputs;
  std::vector<ValueData> outputs;
};

// A function defined inside the model: a node of that domain and name stands for its nodes.
struct FunctionData {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeData> nodes;
  std::map<std::string, std::int64_t> opsets;
};

struct ModelData {
  std::string producer;
  std::map<std::string, std::int64_t> opsets;  // by domain
  std::map<std::string, std::string> metadata;
  std::vector<FunctionData> functions;
  GraphData graph;
  std::vector<std::string> assumed;  // as Graph's
};

// `where` of errors: the file (`name`), or the tensor or node at fault. `cancelled` ends it (code interrupted).
Result<ModelData> parse_model(std::string_view bytes, const std::string& name, const Cancelled& cancelled = {});
// Maps the file and parses it. Refuses directories, unreadable and empty files, and 2 GiB and more.
Result<ModelData> read_model(const std::filesystem::path& path, const Cancelled& cancelled = {});

}  // namespace sibyl::onnx_import
