// What timing one KernelKey does on the device: buffers, and steps that run in order. Of this folder alone.
//
// A key is a program of one or several steps, as a framework launches it: a linear layer's backward is two matrix
// products and a sum. Where a library has several kernels for a step, the first choice is the one that frameworks take
// (the heuristic's); the others are alternatives, which are timed when the best of all is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profiler/cudnn/cuda.h"
#include "profiler/cudnn/gpu.h"
#include "profiler/cudnn/graph.h"
#include "profiler/kernel_key.h"

namespace sibyl::cudnn {

struct Buffer {
  enum class Fill { nothing, zeros, values, ids, flags };
  Type type = Type::f32;
  std::int64_t count = 0;
  Fill fill = Fill::nothing;
  std::int64_t bound = 1;  // of ids

  [[nodiscard]] std::size_t bytes() const;
};

// One copy of the buffers, as a step sees it.
struct Run {
  const std::vector<void*>& buffers;
  void* workspace;
  const Libraries& libraries;

  [[nodiscard]] void* at(std::size_t buffer) const { return buffers[buffer]; }
  template <class T>
  [[nodiscard]] T* as(std::size_t buffer) const {
    return static_cast<T*>(buffers[buffer]);
  }
  [[nodiscard]] cudaStream_t stream() const { return libraries.stream(); }
};

struct Choice {
  std::function<void(const Run&)> run;
  std::size_t workspace = 0;
  std::string name;  // of the engine or algorithm, for messages
};

struct Step {
  std::vector<Choice> choices;  // the framework's first; never empty
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Choice> before;  // what ran earlier in a training step and left something behind: once a copy, not timed
  std::vector<Step> steps;     // none: a view
  std::vector<Step> fused;     // does the same in fewer launches, where libraries fuse it
  std::optional<std::size_t> warm;  // the buffer that the previous operation of a training step has just written

  std::size_t add(Buffer buffer) {
    buffers.push_back(buffer);
    return buffers.size() - 1;
  }
  void launch(std::function<void(const Run&)> run, std::size_t workspace = 0) {
    steps.push_back({{Choice{std::move(run), workspace, {}}}});
  }
  [[nodiscard]] std::size_t bytes() const;  // of one copy
};

// What the programs of a key are made with.
struct Maker {
  const Target& target;        // whose engines are chosen
  const Libraries* libraries;  // none where programs are only planned, for a device that is not there
  const Settings& settings;
  const KernelKey& key;
  Type type;  // of the key's elements

  [[nodiscard]] const Shape& input(std::size_t i) const { return key.signature.inputs.at(i); }
  [[nodiscard]] const Shape& output() const { return key.signature.outputs.at(0); }
  [[nodiscard]] bool has(std::size_t i) const {
    return i < key.signature.inputs.size() && key.signature.inputs[i] != Shape{0};
  }
  [[nodiscard]] bool backward() const { return key.pass == Pass::backward; }
  [[nodiscard]] bool wants(std::size_t i) const { return (key.gradients >> i & 1U) != 0; }

  [[nodiscard]] Buffer values(const Shape& shape) const {
    return {type, element_count(shape), Buffer::Fill::values, 1};
  }
  [[nodiscard]] Buffer result(const Shape& shape) const {
    return {type, element_count(shape), Buffer::Fill::nothing, 1};
  }
};

Type type_of(DType type);
bool computes_in_tf32(const KernelKey& key);

// One overload per operation, in the file of its family. Throws Refusal for what this backend has no kernel for.
Program program(const Convolution& op, const Maker& m);  // convolution.cpp
Program program(const Linear& op, const Maker& m);       // matrix.cpp
Program program(const MatMul& op, const Maker& m);
Program program(const GroupedLinear& op, const Maker& m);
Program program(const Attention& op, const Maker& m);      // attention.cpp
Program program(const Normalization& op, const Maker& m);  // normalization.cpp
Program program(const LocalResponseNorm& op, const Maker& m);
Program program(const Softmax& op, const Maker& m);
Program program(const CrossEntropy& op, const Maker& m);
Program program(const Pool& op, const Maker& m);   // pool.cpp
Program program(const Unary& op, const Maker& m);  // elementwise.cpp
Program program(const Binary& op, const Maker& m);
Program program(const Where& op, const Maker& m);
Program program(const Dropout& op, const Maker& m);
Program program(const Cast& op, const Maker& m);
Program program(const Copy& op, const Maker& m);
Program program(const MeanSquaredError& op, const Maker& m);
Program program(const Reduce& op, const Maker& m);
Program program(const Transpose& op, const Maker& m);  // layout.cpp
Program program(const Concat& op, const Maker& m);
Program program(const Slice& op, const Maker& m);
Program program(const Split& op, const Maker& m);
Program program(const Pad& op, const Maker& m);
Program program(const Expand& op, const Maker& m);
Program program(const Reshape& op, const Maker& m);
Program program(const Resize& op, const Maker& m);
Program program(const Gather& op, const Maker& m);
Program program(const Embedding& op, const Maker& m);
Program program(const OptimizerUpdate& op, const Maker& m);  // update.cpp
template <class Op>
Program program(const Op&, const Maker&) {
  throw Refusal("the cudnn backend has no kernel for it; the torch backend may");
}

Program make_program(const Target& target, const Libraries* libraries, const Settings& settings, const KernelKey& key);

// Sums x[outer, length, inner] into y[outer, inner]: a step with its workspace.
void add_sum(Program& p, Sum sum, Type type, std::size_t x, std::size_t y, std::int64_t outer, std::int64_t length,
             std::int64_t inner);
// Sums dy of shape `from` to the smaller shape `to`, as the gradient of a broadcast.
void add_sum_to_shape(Program& p, Type type, std::size_t dy, std::size_t result, const Shape& from, const Shape& to);

}  // namespace sibyl::cudnn
