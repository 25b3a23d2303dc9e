// Builds small ONNX files in tests, node by node.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <variant>
#include <vector>

namespace sibyl {

using Extent = std::variant<int, std::string>;  // a number, a symbol, or "" for an open extent without a name

class ModelBuilder {
 public:
  explicit ModelBuilder(int opset) {
    model_.set_ir_version(8);
    model_.mutable_graph()->set_name("test");
    this->opset("", opset);
  }

  ModelBuilder& opset(const std::string& domain, int version) {
    auto* import = model_.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
    return *this;
  }

  ModelBuilder& input(const std::string& name, const std::vector<Extent>& shape, int type = onnx::TensorProto::FLOAT) {
    auto* value = graph().add_input();
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const Extent& extent : shape) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (const int* number = std::get_if<int>(&extent)) dim->set_dim_value(*number);
      const std::string* symbol = std::get_if<std::string>(&extent);
      if (symbol != nullptr && !symbol->empty()) dim->set_dim_param(*symbol);
    }
    return *this;
  }

  ModelBuilder& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }

  // Floating, without a payload: as external data that is not there.
  ModelBuilder& weight(const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::string& location = "weights.bin") {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : shape) tensor->add_dims(extent);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    return *this;
  }

  ModelBuilder& ints(const std::string& name, const std::vector<std::int64_t>& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor->add_int64_data(value);
    return *this;
  }

  ModelBuilder& scalar(const std::string& name, float value) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_float_data(value);
    return *this;
  }

  using Value = std::variant<int, double, std::string, std::vector<int>>;
  ModelBuilder& node(const std::string& op_type, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     const std::vector<std::pair<std::string, Value>>& attributes = {},
                     const std::string& domain = "") {
    auto* node = graph().add_node();
    node->set_name(outputs.empty() ? op_type : outputs.front());
    node->set_op_type(op_type);
    node->set_domain(domain);
    for (const std::string& input : inputs) node->add_input(input);
    for (const std::string& output : outputs) node->add_output(output);
    for (const auto& [name, value] : attributes) set(*node->add_attribute(), name, value);
    return *this;
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  onnx::ModelProto& model() { return model_; }
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  static void set(onnx::AttributeProto& attribute, const std::string& name, const Value& value) {
    attribute.set_name(name);
    if (const int* i = std::get_if<int>(&value)) {
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(*i);
    } else if (const double* f = std::get_if<double>(&value)) {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(static_cast<float>(*f));
    } else if (const std::string* s = std::get_if<std::string>(&value)) {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(*s);
    } else {
      attribute.set_type(onnx::AttributeProto::INTS);
      for (const int entry : std::get<std::vector<int>>(value)) attribute.add_ints(entry);
    }
  }

  onnx::ModelProto model_;
};

}  // namespace sibyl
