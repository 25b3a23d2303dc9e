// Writes one ONNX file, node by node: what the layers of layers.h and transformer.h are written with.
//
// A Value is a tensor's name with its shape, where batch_extent, seq_extent and decoder_seq_extent stand for the
// symbolic dimensions "batch", "seq" and "decoder_seq". The caller gives the shapes of a node's results (layers know
// them), so that the next layer can size its weights.
//
// The order of the calls is the order in the file, of parameters too: make one call a statement where a function would
// take the results of two, whose order C++ leaves open.
//
// Parameters have a shape and a place in the file NAME.weights, and that file is never written: offsets and lengths are
// those that an exporter would have written. Constants that drive shapes or computations are small and stand in the
// model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/dtype.h"
#include "models/operations/operations.h"
#include "models/shape.h"

namespace sibyl::zoo {

inline constexpr std::int64_t batch_extent = -1;
inline constexpr std::int64_t seq_extent = -2;
inline constexpr std::int64_t decoder_seq_extent = -3;  // of a decoder beside an encoder

struct Value {
  std::string name;
  Shape shape;
};

struct NodeAttribute {
  std::string name;
  std::variant<std::int64_t, double, Ints, std::string> value;
};
using NodeAttributes = std::vector<NodeAttribute>;

class Builder {
 public:
  explicit Builder(std::string name);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Value input(std::string name, Shape shape, DType type = DType::f32);
  // Images take these extents, whatever input() is told: f32 inputs of as many axes behind batch and channels. Layers
  // size themselves by what they get, so that a fully connected one behind them may have other weights.
  void resize_images(Ints extents);
  [[nodiscard]] bool takes_images() const;  // one of the inputs is [batch, channels, extents...], extents known
  void output(const Value& value);
  // Key "sibyl.dim.seq" tells the importer which sequence length to take where the user names none.
  void metadata(std::string key, std::string value);

  // An f32 tensor of the absent weights file. Buffers are the same in the file; who reads it tells them apart by
  // their use (the running statistics of a BatchNormalization).
  Value parameter(std::string name, Shape shape);

  // Constants in the model. Equal ones are written once.
  Value scalar(double value);
  Value scalar(std::int64_t value);
  Value ints(const Ints& values);
  Value boolean(bool value);

  // One node. An empty input name is an absent operand. The first result is named NAME, the others NAME.1, NAME.2, ...
  // An empty name becomes one of the op_type and a number. An operator of another domain than ONNX's own is called
  // DOMAIN:OP_TYPE.
  std::vector<Value> node(std::string_view op_type, std::string name, const std::vector<Value>& inputs,
                          std::vector<Shape> results, const NodeAttributes& attributes = {});
  // The same for the many with one result.
  Value apply(std::string_view op_type, std::string name, const std::vector<Value>& inputs, Shape result,
              const NodeAttributes& attributes = {});
  // ConstantOfShape: the only node whose attribute is a tensor. f32 or boolean.
  Value filled(const Value& extents, Shape result, double value, DType type = DType::f32);

  [[nodiscard]] std::string bytes() const;

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace sibyl::zoo
