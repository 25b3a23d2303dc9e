// One ONNX node as its rule sees it: attributes, and what is known of its operands at one of two batch sizes.
//
// The importer walks a model at two batches in lockstep: side 0 is the reference (the batch the export baked in, or a
// small one), side 1 another. Where a tensor's shape differs between the sides, it grows with the batch, and there is
// its batch axis. A rule is called once for each side and may look at both, to repair a baked-in batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph.h"
#include "models/onnx/choices.h"
#include "models/onnx/document.h"
#include "models/onnx/fact.h"

namespace sibyl::onnx_import {

// What a value is. A weight is a floating initializer of more than one element: a parameter, unless it is used as a
// statistic. A constant does not depend on the model's inputs and is not trained. Unknown: made by a node that is not
// supported.
enum class Source { constant, weight, activation, unknown };

struct Value {
  std::string name;
  Source source = Source::activation;
  std::array<Fact, 2> at;
  TensorId tensor{};     // once the graph needs it
  bool trained = false;  // an activation that a weight goes into: backward gives it a gradient
};

using Batches = std::array<std::int64_t, 2>;

class Node {
 public:
  Node(const NodeData& data, std::int64_t opset, std::span<const Value* const> inputs, std::size_t side,
       Batches batches, Choices& choices, double capacity_factor)
      : data_(&data),
        opset_(opset),
        inputs_(inputs),
        side_(side),
        batches_(batches),
        choices_(&choices),
        capacity_factor_(capacity_factor) {}

  [[nodiscard]] std::int64_t opset() const { return opset_; }
  [[nodiscard]] std::string_view op_type() const { return data_->op_type; }
  [[nodiscard]] std::size_t side() const { return side_; }
  [[nodiscard]] const Batches& batches() const { return batches_; }
  [[nodiscard]] Choices& choices() const { return *choices_; }
  [[nodiscard]] double capacity_factor() const { return capacity_factor_; }  // ImportOptions'
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] std::size_t output_count() const { return data_->outputs.size(); }
  [[nodiscard]] bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }

  // All below: input i must be there.
  [[nodiscard]] const Fact& fact(std::size_t i) const { return inputs_[i]->at[side_]; }
  [[nodiscard]] const Fact& fact_at(std::size_t i, std::size_t side) const { return inputs_[i]->at[side]; }
  [[nodiscard]] const Shape& shape(std::size_t i) const { return fact(i).shape; }
  [[nodiscard]] DType dtype(std::size_t i) const { return fact(i).dtype; }
  [[nodiscard]] std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(shape(i).size()); }
  [[nodiscard]] bool is_weight(std::size_t i) const { return inputs_[i]->source == Source::weight; }
  [[nodiscard]] bool is_constant(std::size_t i) const { return inputs_[i]->source == Source::constant; }
  [[nodiscard]] bool is_zero(std::size_t i) const;  // a constant whose elements are all 0
  [[nodiscard]] bool needs_gradient(std::size_t i) const { return is_weight(i) || inputs_[i]->trained; }
  // The axis on which the operand's shape differs between the two batches, if it is exactly one.
  [[nodiscard]] std::optional<std::size_t> batch_axis(std::size_t i) const;

  [[nodiscard]] Result<std::size_t> front_axis(std::int64_t axis) const;  // of operand 0, as the function below

  // The elements of an operand, where they are known.
  [[nodiscard]] std::optional<Ints> ints(std::size_t i) const { return ints_at(i, side_); }
  [[nodiscard]] std::optional<Ints> ints_at(std::size_t i, std::size_t side) const;
  [[nodiscard]] std::optional<double> scalar(std::size_t i) const;

  [[nodiscard]] const AttributeData* attribute(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] double number(std::string_view name, double otherwise) const;
  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] std::optional<Ints> integers(std::string_view name) const;
  // A list that older opsets hold in an attribute and newer ones in operand i. Error: the operand's elements are not
  // known.
  [[nodiscard]] Result<std::optional<Ints>> listed(std::string_view name, std::size_t i) const;

 private:
  const NodeData* data_;
  std::int64_t opset_;
  std::span<const Value* const> inputs_;
  std::size_t side_;
  Batches batches_;
  Choices* choices_;
  double capacity_factor_;
};

// An axis counted from the back becomes one from the front. `extra` allows for axes of the result (Unsqueeze).
Result<std::size_t> front_axis(std::int64_t axis, std::int64_t rank);
std::int64_t to_integer(double value);  // clamped to what 64 bits hold; NaN is 0
// The first axis on which the two shapes differ, if it is the only one.
std::optional<std::size_t> differing_axis(const Shape& a, const Shape& b);

}  // namespace sibyl::onnx_import
