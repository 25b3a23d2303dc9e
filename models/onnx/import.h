// Reads an ONNX file into a Graph: shapes inferred, decomposed operations fused (models/canonical), training-only facts
// restored and a loss attached. Weights are never loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancelled.h"
#include "base/result.h"
#include "models/canonical/canonical.h"
#include "models/graph.h"

namespace sibyl {

struct ImportOptions {
  std::optional<std::int64_t> batch;         // rebinds the batch, even if the export baked it in
  std::map<std::string, std::int64_t> dims;  // other symbolic dimensions by name
  LossKind loss = LossKind::automatic;
  Apart apart = {};  // what is left decomposed
  // Of a mixture of experts: an expert's slots for the tokens of a sample over its share of them, were all experts
  // chosen alike. With 1 a balanced router drops nothing, with experts / k none does.
  double capacity_factor = 1.0;
  Cancelled cancelled = {};  // ends it, with an Error of code interrupted
};

// An operation the importer met and cannot train or price.
struct Unsupported {
  std::string node;
  std::string op_type;
  std::string reason;
};

struct Import {
  Graph graph;
  std::vector<Unsupported> unsupported;  // with any, graph is not usable for prediction, but can be inspected
  std::int64_t unseen = 0;  // nodes that read what unsupported ones would have made: the graph lacks them, too
  std::int64_t opset = 0;
  std::string producer;
};

// An extent of an input that the file leaves open, other than the batch.
struct OpenDimension {
  std::string name;
  std::optional<std::int64_t> size;  // where ImportOptions::dims does not give one; none: it has to
  bool operator==(const OpenDimension&) const = default;
};

// Everything that can be imported is; unsupported nodes are listed. import_onnx fails only where there is no graph to
// show.
Result<Import> inspect_onnx(const std::filesystem::path& path, const ImportOptions& options);
// The same, and an Error naming the first unsupported node if there is one.
Result<Graph> import_onnx(const std::filesystem::path& path, const ImportOptions& options);
// From bytes in memory; `name` stands for the file in messages. What the fuzzer calls.
Result<Import> inspect_onnx_bytes(std::string_view bytes, const std::string& name, const ImportOptions& options);

// By name. Only the inputs are looked at.
Result<std::vector<OpenDimension>> open_dimensions(const std::filesystem::path& path);
Result<std::vector<OpenDimension>> open_dimensions_of_bytes(std::string_view bytes, const std::string& name);

}  // namespace sibyl
