// What a node becomes: the facts of its results and the elementary operations that compute them.
//
// Each ONNX operator has a rule, a function from Node to Lowering; operators/ holds them, a file per family, each with
// its table. To add an operator: write its rule and one line in the table of its family. One that is an operation, no
// more and no less, may stand in that operation's own file (own_file.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/onnx/node.h"
#include "models/operations/operations.h"

namespace sibyl::onnx_import {

// Where a step's operand comes from: the node's input i, its output i, or a value between the steps.
struct Operand {
  enum class From { absent, input, output, local, constant };
  From from = From::absent;
  std::size_t index = 0;
  bool statistic = false;  // a running statistic: a buffer, though it is a floating initializer
};

struct Step {
  Attributes attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};

struct Lowering {
  std::vector<Fact> outputs;  // one for each of the node's outputs, as far as known
  std::vector<Step> steps;
  std::vector<Fact> locals;
  std::vector<Fact> constants;       // tables that the operator's meaning holds
  std::optional<std::size_t> alias;  // output 0 is this input itself
  bool of_shapes = false;            // the result depends on its operands' shapes only: a constant
  bool drawn = false;                // at random: no constant, whatever its operands are
  std::string unsupported;           // why Sibyl cannot train this node; then there are no steps
};

using Rule = Result<Lowering> (*)(const Node&);

struct Operator {
  std::string_view name;
  Rule rule;
  std::size_t required_inputs = 1;
  std::string_view domain = "";
};

// Null: not known.
const Operator* find_operator(std::string_view domain, std::string_view op_type);

// Builds the steps of one node on one side.
class Steps {
 public:
  explicit Steps(const Node& node) : node_(&node) {}

  [[nodiscard]] Operand input(std::size_t i) const {
    return node_->has(i) ? Operand{Operand::From::input, i} : Operand{};
  }
  [[nodiscard]] Operand statistic(std::size_t i) const { return {Operand::From::input, i, true}; }
  Operand constant(Fact fact);
  Operand scalar(double value, DType dtype);
  [[nodiscard]] const Fact& fact(Operand operand) const;

  // One operation; its result is a new local of the shape given and, unless said otherwise, its first operand's type.
  Operand add(Attributes attributes, std::vector<Operand> inputs, Shape shape, std::optional<DType> dtype = {});
  // The same of an operation with several results.
  std::vector<Operand> add_all(Attributes attributes, std::vector<Operand> inputs, std::vector<Fact> results);
  // Views that leave the operand alone where there is nothing to do.
  Operand reshape(Operand x, Shape shape);
  Operand transpose(Operand x, const Ints& permutation);
  Result<Operand> binary(BinaryKind kind, Operand a, Operand b);

  // The last operand becomes the node's output 0 (or the node an alias of an input).
  Lowering result(Operand last) &&;
  // The node's outputs are slices of x.
  Lowering split(Operand x, std::size_t axis, Ints sizes) &&;

 private:
  const Node* node_;
  Lowering lowering_;
};

// One operation on the inputs listed (absent ones stay absent).
Lowering single(const Node& node, Attributes attributes, const std::vector<std::size_t>& inputs, Shape shape,
                DType dtype);
Lowering same_as(std::size_t input, const Node& node);  // output 0 is the input
Lowering constant(Fact fact);                           // no step: folded
Lowering unsupported(std::string reason);

Result<Shape> broadcast(const Shape& a, const Shape& b);
std::int64_t product(std::span<const std::int64_t> extents);  // of a sane shape's part

}  // namespace sibyl::onnx_import
