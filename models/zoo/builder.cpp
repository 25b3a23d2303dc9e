#include "models/zoo/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <set>
#include <utility>

namespace sibyl::zoo {

namespace {

constexpr std::int64_t opset = 17;
constexpr std::int64_t ir_version = 8;

onnx::TensorProto::DataType onnx_type(DType type) {
  if (type == DType::boolean) return onnx::TensorProto::BOOL;
  return type == DType::i64 ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT;
}

void declare(onnx::ValueInfoProto& info, const Value& value, onnx::TensorProto::DataType type) {
  info.set_name(value.name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  auto& shape = *tensor.mutable_shape();
  for (const std::int64_t extent : value.shape) {
    auto& dimension = *shape.add_dim();
    if (extent == batch_extent)
      dimension.set_dim_param("batch");
    else if (extent == seq_extent)
      dimension.set_dim_param("seq");
    else if (extent == decoder_seq_extent)
      dimension.set_dim_param("decoder_seq");
    else
      dimension.set_dim_value(extent);
  }
}

void set_attribute(onnx::NodeProto& node, const NodeAttribute& attribute) {
  auto& proto = *node.add_attribute();
  proto.set_name(attribute.name);
  if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(*integer);
  } else if (const auto* real = std::get_if<double>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(*text);
  } else {
    proto.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t i : std::get<Ints>(attribute.value)) proto.add_ints(i);
  }
}

}  // namespace

struct Builder::File {
  onnx::ModelProto model;
  std::string weights;             // the file the parameters are said to be in
  std::int64_t weights_bytes = 0;  // up to which it is taken
  std::set<std::string> constants;
  std::int64_t unnamed = 0;
  Ints image_extents;  // of resize_images; empty: as input() is told
  bool takes_images = false;

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  void import(const std::string& domain, std::int64_t version) {
    for (const auto& known : model.opset_import())
      if (known.domain() == domain) return;
    auto& added = *model.add_opset_import();
    added.set_domain(domain);
    added.set_version(version);
  }

  // The constant of this name, filled by `fill` when it is new.
  Value constant(std::string name, Shape shape, onnx::TensorProto::DataType type, auto&& fill) {
    if (constants.insert(name).second) {
      auto& tensor = *graph().add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(type);
      for (const std::int64_t extent : shape) tensor.add_dims(extent);
      fill(tensor);
    }
    return Value{std::move(name), std::move(shape)};
  }
};

Builder::Builder(std::string name) : file_(std::make_unique<File>()) {
  auto& model = file_->model;
  model.set_ir_version(ir_version);
  model.set_producer_name("sibyl-zoo");
  file_->import("", opset);
  file_->weights = name + ".weights";
  file_->graph().set_name(std::move(name));
}

Builder::~Builder() = default;

Value Builder::input(std::string name, Shape shape, DType type) {
  const Ints& image = file_->image_extents;
  if (!image.empty() && type == DType::f32 && shape.size() == image.size() + 2)
    std::copy(image.begin(), image.end(), shape.begin() + 2);
  if (type == DType::f32 && shape.size() >= 4)
    file_->takes_images |= std::all_of(shape.begin() + 2, shape.end(), [](std::int64_t extent) { return extent > 0; });
  Value value{std::move(name), std::move(shape)};
  declare(*file_->graph().add_input(), value, onnx_type(type));
  return value;
}

void Builder::resize_images(Ints extents) { file_->image_extents = std::move(extents); }

bool Builder::takes_images() const { return file_->takes_images; }

void Builder::output(const Value& value) { declare(*file_->graph().add_output(), value, onnx::TensorProto::FLOAT); }

void Builder::metadata(std::string key, std::string value) {
  auto& entry = *file_->model.add_metadata_props();
  entry.set_key(std::move(key));
  entry.set_value(std::move(value));
}

Value Builder::parameter(std::string name, Shape shape) {
  auto& tensor = *file_->graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const std::int64_t length = element_count(shape) * 4;
  const auto entry = [&](const char* key, std::string text) {
    auto& pair = *tensor.add_external_data();
    pair.set_key(key);
    pair.set_value(std::move(text));
  };
  entry("location", file_->weights);
  entry("offset", std::to_string(file_->weights_bytes));
  entry("length", std::to_string(length));
  file_->weights_bytes += length;
  return Value{std::move(name), std::move(shape)};
}

Value Builder::scalar(double value) {
  return file_->constant(fmt::format("constant.{}", value), {}, onnx::TensorProto::FLOAT,
                         [&](auto& tensor) { tensor.add_float_data(static_cast<float>(value)); });
}

Value Builder::scalar(std::int64_t value) {
  return file_->constant(fmt::format("constant.i{}", value), {}, onnx::TensorProto::INT64,
                         [&](auto& tensor) { tensor.add_int64_data(value); });
}

Value Builder::ints(const Ints& values) {
  return file_->constant(fmt::format("constant.[{}]", fmt::join(values, ",")),
                         {static_cast<std::int64_t>(values.size())}, onnx::TensorProto::INT64, [&](auto& tensor) {
                           for (const std::int64_t i : values) tensor.add_int64_data(i);
                         });
}

Value Builder::boolean(bool value) {
  return file_->constant(fmt::format("constant.{}", value), {}, onnx::TensorProto::BOOL,
                         [&](auto& tensor) { tensor.add_int32_data(value ? 1 : 0); });
}

std::vector<Value> Builder::node(std::string_view op_type, std::string name, const std::vector<Value>& inputs,
                                 std::vector<Shape> results, const NodeAttributes& attributes) {
  auto& node = *file_->graph().add_node();
  if (const std::size_t colon = op_type.find(':'); colon != std::string_view::npos) {
    node.set_domain(std::string(op_type.substr(0, colon)));
    op_type.remove_prefix(colon + 1);
    file_->import(node.domain(), 1);
  }
  if (name.empty()) name = fmt::format("{}.{}", op_type, file_->unnamed++);
  node.set_op_type(std::string(op_type));
  node.set_name(name);
  for (const Value& input : inputs) node.add_input(input.name);
  for (const NodeAttribute& attribute : attributes) set_attribute(node, attribute);
  std::vector<Value> values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    values.push_back({i == 0 ? name : fmt::format("{}.{}", name, i), std::move(results[i])});
    node.add_output(values.back().name);
    // Nobody but the operator's own library could infer it.
    if (!node.domain().empty()) declare(*file_->graph().add_value_info(), values.back(), onnx::TensorProto::FLOAT);
  }
  return values;
}

Value Builder::apply(std::string_view op_type, std::string name, const std::vector<Value>& inputs, Shape result,
                     const NodeAttributes& attributes) {
  return node(op_type, std::move(name), inputs, {std::move(result)}, attributes).front();
}

Value Builder::filled(const Value& extents, Shape result, double value, DType type) {
  Value tensor_value = apply("ConstantOfShape", {}, {extents}, std::move(result));
  auto& attribute = *file_->graph().mutable_node(file_->graph().node_size() - 1)->add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  auto& tensor = *attribute.mutable_t();
  tensor.set_data_type(onnx_type(type));
  tensor.add_dims(1);
  if (type == DType::boolean)
    tensor.add_int32_data(value != 0 ? 1 : 0);
  else
    tensor.add_float_data(static_cast<float>(value));
  return tensor_value;
}

std::string Builder::bytes() const { return file_->model.SerializeAsString(); }

}  // namespace sibyl::zoo
