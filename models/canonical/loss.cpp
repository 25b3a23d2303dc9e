#include "models/canonical/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/canonical/editor.h"

namespace sibyl {
namespace {

// Weight of an auxiliary classifier's loss: 0.3 in Szegedy et al., 2015, 0.4 in torchvision's Inception v3. It costs the same.
constexpr double auxiliary_weight = 0.3;

bool reads_ids(const Editor& editor) {
  const auto order = editor.order();
  return std::any_of(order.begin(), order.end(), [&](OperationId id) {
    return std::holds_alternative<Embedding>(editor[id].attributes);
  });
}

// By what a step multiplies its operand, where it does nothing else.
std::optional<double> factor(const Unary* unary) {
  if (!unary || unary->kind != UnaryKind::scale_shift || unary->beta != 0) return std::nullopt;
  return unary->alpha;
}

// c tanh(x / c), which is about x where that is small: `after` comes next. Any other tanh makes features.
bool caps(const Editor& editor, const Operation& tanh, const Unary* after) {
  const auto outer = factor(after), inner = factor(editor.produced_by<Unary>(tanh.inputs[0]));
  constexpr double rounding = 1e-3;
  return outer && inner && std::abs(*outer * *inner - 1) < rounding;
}

// The operation that made the tensor's values, looking through what logits may go through on their way out: a bias,
// reshapes, a softmax, a last cast, a factor, a cap.
const Operation* maker(const Editor& editor, TensorId output) {
  const Unary* after = nullptr;
  for (TensorId t = output; editor.producer(t).valid();) {
    const Operation& op = editor[editor.producer(t)];
    const Unary* unary = editor.produced_by<Unary>(t);
    const bool passes = std::holds_alternative<Reshape>(op.attributes) ||
                        std::holds_alternative<Softmax>(op.attributes) ||
                        std::holds_alternative<Binary>(op.attributes) || std::holds_alternative<Cast>(op.attributes) ||
                        factor(unary) || (unary && unary->kind == UnaryKind::tanh && caps(editor, op, after));
    if (!passes) return &op;
    after = unary;
    t = op.inputs[0];
  }
  return nullptr;
}

// Logits come from a layer; hidden states from a normalisation.
bool made_by_layer(const Editor& editor, TensorId t) {
  const Operation* op = maker(editor, t);
  return op && (std::holds_alternative<Linear>(op->attributes) || std::holds_alternative<MatMul>(op->attributes));
}

bool looks_like_an_input(const Editor& editor, const Shape& shape) {
  for (std::size_t t = 0; t < editor.tensor_count(); ++t) {
    const Tensor& tensor = editor[TensorId{t}];
    if (tensor.kind == TensorKind::input && is_floating(tensor.dtype) && tensor.shape == shape) return true;
  }
  return false;
}

// The axis of the classes, or nothing where the output has none.
std::optional<std::size_t> class_axis(const Editor& editor, TensorId output, bool asked) {
  const Shape& shape = editor[output].shape;
  const std::size_t rank = shape.size();
  const bool tokens = rank == 3 && (reads_ids(editor) || asked);
  if (rank < 2) return std::nullopt;
  const std::size_t axis = tokens ? 2 : 1;
  if (shape[axis] < 2 || editor[output].batch_axis == axis) return std::nullopt;
  if (asked || rank == 2) return axis;
  if (rank == 3) return tokens && made_by_layer(editor, output) ? std::optional(axis) : std::nullopt;
  return looks_like_an_input(editor, shape) ? std::nullopt : std::optional(axis);
}

// Cross-entropy takes logits: a last softmax or sigmoid, also behind reshapes and casts, is passed by.
void drop_final_activation(Editor& editor, TensorId& output) {
  TensorId t = output;
  while ((editor.produced_by<Reshape>(t) || editor.produced_by<Cast>(t)) &&
         (t == output || editor.sole_consumer(t).valid()))
    t = editor.operand(t, 0);
  const auto* unary = editor.produced_by<Unary>(t);
  const bool dropped = editor.produced_by<Softmax>(t) || (unary && unary->kind == UnaryKind::sigmoid);
  if (!dropped || (t != output && !editor.sole_consumer(t).valid())) return;
  const TensorId logits = editor.operand(t, 0);
  if (t == output) output = logits;
  editor.redirect(t, logits);
}

std::string unused_name(const Editor& editor, std::string name) {
  for (std::size_t t = 0; t < editor.tensor_count(); ++t)
    if (editor[TensorId{t}].name == name) return unused_name(editor, "sibyl_" + name);
  return name;
}

Tensor scalar(const Editor& editor, TensorId like, std::string name) {
  Tensor t;
  t.name = std::move(name);
  t.dtype = editor[like].dtype;
  return t;
}

TensorId add_targets(Editor& editor, TensorId output, std::optional<std::size_t> classes) {
  Tensor targets = editor[output];
  targets.name = unused_name(editor, "targets");
  targets.kind = TensorKind::input;
  targets.values.clear();
  if (classes) {
    targets.index_bound = targets.shape[*classes];
    targets.dtype = DType::i64;
    targets.shape.erase(targets.shape.begin() + static_cast<std::ptrdiff_t>(*classes));
    if (targets.batch_axis && *targets.batch_axis > *classes) --*targets.batch_axis;
  }
  return editor.add(std::move(targets));
}

TensorId add_loss(Editor& editor, TensorId output, TensorId targets, std::optional<std::size_t> classes, const std::string& name) {
  const TensorId value = editor.add(scalar(editor, output, unused_name(editor, name)));
  Attributes attributes = MeanSquaredError{};
  if (classes) attributes = CrossEntropy{static_cast<std::int64_t>(*classes)};
  editor.append(Operation{editor[value].name, attributes, {output, targets}, {value}, {}});
  return value;
}

// Outputs of the same shape as the first are auxiliary classifiers: total = loss + weight * auxiliary.
TensorId with_auxiliary(Editor& editor, TensorId total, TensorId output, TensorId targets, std::size_t classes) {
  const TensorId auxiliary = add_loss(editor, output, targets, classes, "auxiliary_loss");
  const TensorId weighted = editor.add(scalar(editor, output, editor[auxiliary].name + "/weighted"));
  editor.append(Operation{editor[weighted].name, Unary{UnaryKind::scale_shift, auxiliary_weight, 0}, {auxiliary}, {weighted}, {}});
  const TensorId sum = editor.add(scalar(editor, output, editor[auxiliary].name + "/total"));
  editor.append(Operation{editor[sum].name, Binary{BinaryKind::add}, {total, weighted}, {sum}, {}});
  return sum;
}

// One number for the whole batch: a model that ends in its loss.
bool is_loss(const Tensor& output) { return element_count(output.shape) == 1 && !output.batch_axis; }

Result<Graph> with_own_loss(Editor editor, TensorId loss) {
  // Cross-entropy takes logits, and a log-softmax leaves log-probabilities as they are.
  for (const OperationId id : editor.order()) {
    if (!std::holds_alternative<CrossEntropy>(editor[id].attributes)) continue;
    const TensorId scores = editor[id].inputs[0];
    const auto* softmax = editor.produced_by<Softmax>(scores);
    if (softmax && softmax->log && editor.sole_consumer(scores).valid())
      editor.redirect(scores, editor.operand(scores, 0));
  }
  editor.loss = loss;
  editor.outputs = {loss};
  editor.assumed.push_back(fmt::format("the model ends in its own loss, {}", editor[loss].name));
  return editor.finish();
}

Failure nothing_to_train(const Graph& graph) {
  for (const TensorKind kind : {TensorKind::input, TensorKind::parameter, TensorKind::buffer, TensorKind::activation})
    for (const Tensor& tensor : graph.tensors())
      if (tensor.kind == kind && element_count(tensor.shape) == 0)
        return fail(fmt::format("the tensor has an extent of 0 (its shape is {}), so there is nothing to train",
                                to_string(tensor.shape)),
                    tensor.name);
  return fail("no output of the model is computed from a trained parameter, so there is nothing to train", graph.name);
}

}  // namespace

Result<Graph> attach_loss(Graph graph, LossKind kind) {
  if (kind == LossKind::none) return graph;
  Editor editor(graph);
  std::vector<TensorId> trainable;
  for (const TensorId id : editor.outputs)
    if (is_floating(graph[id].dtype) && graph.requires_gradient(id) && graph.producer(id).valid()) trainable.push_back(id);
  if (trainable.empty()) return nothing_to_train(graph);
  TensorId& output = trainable.front();
  if (kind == LossKind::automatic && is_loss(graph[output])) return with_own_loss(std::move(editor), output);
  std::optional<std::size_t> classes;
  if (kind != LossKind::mean_squared_error) classes = class_axis(editor, output, kind == LossKind::cross_entropy);
  if (kind == LossKind::cross_entropy && !classes)
    return fail(fmt::format("the output has no axis of classes: its shape is {}", to_string(graph[output].shape)),
                graph[output].name);

  const Shape shape = graph[output].shape;
  if (classes) drop_final_activation(editor, output);
  const TensorId targets = add_targets(editor, output, classes);
  editor.loss = add_loss(editor, output, targets, classes, "loss");
  for (std::size_t i = 1; i < trainable.size() && classes && shape.size() == 2; ++i) {
    if (graph[trainable[i]].shape != shape) continue;
    drop_final_activation(editor, trainable[i]);
    editor.loss = with_auxiliary(editor, editor.loss, trainable[i], targets, *classes);
  }
  editor.outputs = {editor.loss};
  return editor.finish();
}

}  // namespace sibyl
