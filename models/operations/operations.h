// The operations a Graph is made of, after canonical rewriting: what a framework runs as one call.
//
// Each is a plain struct of attributes. `name` is its spelling in files; `fields` lists its attributes once, and from
// that list come printing, parsing, equality and hashing (signature.h). Operands are positional and named in the comment;
// [x] may be absent. What an operation costs and what autograd keeps for it stand in models/training/.
//
// Layouts are PyTorch's: images N C (D) H W; weights of a convolution K C/groups (D) R S; tokens B S E.
// To add an operation: write its own file, as running_sum.h is, and its name at the end of `Attributes` (docs/adding.md).
// Those here, older or with more to say, have their rules in the rooms' folders.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "models/dtype.h"
#include "models/operations/experts.h"
#include "models/operations/gather_elements.h"
#include "models/operations/packing.h"
#include "models/operations/running_sum.h"

namespace sibyl {

using Ints = std::vector<std::int64_t>;

// x, weight, [bias] -> y. Vectors have one entry per spatial dimension. `transposed` is ConvTranspose.
struct Convolution {
  static constexpr std::string_view name = "convolution";
  Ints kernel, stride, dilation, pad_begin, pad_end;
  std::int64_t groups = 1;
  bool transposed = false;
  Ints output_pad;  // transposed only; empty otherwise
  static void fields(auto& self, auto&& visit) {
    visit("kernel", self.kernel), visit("stride", self.stride), visit("dilation", self.dilation);
    visit("pad_begin", self.pad_begin), visit("pad_end", self.pad_end), visit("groups", self.groups);
    visit("transposed", self.transposed), visit("output_pad", self.output_pad);
  }
  bool operator==(const Convolution&) const = default;
};

// x[..., K], weight, [bias[N]] -> y[..., N]. weight is [N, K], or [K, N] when `weight_kn` (as ONNX MatMul stores it).
struct Linear {
  static constexpr std::string_view name = "linear";
  bool weight_kn = false;
  static void fields(auto& self, auto&& visit) { visit("weight_kn", self.weight_kn); }
  bool operator==(const Linear&) const = default;
};

// a[..., M, K], b[..., K, N] -> y[..., M, N]: both operands are activations; leading dimensions broadcast.
struct MatMul {
  static constexpr std::string_view name = "matmul";
  static void fields(auto&, auto&&) {}
  bool operator==(const MatMul&) const = default;
};

// q[B, H, S, D], k[B, Hkv, T, D], v[B, Hkv, T, D], [mask, broadcastable to B H S T] -> y[B, H, S, D].
// softmax(scale q k^T + mask) v, as torch's scaled_dot_product_attention. dropout acts on the probabilities. Causal:
// the last query sees all keys but the last `behind`, and each one before it one less. In a ring k and v are one of so
// many parts of the keys and values, as q is of the queries: the others come round from other ranks while it computes
// (aten/operations/ring_attention.h).
struct Attention {
  static constexpr std::string_view name = "attention";
  bool causal = false;
  double scale = 1.0;
  double dropout = 0.0;
  std::int64_t behind = 0;
  std::int64_t ring = 1;
  static void fields(auto& self, auto&& visit) {
    visit("causal", self.causal), visit("scale", self.scale), visit("dropout", self.dropout);
    visit("behind", self.behind), visit("ring", self.ring);
  }
  bool operator==(const Attention&) const = default;
};

// x, [scale], [shift], [running mean], [running variance] (the last two: batch only) -> y, always as in training.
// layer and rms normalise over the last `axes` dimensions; group over `groups` groups of channels.
enum class NormalizationKind { batch, layer, rms, group, instance };
struct Normalization {
  static constexpr std::string_view name = "normalization";
  NormalizationKind kind = NormalizationKind::batch;
  std::int64_t axes = 1;
  std::int64_t groups = 1;
  double epsilon = 1e-5;
  double momentum = 0.1;  // PyTorch's meaning: weight of the new batch's statistics
  bool in_one_kernel = false;  // of RMS, which PyTorch's models compose of several
  static void fields(auto& self, auto&& visit) {
    visit("kind", self.kind), visit("axes", self.axes), visit("groups", self.groups);
    visit("epsilon", self.epsilon), visit("momentum", self.momentum), visit("in_one_kernel", self.in_one_kernel);
  }
  bool operator==(const Normalization&) const = default;
};

// x -> y. `global` pools over the whole extent of every spatial dimension (kernel etc. empty).
enum class PoolKind { max, average };
struct Pool {
  static constexpr std::string_view name = "pool";
  PoolKind kind = PoolKind::max;
  bool global = false;
  Ints kernel, stride, dilation, pad_begin, pad_end;
  bool ceil_mode = false;
  bool count_include_pad = false;
  static void fields(auto& self, auto&& visit) {
    visit("kind", self.kind), visit("global", self.global), visit("kernel", self.kernel), visit("stride", self.stride);
    visit("dilation", self.dilation), visit("pad_begin", self.pad_begin), visit("pad_end", self.pad_end);
    visit("ceil_mode", self.ceil_mode), visit("count_include_pad", self.count_include_pad);
  }
  bool operator==(const Pool&) const = default;
};

// x -> y, elementwise. alpha and beta are the function's constants where it has them (leaky_relu slope, elu alpha,
// clip low/high, pow exponent, scale_shift y = alpha x + beta: a Binary with a scalar constant).
enum class UnaryKind {
  relu, leaky_relu, prelu, elu, gelu, gelu_tanh, silu, hard_swish, hard_sigmoid, sigmoid, tanh, softplus, mish, clip,
  erf, exp, log, sqrt, rsqrt, reciprocal, pow, abs, neg, sin, cos, floor, ceil, round, sign, logical_not, scale_shift
};
struct Unary {
  static constexpr std::string_view name = "unary";
  UnaryKind kind = UnaryKind::relu;
  double alpha = 0.0, beta = 0.0;
  static void fields(auto& self, auto&& visit) {
    visit("kind", self.kind), visit("alpha", self.alpha), visit("beta", self.beta);
  }
  bool operator==(const Unary&) const = default;
};

// a, b -> y with numpy broadcasting.
enum class BinaryKind { add, sub, mul, div, pow, min, max, mod, equal, less, less_equal, greater, greater_equal, logical_and, logical_or };
struct Binary {
  static constexpr std::string_view name = "binary";
  BinaryKind kind = BinaryKind::add;
  static void fields(auto& self, auto&& visit) { visit("kind", self.kind); }
  bool operator==(const Binary&) const = default;
};

// condition, a, b -> y.
struct Where {
  static constexpr std::string_view name = "where";
  static void fields(auto&, auto&&) {}
  bool operator==(const Where&) const = default;
};

// x -> y; axis counted from the front.
struct Softmax {
  static constexpr std::string_view name = "softmax";
  std::int64_t axis = -1;
  bool log = false;
  static void fields(auto& self, auto&& visit) { visit("axis", self.axis), visit("log", self.log); }
  bool operator==(const Softmax&) const = default;
};

// x -> y; the mask is drawn anew each step and kept for backward.
struct Dropout {
  static constexpr std::string_view name = "dropout";
  double ratio = 0.5;
  static void fields(auto& self, auto&& visit) { visit("ratio", self.ratio); }
  bool operator==(const Dropout&) const = default;
};

// table[V, E], ids -> y[ids..., E]. The table is a parameter. `partial`: some rows of one; an id below 0 is of a row that
// is elsewhere, and gives zeros.
struct Embedding {
  static constexpr std::string_view name = "embedding";
  bool partial = false;
  static void fields(auto& self, auto&& visit) { visit("partial", self.partial); }
  bool operator==(const Embedding&) const = default;
};

// x -> y.
enum class ReduceKind { sum, mean, max, min, prod, l1, l2, argmax, argmin };
struct Reduce {
  static constexpr std::string_view name = "reduce";
  ReduceKind kind = ReduceKind::mean;
  Ints axes;
  bool keep_dims = true;
  static void fields(auto& self, auto&& visit) {
    visit("kind", self.kind), visit("axes", self.axes), visit("keep_dims", self.keep_dims);
  }
  bool operator==(const Reduce&) const = default;
};

// x -> y, a view of the same elements: reshape, flatten, squeeze, unsqueeze, identity. Costs nothing but its dispatch.
struct Reshape {
  static constexpr std::string_view name = "reshape";
  static void fields(auto&, auto&&) {}
  bool operator==(const Reshape&) const = default;
};
// x -> y with y's dimension i = x's dimension permutation[i]. A copy: PyTorch makes a view, which the next operation that
// needs it contiguous copies; here the copy stands where it arises.
struct Transpose {
  static constexpr std::string_view name = "transpose";
  Ints permutation;
  static void fields(auto& self, auto&& visit) { visit("permutation", self.permutation); }
  bool operator==(const Transpose&) const = default;
};
// x0, x1, … -> y.
struct Concat {
  static constexpr std::string_view name = "concat";
  std::int64_t axis = 0;
  static void fields(auto& self, auto&& visit) { visit("axis", self.axis); }
  bool operator==(const Concat&) const = default;
};
// x -> y: a view. One entry per listed axis; ends exclusive and already clamped to the extents.
struct Slice {
  static constexpr std::string_view name = "slice";
  Ints axes, starts, ends, steps;
  static void fields(auto& self, auto&& visit) {
    visit("axes", self.axes), visit("starts", self.starts), visit("ends", self.ends), visit("steps", self.steps);
  }
  bool operator==(const Slice&) const = default;
};
// x -> y0, y1, …: views.
struct Split {
  static constexpr std::string_view name = "split";
  std::int64_t axis = 0;
  Ints sizes;
  static void fields(auto& self, auto&& visit) { visit("axis", self.axis), visit("sizes", self.sizes); }
  bool operator==(const Split&) const = default;
};
// x, indices -> y: numpy's take along `axis`. With a parameter as x and axis 0 it is an Embedding instead.
struct Gather {
  static constexpr std::string_view name = "gather";
  std::int64_t axis = 0;
  static void fields(auto& self, auto&& visit) { visit("axis", self.axis); }
  bool operator==(const Gather&) const = default;
};
// x -> y. One entry per dimension of x.
struct Pad {
  static constexpr std::string_view name = "pad";
  Ints begin, end;
  static void fields(auto& self, auto&& visit) { visit("begin", self.begin), visit("end", self.end); }
  bool operator==(const Pad&) const = default;
};
// x -> y: broadcast to y's shape; a view.
struct Expand {
  static constexpr std::string_view name = "expand";
  static void fields(auto&, auto&&) {}
  bool operator==(const Expand&) const = default;
};
// x -> y: interpolation to y's spatial extents.
enum class ResizeKind { nearest, linear, cubic };
struct Resize {
  static constexpr std::string_view name = "resize";
  ResizeKind kind = ResizeKind::nearest;
  static void fields(auto& self, auto&& visit) { visit("kind", self.kind); }
  bool operator==(const Resize&) const = default;
};
// x -> y in another element type.
struct Cast {
  static constexpr std::string_view name = "cast";
  DType to = DType::f32;
  static void fields(auto& self, auto&& visit) { visit("to", self.to); }
  bool operator==(const Cast&) const = default;
};
// x -> y: a contiguous copy (gradient into a bucket, activation into a send buffer).
struct Copy {
  static constexpr std::string_view name = "copy";
  static void fields(auto&, auto&&) {}
  bool operator==(const Copy&) const = default;
};
// x -> y: AlexNet's and GoogLeNet's normalisation over `size` neighbouring channels.
struct LocalResponseNorm {
  static constexpr std::string_view name = "local_response_norm";
  std::int64_t size = 5;
  double alpha = 1e-4, beta = 0.75, k = 1.0;
  static void fields(auto& self, auto&& visit) {
    visit("size", self.size), visit("alpha", self.alpha), visit("beta", self.beta), visit("k", self.k);
  }
  bool operator==(const LocalResponseNorm&) const = default;
};

// logits[..., C] (class_axis last) or [N, C, ...] (class_axis 1), targets (class numbers) -> scalar mean loss.
struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  std::int64_t class_axis = 1;
  static void fields(auto& self, auto&& visit) { visit("class_axis", self.class_axis); }
  bool operator==(const CrossEntropy&) const = default;
};
// y, target of y's shape -> scalar: for models that regress.
struct MeanSquaredError {
  static constexpr std::string_view name = "mean_squared_error";
  static void fields(auto&, auto&&) {}
  bool operator==(const MeanSquaredError&) const = default;
};

// Parts of operations that ranks share: each does its own, between them go collectives (oracle/plan/sharding).

// Of cross-entropy over classes that ranks share. z[...], targets, shift -> sum over the own classes of exp(z - shift),
// and the target's z - shift, which is 0 where the target is below 0, another rank's. Shift has no gradient.
struct ClassStatistics {
  static constexpr std::string_view name = "class_statistics";
  std::int64_t class_axis = 1;
  static void fields(auto& self, auto&& visit) { visit("class_axis", self.class_axis); }
  bool operator==(const ClassStatistics&) const = default;
};
// Of a norm whose samples or images ranks share. x[N, C, ...] -> the means of values and of their squares: [2, C], of
// each channel over all samples (batch-norm's, `groups` 0); or [2, N, groups], of each sample's groups of channels.
struct NormStatistics {
  static constexpr std::string_view name = "norm_statistics";
  std::int64_t groups = 0;
  static void fields(auto& self, auto&& visit) { visit("groups", self.groups); }
  bool operator==(const NormStatistics&) const = default;
};
// x, statistics as above over all `parts` equal parts of what they are of, [scale], [shift], [running mean],
// [running variance] (the last two: batch-norm's only) -> y.
struct ApplyNorm {
  static constexpr std::string_view name = "apply_norm";
  std::int64_t groups = 0;
  std::int64_t parts = 1;
  double epsilon = 1e-5;
  double momentum = 0.1;  // as Normalization's
  static void fields(auto& self, auto&& visit) {
    visit("groups", self.groups), visit("parts", self.parts), visit("epsilon", self.epsilon);
    visit("momentum", self.momentum);
  }
  bool operator==(const ApplyNorm&) const = default;
};

// Not part of a model: the optimizer's update of one parameter tensor (pass `forward`). inputs: the parameter.
enum class OptimizerKind { sgd, momentum, adam, adamw, lamb, lars };
struct OptimizerUpdate {
  static constexpr std::string_view name = "optimizer_update";
  OptimizerKind kind = OptimizerKind::sgd;
  bool weight_decay = false;
  bool fused = false;  // one kernel (apex, torch.optim's fused=True); else on GPUs one for each step of the formula
  bool written = false;  // each operator of the formula a kernel with a result of its own, unless fused
  static void fields(auto& self, auto&& visit) {
    visit("kind", self.kind), visit("weight_decay", self.weight_decay), visit("fused", self.fused);
    visit("written", self.written);
  }
  bool operator==(const OptimizerUpdate&) const = default;
};

using Attributes = std::variant<Convolution, Linear, MatMul, Attention, Normalization, Pool, Unary, Binary, Where,
                                Softmax, Dropout, Embedding, Reduce, Reshape, Transpose, Concat, Slice, Split, Gather,
                                Pad, Expand, Resize, Cast, Copy, LocalResponseNorm, CrossEntropy, MeanSquaredError,
                                ClassStatistics, NormStatistics, ApplyNorm, OptimizerUpdate, TopK, Dispatch, Combine,
                                GroupedLinear, RunningSum, GatherElements, Packing, HaloPacking>;

template <class... Ops>
bool is_any(const Attributes& attributes) {
  return (std::holds_alternative<Ops>(attributes) || ...);
}

std::string_view name_of(const Attributes& attributes);  // "convolution"
// What an operation's own file says (own_file.h); nothing of others.
std::optional<std::size_t> index_into(const Attributes& attributes, std::size_t operand);
std::vector<std::string_view> operation_names();          // of all of them

// The spellings of each enumeration, in order of its values.
constexpr auto enum_names(NormalizationKind) {
  return std::to_array<std::string_view>({"batch", "layer", "rms", "group", "instance"});
}
constexpr auto enum_names(PoolKind) { return std::to_array<std::string_view>({"max", "average"}); }
constexpr auto enum_names(UnaryKind) {
  return std::to_array<std::string_view>(
      {"relu", "leaky_relu", "prelu", "elu", "gelu", "gelu_tanh", "silu", "hard_swish", "hard_sigmoid", "sigmoid",
       "tanh", "softplus", "mish", "clip", "erf", "exp", "log", "sqrt", "rsqrt", "reciprocal", "pow", "abs", "neg",
       "sin", "cos", "floor", "ceil", "round", "sign", "logical_not", "scale_shift"});
}
constexpr auto enum_names(BinaryKind) {
  return std::to_array<std::string_view>({"add", "sub", "mul", "div", "pow", "min", "max", "mod", "equal", "less",
                                          "less_equal", "greater", "greater_equal", "logical_and", "logical_or"});
}
constexpr auto enum_names(ReduceKind) {
  return std::to_array<std::string_view>({"sum", "mean", "max", "min", "prod", "l1", "l2", "argmax", "argmin"});
}
constexpr auto enum_names(ResizeKind) { return std::to_array<std::string_view>({"nearest", "linear", "cubic"}); }
constexpr auto enum_names(OptimizerKind) {
  return std::to_array<std::string_view>({"sgd", "momentum", "adam", "adamw", "lamb", "lars"});
}

}  // namespace sibyl
