#include "models/onnx/tied.h"

#include <algorithm>
#include <set>

namespace sibyl::onnx_import {
namespace {

constexpr int samples = 64;
constexpr std::size_t telling = 8;  // so many different elements among the samples are no coincidence

// A matrix with its bytes, row by row.
struct Matrix {
  const TensorData* tensor;
  std::string_view bytes;
  std::size_t element;  // bytes

  [[nodiscard]] std::uint64_t rows() const { return static_cast<std::uint64_t>(tensor->shape[0]); }
  [[nodiscard]] std::uint64_t columns() const { return static_cast<std::uint64_t>(tensor->shape[1]); }
  [[nodiscard]] std::string_view at(std::uint64_t row, std::uint64_t column) const {
    return bytes.substr((row * columns() + column) * element, element);
  }
};

std::optional<Matrix> matrix(const TensorData& tensor, const Payloads& payloads) {
  if (!tensor.dtype || !is_floating(*tensor.dtype) || tensor.shape.size() != 2) return std::nullopt;
  const auto found = payloads.find(tensor.name);
  if (found == payloads.end()) return std::nullopt;
  const auto element = static_cast<std::size_t>(size_in_bytes(*tensor.dtype));
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  if (count == 0 || found->second.size() % element != 0 || found->second.size() / element != count) return std::nullopt;
  return Matrix{&tensor, found->second, element};
}

bool are_transposed(const Matrix& table, const Matrix& other) {
  if (table.tensor->dtype != other.tensor->dtype || table.rows() != other.columns() || table.columns() != other.rows())
    return false;
  std::set<std::string_view> different;
  std::uint64_t place = 1;
  for (int i = 0; i < samples; ++i) {
    place = place * 6364136223846793005u + 1442695040888963407u;  // Knuth's generator: places all over the table
    const std::uint64_t row = (place >> 33u) % table.rows(), column = (place >> 13u) % table.columns();
    if (table.at(row, column) != other.at(column, row)) return false;
    different.insert(table.at(row, column));
  }
  return different.size() >= telling;
}

}  // namespace

void tie_transposed_tables(GraphData& graph, const Payloads& payloads) {
  std::set<std::string_view> gathered, multiplied;
  for (const NodeData& node : graph.nodes) {
    if (node.op_type == "Gather" && !node.inputs.empty()) gathered.insert(node.inputs[0]);
    if (node.op_type == "MatMul" && node.inputs.size() > 1) multiplied.insert(node.inputs[1]);
  }
  std::vector<Matrix> tables, others;
  for (const TensorData& tensor : graph.initializers) {
    const bool table = gathered.contains(tensor.name);
    if (!table && !multiplied.contains(tensor.name)) continue;
    if (const auto found = matrix(tensor, payloads)) (table ? tables : others).push_back(*found);
  }
  std::vector<NodeData> transposes;
  for (const Matrix& other : others) {
    const auto table =
        std::find_if(tables.begin(), tables.end(), [&](const Matrix& t) { return are_transposed(t, other); });
    if (table == tables.end()) continue;
    const std::string& name = other.tensor->name;
    transposes.push_back({name, "", "Transpose", {table->tensor->name}, {name}, {{"perm", "", Ints{1, 0}}}});
  }
  for (const NodeData& transpose : transposes) {
    std::erase_if(graph.initializers, [&](const TensorData& tensor) { return tensor.name == transpose.name; });
    // Before version 4 of the format initializers are listed as inputs, too.
    std::erase_if(graph.inputs, [&](const ValueData& input) { return input.name == transpose.name; });
  }
  graph.nodes.insert(graph.nodes.begin(), transposes.begin(), transposes.end());
}

}  // namespace sibyl::onnx_import
