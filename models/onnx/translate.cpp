#include "models/onnx/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_map>

#include "models/onnx/emit.h"
#include "models/onnx/evaluate.h"
#include "models/onnx/lowering.h"
#include "models/onnx/order.h"

namespace sibyl::onnx_import {
namespace {

// Names of values in one graph; a branch of an If sees its surroundings, a function does not.
struct Scope {
  std::unordered_map<std::string, Value*> names;
  const Scope* parent = nullptr;
  std::string prefix;  // of names inside a function: the calling nodes
  const std::map<std::string, std::int64_t>* opsets = nullptr;
  int depth = 0;

  [[nodiscard]] Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent)
      if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
    return nullptr;
  }
};

using Done = tl::expected<void, TranslationError>;

tl::unexpected<TranslationError> wrong(Error error, const std::string& node, const std::string& op_type = {},
                                       bool forbids_batch = false) {
  if (error.where.empty()) error.where = node;
  return tl::unexpected(TranslationError{std::move(error), forbids_batch, op_type});
}

Error message(std::string text) { return Error{ErrorCode::bad_input, std::move(text), {}, {}}; }

bool has_bias(const NodeData& node) {
  return node.inputs.size() > 2 &&
         (node.op_type == "Gemm" || node.op_type == "Conv" || node.op_type == "ConvTranspose");
}

bool multiplies(const NodeData& node) {
  return node.inputs.size() > 1 && (node.op_type == "Gemm" || node.op_type == "MatMul" || node.op_type == "Conv" ||
                                    node.op_type == "ConvTranspose");
}

// Operands that a node must have, and that an exporter makes up where the model has none: a convolution's bias, a
// norm's scale and shift.
bool is_filled_in(const NodeData& node, std::size_t operand) {
  if (node.op_type == "Conv" || node.op_type == "ConvTranspose" || node.op_type == "Gemm") return operand == 2;
  const bool norm = node.op_type == "InstanceNormalization" || node.op_type == "GroupNormalization" ||
                    node.op_type == "LayerNormalization";
  return norm && (operand == 1 || operand == 2);
}

bool all_alike(const KnownValues& values) {
  return values && std::all_of(values->begin(), values->end(), [&](double value) { return value == values->front(); });
}

// "val_12": what torch's dynamo exporter calls a value that no module and no line of the model has a name for.
bool has_no_name(std::string_view name) {
  constexpr std::string_view prefix = "val_";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

class Translator {
 public:
  Translator(const ModelData& model, const Binding& binding, Choices& choices)
      : model_(model), binding_(binding), choices_(choices), emitter_(binding.batches, binding.wanted_side) {
    for (const FunctionData& function : model.functions) functions_[{function.domain, function.name}] = &function;
    for (const NodeData& node : model.graph.nodes) {
      if (node.op_type == "Gather" && !node.inputs.empty()) tables_.insert(node.inputs[0]);
      if (multiplies(node)) factors_.insert(node.inputs[1]);
      if (has_bias(node)) biases_.insert(node.inputs[2]);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        (is_filled_in(node, i) ? filled_in_ : read_otherwise_).insert(node.inputs[i]);
    }
    stores_weights_ = std::ranges::any_of(model.graph.initializers, [](const TensorData& tensor) {
      return tensor.dtype && is_floating(*tensor.dtype) && !tensor.mask && element_count(tensor.shape) > 1;
    });
  }

  tl::expected<Translation, TranslationError> run();

 private:
  Done run_nodes(const std::vector<NodeData>& nodes, const std::set<std::string>& given, Scope& scope);
  Done run_node(const NodeData& node, Scope& scope);
  Done run_branch(const NodeData& node, Scope& scope, const std::vector<Value*>& inputs);
  Done run_function(const NodeData& node, const FunctionData& function, Scope& scope,
                    const std::vector<Value*>& inputs);
  Done run_operator(const NodeData& node, const Operator& rule, Scope& scope, const std::vector<Value*>& inputs);
  Done settle(const NodeData& node, Scope& scope, const std::vector<Value*>& inputs,
              const std::array<Lowering, 2>& lowered);
  tl::expected<std::vector<Value*>, TranslationError> operands(const NodeData& node, const Scope& scope) const;
  std::vector<Value*> without_baked_batch(std::vector<Value*> inputs);
  Result<Lowering> lower(const NodeData& node, const Operator& rule, const Scope& scope,
                         const std::vector<Value*>& inputs, std::size_t side);

  Value* add(const std::string& name, Scope& scope, Source source, std::array<Fact, 2> at);
  void add_initializers(const GraphData& graph, Scope& scope);
  [[nodiscard]] bool is_read_as_weight(const std::string& name) const {
    return factors_.contains(name) || tables_.contains(name);
  }
  [[nodiscard]] bool is_made_up(const TensorData& tensor) const;
  [[nodiscard]] bool is_stored_weight(const NodeData& node, const Scope& scope, const Fact& fact) const;
  void give_up(const NodeData& node, Scope& scope, std::string reason);  // its results are unknown; listed unless empty
  void limit_known(Fact& fact);

  const ModelData& model_;
  const Binding& binding_;
  Choices& choices_;
  std::map<std::pair<std::string_view, std::string_view>, const FunctionData*> functions_;
  std::deque<Value> values_;
  Emitter emitter_;
  std::vector<Unsupported> unsupported_;
  std::int64_t unseen_ = 0;             // nodes that read what an unsupported one would have made
  std::set<std::string_view> tables_;   // what a Gather of the main graph takes rows from
  std::set<std::string_view> factors_;  // what its layers multiply by
  std::set<std::string_view> biases_;   // of its layers
  std::set<std::string_view> filled_in_, read_otherwise_;  // where is_filled_in(), and elsewhere
  bool stores_weights_ = false;                            // among the initializers of the main graph
  bool doubtful_ = false;
  std::int64_t known_budget_ = std::int64_t{1} << 24;  // elements of constants kept in all
  std::int64_t node_budget_ = 2'000'000;               // functions that call functions could multiply without end
};

// Small constants are always kept, large ones until the budget is spent.
void Translator::limit_known(Fact& fact) {
  constexpr std::size_t small = 64;
  if (!fact.values || fact.values->size() <= small) return;
  known_budget_ -= static_cast<std::int64_t>(fact.values->size());
  if (known_budget_ < 0) fact.values = nullptr;
}

Value* Translator::add(const std::string& name, Scope& scope, Source source, std::array<Fact, 2> at) {
  values_.push_back({scope.prefix + name, source, std::move(at), {}});
  scope.names[name] = &values_.back();
  return &values_.back();
}

void Translator::add_initializers(const GraphData& graph, Scope& scope) {
  for (const TensorData& tensor : graph.initializers) {
    Fact fact{tensor.dtype.value_or(DType::f32), tensor.shape, tensor.values};
    // A lone number is a constant, unless it is the bias of a layer with one result.
    const bool lone = element_count(tensor.shape) == 1 && (tensor.shape.empty() || !biases_.contains(tensor.name));
    const bool trains = tensor.dtype && is_floating(*tensor.dtype) && !lone && !tensor.mask && !is_made_up(tensor) &&
                        element_count(tensor.shape) > 0;
    add(tensor.name, scope, !tensor.dtype ? Source::unknown : trains ? Source::weight : Source::constant, {fact, fact});
  }
}

// What torch computed itself and stores beside the weights: zeros for the bias that a convolution lacks, ones to scale
// a norm's groups by. A fresh model's own scale, which is folded into a name like theirs, is multiplied by.
bool Translator::is_made_up(const TensorData& tensor) const {
  return has_no_name(tensor.name) && filled_in_.contains(tensor.name) && !read_otherwise_.contains(tensor.name) &&
         all_alike(tensor.values);
}

// A weight in a node of its own, where none are among the initializers: what a layer multiplies by, or a table. Where
// exporters store weights as such, a Constant is a number of the model's.
bool Translator::is_stored_weight(const NodeData& node, const Scope& scope, const Fact& fact) const {
  if (stores_weights_) return false;
  if (node.op_type != "Constant" || scope.parent != nullptr || !scope.prefix.empty()) return false;
  return is_read_as_weight(node.outputs[0]) && is_floating(fact.dtype) && element_count(fact.shape) > 1 &&
         !all_alike(fact.values);
}

void Translator::give_up(const NodeData& node, Scope& scope, std::string reason) {
  if (!reason.empty()) unsupported_.push_back({scope.prefix + node.name, node.op_type, std::move(reason)});
  for (const std::string& output : node.outputs)
    if (!output.empty()) add(output, scope, Source::unknown, {});
}

tl::expected<Translation, TranslationError> Translator::run() {
  Scope scope;
  scope.opsets = &model_.opsets;
  std::set<std::string> given;
  for (const TensorData& tensor : model_.graph.initializers)
    if (!given.insert(tensor.name).second) return wrong(message("two initializers have this name"), tensor.name);
  add_initializers(model_.graph, scope);
  for (const InputShapes& input : binding_.inputs) {
    if (!given.insert(input.input->name).second) return wrong(message("two inputs have this name"), input.input->name);
    const DType type = *input.input->dtype;
    Value* value =
        add(input.input->name, scope, Source::activation, {Fact{type, input.at[0], {}}, Fact{type, input.at[1], {}}});
    value->tensor = emitter_.add_input(*value);
  }
  if (Done done = run_nodes(model_.graph.nodes, given, scope); !done) return tl::unexpected(done.error());
  for (const ValueData& output : model_.graph.outputs) {
    const Value* value = scope.find(output.name);
    if (value == nullptr) return wrong(message("nothing produces this output of the model"), output.name);
    if (value->source == Source::activation) {
      emitter_.graph.outputs.push_back(value->tensor);
      doubtful_ = doubtful_ || (!value->at[0].shape.empty() && value->at[0].shape == value->at[1].shape);
    }
    if (value->source == Source::unknown && unsupported_.empty())
      unsupported_.push_back({output.name, "output", "it is a result that Sibyl does not compute"});
  }
  emitter_.graph.name = model_.graph.name;
  if (emitter_.stored)
    emitter_.graph.assumed.push_back(
        fmt::format("weights are stored in {} and trained as f32 ones, computed in what --precision says",
                    to_string(*emitter_.stored)));
  if (auto finished = emitter_.graph.finish(binding_.batch()); !finished)
    return wrong(finished.error(), model_.graph.name);
  return Translation{std::move(emitter_.graph), std::move(unsupported_), unseen_, doubtful_};
}

Done Translator::run_nodes(const std::vector<NodeData>& nodes, const std::set<std::string>& given, Scope& scope) {
  const auto order = execution_order(nodes, given);
  if (!order) return wrong(order.error(), {});
  for (const std::size_t i : *order) {
    if (is_true(binding_.cancelled)) return wrong(interrupted().value(), {});
    if (Done done = run_node(nodes[i], scope); !done) return done;
  }
  return {};
}

tl::expected<std::vector<Value*>, TranslationError> Translator::operands(const NodeData& node,
                                                                         const Scope& scope) const {
  std::vector<Value*> inputs;
  for (const std::string& name : node.inputs) {
    inputs.push_back(name.empty() ? nullptr : scope.find(name));
    if (!name.empty() && inputs.back() == nullptr)
      return wrong(message("it reads '" + name + "', which nothing produces"), scope.prefix + node.name);
  }
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  return inputs;
}

Done Translator::run_node(const NodeData& node, Scope& scope) {
  if (--node_budget_ < 0)
    return wrong(message("the model's functions unfold into too many nodes"), scope.prefix + node.name);
  if (node.outputs.empty()) return {};
  auto inputs = operands(node, scope);
  if (!inputs) return tl::unexpected(inputs.error());
  const bool blind = std::any_of(inputs->begin(), inputs->end(), [](const Value* input) {
    return input != nullptr && input->source == Source::unknown;
  });
  // Known operators behind one that is not: nothing can be said of them.
  const auto pass_by = [&] { return ++unseen_, give_up(node, scope, {}), Done{}; };
  const bool standard = node.domain.empty();
  if (standard && node.op_type == "If") return blind ? pass_by() : run_branch(node, scope, *inputs);
  if (standard && (node.op_type == "Loop" || node.op_type == "Scan"))
    return give_up(node, scope, "control flow cannot be trained through"), Done{};
  if (const Operator* rule = find_operator(node.domain, node.op_type))
    return blind ? pass_by() : run_operator(node, *rule, scope, *inputs);
  if (const auto function = functions_.find({node.domain, node.op_type}); function != functions_.end())
    return run_function(node, *function->second, scope, *inputs);
  give_up(node, scope,
          standard ? "the operator is not known to Sibyl"
                   : "the operator, of domain " + node.domain + ", is not known to Sibyl");
  return {};
}

// An If whose condition is a constant is the branch it takes: torch exports squeeze so.
Done Translator::run_branch(const NodeData& node, Scope& scope, const std::vector<Value*>& inputs) {
  std::array<std::optional<bool>, 2> takes;
  for (std::size_t side = 0; side < 2; ++side)
    if (inputs.size() == 1 && inputs[0]->at[side].values && inputs[0]->at[side].values->size() == 1)
      takes[side] = inputs[0]->at[side].values->front() != 0;
  if (!takes[0] || takes[0] != takes[1])
    return give_up(node, scope, "control flow that depends on data cannot be trained through"), Done{};
  const GraphData* branch = nullptr;
  for (const AttributeData& attribute : node.attributes)
    if (attribute.name == (*takes[0] ? "then_branch" : "else_branch"))
      if (const auto* graph = std::get_if<std::shared_ptr<const GraphData>>(&attribute.value)) branch = graph->get();
  if (branch == nullptr || branch->outputs.size() != node.outputs.size())
    return wrong(message("its branch is missing or does not match its outputs"), scope.prefix + node.name);
  Scope inner;
  inner.parent = &scope;
  inner.prefix = scope.prefix;
  inner.opsets = scope.opsets;
  inner.depth = scope.depth + 1;
  add_initializers(*branch, inner);
  if (Done done = run_nodes(branch->nodes, {}, inner); !done) return done;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Value* value = inner.find(branch->outputs[i].name);
    if (value == nullptr)
      return wrong(message("nothing produces output '" + branch->outputs[i].name + "' of its branch"),
                   scope.prefix + node.name);
    if (!node.outputs[i].empty()) scope.names[node.outputs[i]] = value;
  }
  return {};
}

// Attributes that name one of the caller's get its value; those the caller leaves out are left out.
std::vector<NodeData> with_attributes(const std::vector<NodeData>& nodes, const NodeData& caller) {
  std::vector<NodeData> result = nodes;
  for (NodeData& node : result) {
    std::vector<AttributeData> attributes;
    for (AttributeData& attribute : node.attributes) {
      if (attribute.reference.empty()) {
        attributes.push_back(std::move(attribute));
        continue;
      }
      for (const AttributeData& given : caller.attributes)
        if (given.name == attribute.reference) attributes.push_back({attribute.name, {}, given.value});
    }
    node.attributes = std::move(attributes);
  }
  return result;
}

Done Translator::run_function(const NodeData& node, const FunctionData& function, Scope& scope,
                              const std::vector<Value*>& inputs) {
  constexpr int deepest = 32;
  if (scope.depth >= deepest) return wrong(message("its function calls itself"), scope.prefix + node.name);
  Scope inner;
  inner.prefix = scope.prefix + node.name + "/";
  inner.opsets = function.opsets.empty() ? scope.opsets : &function.opsets;
  inner.depth = scope.depth + 1;
  std::set<std::string> given;
  std::vector<NodeData> nodes = with_attributes(function.nodes, node);
  std::set<std::string> absent;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    given.insert(function.inputs[i]);
    if (i < inputs.size() && inputs[i] != nullptr)
      inner.names[function.inputs[i]] = inputs[i];
    else
      absent.insert(function.inputs[i]);
  }
  for (NodeData& inside : nodes)
    for (std::string& input : inside.inputs)
      if (absent.contains(input)) input.clear();
  if (Done done = run_nodes(nodes, given, inner); !done) return done;
  for (std::size_t i = 0; i < node.outputs.size() && i < function.outputs.size(); ++i) {
    Value* value = inner.find(function.outputs[i]);
    if (value == nullptr)
      return wrong(message("nothing produces output '" + function.outputs[i] + "' of its function"),
                   scope.prefix + node.name);
    if (!node.outputs[i].empty()) scope.names[node.outputs[i]] = value;
  }
  return {};
}

Result<Lowering> Translator::lower(const NodeData& node, const Operator& rule, const Scope& scope,
                                   const std::vector<Value*>& inputs, std::size_t side) {
  const auto opset = scope.opsets->find(node.domain);
  const std::vector<const Value*> views(inputs.begin(), inputs.end());
  SIBYL_TRY(Lowering lowering, rule.rule(Node(node, opset == scope.opsets->end() ? 1 : opset->second, views, side,
                                              binding_.batches, choices_, binding_.capacity_factor)));
  for (auto* facts : {&lowering.outputs, &lowering.locals})
    for (Fact& fact : *facts) {
      if (!is_sane(fact.shape)) return fail("its result [" + to_string(fact.shape) + "] has more than 2^62 elements");
      limit_known(fact);
    }
  return lowering;
}

// A constant may repeat its elements along an axis as long as the baked-in batch (zeros for a mask): one of them, which
// broadcasts, does for any batch. Looked for where another operand has that extent and grows.
std::vector<Value*> Translator::without_baked_batch(std::vector<Value*> inputs) {
  for (Value*& input : inputs) {
    if (input == nullptr || input->source != Source::constant || input->at[0].shape != input->at[1].shape) continue;
    Fact narrow = input->at[0];
    for (std::size_t back = 1; back <= narrow.shape.size(); ++back) {
      const std::size_t axis = narrow.shape.size() - back;
      const bool baked = std::any_of(inputs.begin(), inputs.end(), [&](const Value* other) {
        if (other == nullptr || other->at[0].shape.size() < back || other->at[1].shape.size() < back) return false;
        const auto extent = [&](std::size_t side) {
          return *(other->at[side].shape.end() - static_cast<std::ptrdiff_t>(back));
        };
        return extent(0) == narrow.shape[axis] && extent(1) != extent(0);
      });
      if (baked) narrow = first_of_equal(narrow, axis);
    }
    if (narrow.shape == input->at[0].shape) continue;
    values_.push_back({input->name, Source::constant, {narrow, narrow}, {}});
    input = &values_.back();
  }
  return inputs;
}

Done Translator::run_operator(const NodeData& node, const Operator& rule, Scope& scope,
                              const std::vector<Value*>& inputs) {
  for (std::size_t i = 0; i < rule.required_inputs; ++i)
    if (i >= inputs.size() || inputs[i] == nullptr)
      return wrong(message(fmt::format("{} needs {} operands", node.op_type, rule.required_inputs)),
                   scope.prefix + node.name);
  std::array<Lowering, 2> lowered;
  for (std::size_t side = 0; side < 2; ++side) {
    auto result = lower(node, rule, scope, inputs, side);
    if (!result && side == 1)
      if (const auto narrowed = without_baked_batch(inputs); narrowed != inputs)
        return run_operator(node, rule, scope, narrowed);
    if (!result) return wrong(result.error(), scope.prefix + node.name, node.op_type, side == 1);
    lowered[side] = std::move(*result);
    if (!lowered[side].unsupported.empty()) return give_up(node, scope, lowered[side].unsupported), Done{};
  }
  return settle(node, scope, inputs, lowered);
}

bool reads_trained(const std::vector<Value*>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Value* input) {
    return input != nullptr && (input->source == Source::weight || input->trained);
  });
}

bool is_vector(const Shape& shape) {
  return std::count_if(shape.begin(), shape.end(), [](std::int64_t extent) { return extent != 1; }) <= 1;
}

Done Translator::settle(const NodeData& node, Scope& scope, const std::vector<Value*>& inputs,
                        const std::array<Lowering, 2>& lowered) {
  bool constant = lowered[0].of_shapes;
  if (!constant && !lowered[0].drawn && !inputs.empty()) {
    constant = true;
    for (const Value* input : inputs) constant = constant && (input == nullptr || input->source == Source::constant);
  }
  const bool alias = lowered[0].alias.has_value() && lowered[0].alias == lowered[1].alias;
  std::vector<Value*> outputs;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    outputs.push_back(nullptr);
    if (node.outputs[i].empty()) continue;
    if (alias && i == 0) {
      const Value& input = *inputs[*lowered[0].alias];
      // torch's inference export merges initializers that happen to be equal, such as the scales of a fresh model's
      // norms or all of layers that were copied, and leaves Identity nodes with their names: they are taken apart
      // again. A table of embeddings that is also a matrix of something else is a tied weight.
      const bool tied = tables_.contains(node.inputs[0]) != tables_.contains(node.outputs[0]);
      if (node.op_type == "Identity" && input.source == Source::weight && (is_vector(input.at[0].shape) || !tied))
        add(node.outputs[0], scope, Source::weight, input.at);
      else
        scope.names[node.outputs[0]] = inputs[*lowered[0].alias];
      continue;
    }
    std::array<Fact, 2> at;
    for (std::size_t side = 0; side < 2; ++side)
      if (i < lowered[side].outputs.size()) at[side] = lowered[side].outputs[i];
    // A result that no step yields (statistics of batch-norm, the indices of a pool) is not computed.
    bool made = constant && i < lowered[0].outputs.size() && i < lowered[1].outputs.size();
    for (const Step& step : lowered[0].steps)
      for (const Operand& operand : step.outputs)
        made = made || (operand.from == Operand::From::output && operand.index == i);
    const Source source = !made                                  ? Source::unknown
                          : !constant                            ? Source::activation
                          : is_stored_weight(node, scope, at[0]) ? Source::weight
                                                                 : Source::constant;
    const bool trained = source == Source::activation && is_floating(at[0].dtype) && reads_trained(inputs);
    outputs.back() = add(node.outputs[i], scope, source, std::move(at));
    outputs.back()->trained = trained;
  }
  if (constant || alias) return {};
  if (std::string problem = emitter_.emit(scope.prefix + node.name, lowered, inputs, outputs); !problem.empty()) {
    doubtful_ = true;
    give_up(node, scope, std::move(problem));
  }
  return {};
}

}  // namespace

tl::expected<Translation, TranslationError> translate(const ModelData& model, const Binding& binding,
                                                      Choices& choices) {
  return Translator(model, binding, choices).run();
}

}  // namespace sibyl::onnx_import
