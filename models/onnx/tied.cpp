#include "models/onnx/tied.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

namespace sibyl::onnx_import {
namespace {

constexpr int samples = 64;
constexpr std::size_t telling = 8;  // so many different elements among the samples are no coincidence

// A file of weights, for as long as elements are read from it.
class WeightsFile {
 public:
  explicit WeightsFile(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) {
    struct stat status {};
    if (file_ >= 0 && ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode))
      size_ = static_cast<std::uint64_t>(status.st_size);
  }
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;
  ~WeightsFile() {
    if (file_ >= 0) ::close(file_);
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }  // 0 where there is none
  [[nodiscard]] std::string read(std::uint64_t offset, std::size_t count) const {
    std::string bytes(count, '\0');
    const auto got = ::pread(file_, bytes.data(), count, static_cast<off_t>(offset));
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

 private:
  int file_;
  std::uint64_t size_ = 0;
};

// A matrix, row by row, with its bytes where they are to be had.
struct Matrix {
  const TensorData* tensor;
  std::size_t element = 0;            // bytes
  std::string_view bytes = {};        // in the model's file
  const WeightsFile* file = nullptr;  // or in this one, from `offset`
  std::uint64_t offset = 0;

  [[nodiscard]] std::uint64_t rows() const { return static_cast<std::uint64_t>(tensor->shape[0]); }
  [[nodiscard]] std::uint64_t columns() const { return static_cast<std::uint64_t>(tensor->shape[1]); }
  [[nodiscard]] bool has_values() const { return file != nullptr || !bytes.empty(); }
  [[nodiscard]] std::string at(std::uint64_t row, std::uint64_t column) const {
    const std::uint64_t place = (row * columns() + column) * element;
    return file != nullptr ? file->read(offset + place, element) : std::string(bytes.substr(place, element));
  }
};

class Matrices {
 public:
  Matrices(const Payloads& payloads, const std::optional<std::filesystem::path>& folder)
      : payloads_(payloads), folder_(folder) {}

  std::optional<Matrix> find(const TensorData& tensor) {
    if (!tensor.dtype || !is_floating(*tensor.dtype) || tensor.shape.size() != 2) return std::nullopt;
    Matrix matrix{&tensor, static_cast<std::size_t>(size_in_bytes(*tensor.dtype))};
    const auto count = static_cast<std::uint64_t>(element_count(tensor.shape));
    if (count == 0) return std::nullopt;
    const auto stored = payloads_.find(tensor.name);
    if (stored != payloads_.end() && stored->second.size() % matrix.element == 0 &&
        stored->second.size() / matrix.element == count)
      matrix.bytes = stored->second;
    return matrix;
  }

  // In the file beside the model that has its elements. Some exporters write one for each weight: few are opened.
  void look_beside(Matrix& matrix) {
    constexpr std::size_t most = 64;
    if (matrix.has_values() || !matrix.tensor->external || !folder_) return;
    const ExternalData& external = *matrix.tensor->external;
    if (files_.size() >= most && !files_.contains(external.location)) return;
    const WeightsFile& file = files_.try_emplace(external.location, *folder_ / external.location).first->second;
    const auto count = static_cast<std::uint64_t>(element_count(matrix.tensor->shape));
    if (file.size() < external.offset || (file.size() - external.offset) / matrix.element < count) return;
    matrix.file = &file;
    matrix.offset = external.offset;
  }

 private:
  const Payloads& payloads_;
  const std::optional<std::filesystem::path>& folder_;
  std::map<std::string, WeightsFile> files_;
};

bool have_transposed_shapes(const Matrix& table, const Matrix& other) {
  return table.tensor->dtype == other.tensor->dtype && table.rows() == other.columns() &&
         table.columns() == other.rows();
}

bool are_transposed(const Matrix& table, const Matrix& other) {
  if (!have_transposed_shapes(table, other) || !table.has_values() || !other.has_values()) return false;
  std::set<std::string> different;
  std::uint64_t place = 1;
  for (int i = 0; i < samples; ++i) {
    place = place * 6364136223846793005u + 1442695040888963407u;  // Knuth's generator: places all over the table
    const std::uint64_t row = (place >> 33u) % table.rows(), column = (place >> 13u) % table.columns();
    const std::string element = table.at(row, column);
    if (element != other.at(column, row)) return false;
    different.insert(element);
  }
  return different.size() >= telling;
}

// What an export computed has a name of its own making; a head that is not tied keeps its module's. Square matrices are
// many, and no heads.
bool may_be_transposed(const Matrix& table, const Matrix& other) {
  return have_transposed_shapes(table, other) && table.rows() != table.columns() &&
         !(table.has_values() && other.has_values()) && !other.tensor->name.ends_with("weight");
}

void put_transpose(GraphData& graph, const NodeData& transpose) {
  std::erase_if(graph.initializers, [&](const TensorData& tensor) { return tensor.name == transpose.name; });
  // Before version 4 of the format initializers are listed as inputs, too.
  std::erase_if(graph.inputs, [&](const ValueData& input) { return input.name == transpose.name; });
}

}  // namespace

std::vector<std::string> tie_transposed_tables(GraphData& graph, const Payloads& payloads,
                                               const std::optional<std::filesystem::path>& folder) {
  std::set<std::string_view> gathered, multiplied;
  for (const NodeData& node : graph.nodes) {
    if (node.op_type == "Gather" && !node.inputs.empty()) gathered.insert(node.inputs[0]);
    if (node.op_type == "MatMul" && node.inputs.size() > 1) multiplied.insert(node.inputs[1]);
  }
  Matrices matrices(payloads, folder);
  std::vector<Matrix> tables, others;
  for (const TensorData& tensor : graph.initializers) {
    const bool table = gathered.contains(tensor.name);
    if (!table && !multiplied.contains(tensor.name)) continue;
    if (const auto found = matrices.find(tensor)) (table ? tables : others).push_back(*found);
  }
  std::vector<NodeData> transposes;
  std::vector<std::string> doubts;
  for (Matrix& other : others) {
    for (Matrix& table : tables)
      if (have_transposed_shapes(table, other)) matrices.look_beside(table), matrices.look_beside(other);
    const std::string& name = other.tensor->name;
    const auto of = [&](bool (*fits)(const Matrix&, const Matrix&)) {
      return std::find_if(tables.begin(), tables.end(), [&](const Matrix& table) { return fits(table, other); });
    };
    if (const auto table = of(are_transposed); table != tables.end())
      transposes.push_back({name, "", "Transpose", {table->tensor->name}, {name}, {{"perm", "", Ints{1, 0}}}});
    else if (const auto alike = of(may_be_transposed); alike != tables.end())
      doubts.push_back(
          fmt::format("{} is a weight of its own: whether it is the table {}, transposed, their values, "
                      "which are not beside the model, would tell",
                      name, alike->tensor->name));
  }
  for (const NodeData& transpose : transposes) put_transpose(graph, transpose);
  graph.nodes.insert(graph.nodes.begin(), transposes.begin(), transposes.end());
  return doubts;
}

}  // namespace sibyl::onnx_import
