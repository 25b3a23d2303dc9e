#include "models/onnx/document.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "models/onnx/mask.h"
#include "models/onnx/payload.h"
#include "models/onnx/tied.h"
#include "models/onnx/wire.h"

namespace sibyl::onnx_import {
namespace {

constexpr std::size_t two_gib = std::size_t{1} << 31;

std::optional<DType> dtype_of(int type) {
  switch (type) {
    case 1: return DType::f32;
    case 2: return DType::u8;
    case 3: return DType::i8;
    case 4:  // unsigned: the size is what counts
    case 5: return DType::i16;
    case 6:
    case 12: return DType::i32;
    case 7:
    case 13: return DType::i64;
    case 9: return DType::boolean;
    case 10: return DType::f16;
    case 11: return DType::f64;
    case 16: return DType::bf16;
    case 17:
    case 18: return DType::f8e4m3;
    case 19:
    case 20: return DType::f8e5m2;
    default: return std::nullopt;  // strings, complex numbers, 4-bit integers
  }
}

// The file with the payload is hardly opened (tied.h), but a path that leaves the model's folder betrays a hostile or
// broken file.
Result<void> check_external(const onnx::TensorProto& tensor) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() != "location") continue;
    const std::filesystem::path location(entry.value());
    bool leaves = entry.value().empty() || location.is_absolute() || entry.value().find('\\') != std::string::npos;
    for (const auto& part : location) leaves = leaves || part == "..";
    if (leaves)
      return fail(fmt::format("the tensor's external data '{}' is outside the model's folder", entry.value()),
                  tensor.name(), "external data must be a relative path inside the folder of the .onnx file");
  }
  return {};
}

// None: inside the model's file, or at no place that can be read.
std::optional<ExternalData> external_data(const onnx::TensorProto& tensor) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return std::nullopt;
  ExternalData found;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") found.location = entry.value();
    if (entry.key() != "offset") continue;
    const char* end = entry.value().data() + entry.value().size();
    const auto [stop, error] = std::from_chars(entry.value().data(), end, found.offset);
    if (error != std::errc() || stop != end) return std::nullopt;
  }
  return found;
}

template <class Field>
KnownValues copied(const Field& field) {
  return std::make_shared<Values>(field.begin(), field.end());
}

KnownValues stored_values(const onnx::TensorProto& tensor, std::int64_t count) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return nullptr;
  KnownValues values;
  if (tensor.has_raw_data()) {
    values = decode_raw(tensor.raw_data(), tensor.data_type(), count);
  } else if (tensor.float_data_size() > 0) {
    values = copied(tensor.float_data());
  } else if (tensor.int64_data_size() > 0) {
    values = copied(tensor.int64_data());
  } else if (tensor.double_data_size() > 0) {
    values = copied(tensor.double_data());
  } else if (tensor.uint64_data_size() > 0) {
    values = copied(tensor.uint64_data());
  } else if (tensor.int32_data_size() > 0) {
    auto decoded = std::make_shared<Values>();
    for (const std::int32_t stored : tensor.int32_data()) decoded->push_back(decode_int32(stored, tensor.data_type()));
    values = decoded;
  } else if (count == 0) {
    values = std::make_shared<Values>();
  }
  if (values && static_cast<std::int64_t>(values->size()) != count) return nullptr;
  return values;
}

Result<TensorData> convert(const onnx::TensorProto& tensor, const std::string& where) {
  const std::string& place = tensor.name().empty() ? where : tensor.name();
  TensorData result{tensor.name(), dtype_of(tensor.data_type()), Shape(tensor.dims().begin(), tensor.dims().end()), {}};
  if (!is_sane(result.shape))
    return fail("the tensor's shape [" + to_string(result.shape) + "] has a negative extent or more than 2^62 elements",
                place);
  SIBYL_CHECK(check_external(tensor));
  result.external = external_data(tensor);
  const std::int64_t count = element_count(result.shape);
  if (count <= max_known_values) result.values = stored_values(tensor, count);
  return result;
}

Result<GraphData> convert(const onnx::GraphProto& graph, const Cancelled& cancelled);

Result<AttributeData> convert(const onnx::AttributeProto& attribute, const std::string& node,
                              const Cancelled& cancelled) {
  AttributeData result{attribute.name(), attribute.ref_attr_name(), {}};
  if (attribute.has_t()) {
    SIBYL_TRY(result.value, convert(attribute.t(), node));
  } else if (attribute.has_g()) {
    SIBYL_TRY(GraphData graph, convert(attribute.g(), cancelled));
    result.value = std::make_shared<const GraphData>(std::move(graph));
  } else if (attribute.has_s()) {
    result.value = attribute.s();
  } else if (attribute.has_i()) {
    result.value = std::int64_t{attribute.i()};
  } else if (attribute.has_f()) {
    result.value = double{attribute.f()};
  } else if (attribute.ints_size() > 0 || attribute.type() == onnx::AttributeProto::INTS) {
    result.value = Ints(attribute.ints().begin(), attribute.ints().end());
  } else if (attribute.floats_size() > 0 || attribute.type() == onnx::AttributeProto::FLOATS) {
    result.value = std::vector<double>(attribute.floats().begin(), attribute.floats().end());
  } else if (attribute.strings_size() > 0) {
    result.value = std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
  } else if (attribute.type() == onnx::AttributeProto::INT) {
    result.value = std::int64_t{0};  // proto3 writers leave out zeros
  } else if (attribute.type() == onnx::AttributeProto::FLOAT) {
    result.value = 0.0;
  } else if (attribute.type() == onnx::AttributeProto::STRING) {
    result.value = std::string();
  }
  return result;
}

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

Result<NodeData> convert(const onnx::NodeProto& node, const Cancelled& cancelled) {
  if (is_true(cancelled)) return interrupted();
  NodeData result;
  result.domain = domain_of(node.domain());
  result.op_type = node.op_type();
  result.inputs.assign(node.input().begin(), node.input().end());
  result.outputs.assign(node.output().begin(), node.output().end());
  result.name = node.name();
  for (auto output = node.output().begin(); result.name.empty() && output != node.output().end(); ++output)
    result.name = *output;
  if (result.name.empty()) result.name = result.op_type.empty() ? "(unnamed node)" : result.op_type;
  for (const auto& attribute : node.attribute()) {
    SIBYL_TRY(AttributeData converted, convert(attribute, result.name, cancelled));
    result.attributes.push_back(std::move(converted));
  }
  return result;
}

// How writers leave an extent open that do not know ONNX's way: -1, and for the batch 0, too.
bool is_open(std::int64_t extent, std::size_t axis) { return extent == -1 || (extent == 0 && axis == 0); }

ValueData convert(const onnx::ValueInfoProto& value) {
  ValueData result{value.name(), std::nullopt, std::nullopt};
  if (!value.type().has_tensor_type()) return result;
  result.dtype = dtype_of(value.type().tensor_type().elem_type());
  if (!value.type().tensor_type().has_shape()) return result;
  result.shape.emplace();
  for (const auto& dim : value.type().tensor_type().shape().dim()) {
    Dimension dimension{std::nullopt, dim.dim_param()};
    if (dim.has_dim_value() && !is_open(dim.dim_value(), result.shape->size())) dimension.value = dim.dim_value();
    result.shape->push_back(std::move(dimension));
  }
  return result;
}

Result<GraphData> convert(const onnx::GraphProto& graph, const Cancelled& cancelled) {
  GraphData result;
  result.name = graph.name();
  result.nodes.reserve(static_cast<std::size_t>(graph.node_size()));
  for (const auto& node : graph.node()) {
    SIBYL_TRY(NodeData converted, convert(node, cancelled));
    result.nodes.push_back(std::move(converted));
  }
  for (const auto& tensor : graph.initializer()) {
    SIBYL_TRY(TensorData converted, convert(tensor, graph.name()));
    result.initializers.push_back(std::move(converted));
  }
  for (const auto& sparse : graph.sparse_initializer()) {
    Shape shape(sparse.dims().begin(), sparse.dims().end());
    if (!is_sane(shape)) return fail("the sparse tensor's shape is negative or overflows", sparse.values().name());
    result.initializers.push_back(
        {sparse.values().name(), dtype_of(sparse.values().data_type()), std::move(shape), {}});
  }
  for (const auto& value : graph.input()) result.inputs.push_back(convert(value));
  for (const auto& value : graph.output()) result.outputs.push_back(convert(value));
  return result;
}

Result<FunctionData> convert(const onnx::FunctionProto& function, const Cancelled& cancelled) {
  FunctionData result;
  result.domain = domain_of(function.domain());
  result.name = function.name();
  result.inputs.assign(function.input().begin(), function.input().end());
  result.outputs.assign(function.output().begin(), function.output().end());
  for (const auto& node : function.node()) {
    SIBYL_TRY(NodeData converted, convert(node, cancelled));
    result.nodes.push_back(std::move(converted));
  }
  for (const auto& opset : function.opset_import()) result.opsets[domain_of(opset.domain())] = opset.version();
  return result;
}

Result<ModelData> convert(const onnx::ModelProto& model, const std::string& name, const Cancelled& cancelled) {
  if (!model.has_graph() || model.opset_import_size() == 0)
    return fail("this is not an ONNX model: it has no graph or names no opset", name);
  ModelData result;
  result.producer = model.producer_name();
  if (!model.producer_version().empty()) result.producer += " " + model.producer_version();
  for (const auto& opset : model.opset_import()) result.opsets[domain_of(opset.domain())] = opset.version();
  for (const auto& entry : model.metadata_props()) result.metadata[entry.key()] = entry.value();
  for (const auto& function : model.functions()) {
    SIBYL_TRY(FunctionData converted, convert(function, cancelled));
    result.functions.push_back(std::move(converted));
  }
  SIBYL_TRY(result.graph, convert(model.graph(), cancelled));
  return result;
}

Failure too_large(const std::string& name) {
  return fail("the file holds 2 GiB or more, which protobuf cannot read", name,
              "save the model with external data: onnx.save_model(m, path, save_as_external_data=True)");
}

// Bytes in memory, handed out block by block until it is cancelled: protobuf takes that for the end of the file.
class CancellableStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  CancellableStream(std::string_view bytes, const Cancelled& cancelled)
      : bytes_(bytes.data(), static_cast<int>(bytes.size()), block), cancelled_(cancelled) {}

  bool Next(const void** data, int* size) override { return !is_true(cancelled_) && bytes_.Next(data, size); }
  void BackUp(int count) override { bytes_.BackUp(count); }
  bool Skip(int count) override { return bytes_.Skip(count); }
  std::int64_t ByteCount() const override { return bytes_.ByteCount(); }

 private:
  static constexpr int block = 1 << 16;
  google::protobuf::io::ArrayInputStream bytes_;
  const Cancelled& cancelled_;
};

// A read-only map of a file, undone when it goes out of scope.
struct Mapping {
  void* data = MAP_FAILED;
  std::size_t size = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != MAP_FAILED) ::munmap(data, size);
  }
};

// `folder`: of the model, where it is a file.
Result<ModelData> parse_beside(std::string_view bytes, const std::string& name,
                               const std::optional<std::filesystem::path>& folder, const Cancelled& cancelled) {
  if (bytes.empty()) return fail("the file is empty", name);
  if (bytes.size() >= two_gib) return too_large(name);
  Payloads payloads;
  const auto slim = without_payloads(bytes, &payloads, cancelled);
  if (is_true(cancelled)) return interrupted();
  if (!slim) return fail("the file is truncated or is not an ONNX model", name);
  onnx::ModelProto model;
  CancellableStream blocks(*slim, cancelled);
  google::protobuf::io::CodedInputStream stream(&blocks);
  const bool parsed = model.ParsePartialFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (is_true(cancelled)) return interrupted();
  if (!parsed) return fail("the file is truncated or is not an ONNX model", name);
  SIBYL_TRY(ModelData data, convert(model, name, cancelled));
  data.assumed = tie_transposed_tables(data.graph, payloads, folder);
  mark_masks(data.graph, payloads);
  return data;
}

}  // namespace

Result<ModelData> parse_model(std::string_view bytes, const std::string& name, const Cancelled& cancelled) {
  return parse_beside(bytes, name, std::nullopt, cancelled);
}

Result<ModelData> read_model(const std::filesystem::path& path, const Cancelled& cancelled) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(fmt::format("cannot open the model: {}", std::strerror(errno)), path.string());
  struct stat status {};
  Mapping mapping;
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  mapping.size = regular ? static_cast<std::size_t>(status.st_size) : 0;
  if (mapping.size > 0 && mapping.size < two_gib)
    mapping.data = ::mmap(nullptr, mapping.size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (!regular) return fail("the model is not a regular file", path.string());
  if (mapping.size == 0) return fail("the file is empty", path.string());
  if (mapping.size >= two_gib) return too_large(path.string());
  if (mapping.data == MAP_FAILED) return fail("cannot read the model", path.string());
  return parse_beside({static_cast<const char*>(mapping.data), mapping.size}, path.string(), path.parent_path(),
                      cancelled);
}

}  // namespace sibyl::onnx_import
