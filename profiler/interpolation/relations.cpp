#include "profiler/interpolation/relations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "profiler/interpolation/roofline.h"

namespace sibyl::interpolation {
namespace {

template <class Op>
std::uint8_t index_of() {
  return static_cast<std::uint8_t>(Attributes{Op{}}.index());
}

// The others are bound by memory, or take the same in any type.
bool is_bound_by_units(const KernelKey& key) {
  const Attributes& attributes = key.signature.attributes;
  return (std::holds_alternative<Convolution>(attributes) && !is_depthwise(key)) ||
         std::holds_alternative<Linear>(attributes) || std::holds_alternative<MatMul>(attributes) ||
         std::holds_alternative<GroupedLinear>(attributes) || std::holds_alternative<Attention>(attributes);
}

// Predicting the convolutions of 11 devices from their own matrix products alone: medians between 0.74 and 1.64 times
// what they take, and a 90 % quantile of the error at 1.4 times the time (Winograd's algorithm at one end, slow ones at
// the other).
constexpr double convolution_over_gemm = 1.2;
constexpr double convolution_over_gemm_error = 0.8;

// What gradients take of a convolution's forward time: medians over DeepBench's on V100, T4, P100, TITAN Xp and M40 lie
// between 1.08 and 1.32 (x) and between 1.18 and 1.62 (w). Gradients predicted so from forward passes alone are off by
// 16 to 36 % in the median of a device, 44 to 99 % in the 90 % quantile.
constexpr double gradient_of_x = 1.2, gradient_of_w = 1.4;
constexpr double gradient_error = 0.4;

std::vector<Relative> convolution_relations(const Convolution& op, const KernelKey& key, const Place& own) {
  std::vector<Relative> relatives;
  const double of_forward = own.family.gradients == 1   ? gradient_of_x
                            : own.family.gradients == 2 ? gradient_of_w
                                                        : (gradient_of_x + gradient_of_w) / 2;
  auto add = [&](Pass pass, std::uint8_t gradients, std::uint32_t flip) {
    Place p = own;
    p.family.pass = pass;
    p.family.gradients = gradients;
    p.family.category ^= flip;
    const bool derived = pass != own.family.pass;
    relatives.push_back({p, derived ? of_forward : 1.0, derived ? gradient_error : 0.2});
  };
  const auto [pass, gradients] = std::pair(own.family.pass, own.family.gradients);
  for (const std::uint32_t flip : {std::uint32_t{strided}, std::uint32_t{pointwise}, pointwise | strided})
    add(pass, gradients, flip);
  if ((own.family.category & unaligned) != 0)
    for (const std::uint32_t flip : {0U, std::uint32_t{strided}}) add(pass, gradients, unaligned | flip);
  if (pass == Pass::backward)
    for (const std::uint32_t flip : {0U, std::uint32_t{strided}, std::uint32_t{pointwise}, pointwise | strided})
      add(Pass::forward, 0, flip);
  const auto product = as_product(key);
  if (op.groups == 1 && product)
    relatives.push_back({place(key.signature.dtype, *product), convolution_over_gemm, convolution_over_gemm_error});
  return relatives;
}

// Backward, five products in one kernel run at 0.75 to 0.8 of the rate of forward's two: 225 against 175 TFLOP/s on
// A100 (Dao, FlashAttention-2, 2023, figures 5 and 6), 660 against 510 on H100 (Shah et al., FlashAttention-3, 2024).
constexpr double attention_backward = 1.28;
constexpr double attention_backward_error = 0.2;

std::vector<Relative> attention_relations(const Place& own) {
  std::vector<Relative> relatives;
  for (const Pass pass : {own.family.pass, Pass::forward}) {
    const bool derived = pass != own.family.pass;
    for (std::uint32_t flip = derived ? 0 : 1; flip < 8; ++flip) {  // causal, dropout, mask
      Place p = own;
      p.family.pass = pass;
      if (pass == Pass::forward) p.family.gradients = 0;
      p.family.category ^= flip;
      relatives.push_back({p, derived ? attention_backward : 1.0, derived ? attention_backward_error : 0.2});
    }
    if (pass == Pass::forward) break;
  }
  return relatives;
}

// What ranks do of an operation that they share reads and writes much as the operation does.
std::optional<Relative> shared_operation(const Attributes& attributes, Place p) {
  constexpr double error = 0.4;
  constexpr std::uint8_t all_gradients = 7;
  const auto* embedding = std::get_if<Embedding>(&attributes);
  const std::uint32_t category = std::exchange(p.family.category, 0U);
  if (embedding && embedding->partial) return Relative{p, 1.0, error};
  if (std::holds_alternative<ClassStatistics>(attributes)) {
    p.family.operation = index_of<CrossEntropy>();
    return Relative{p, 1.0, error};
  }
  if (std::holds_alternative<NormStatistics>(attributes) || std::holds_alternative<ApplyNorm>(attributes)) {
    // Those of each sample run as a batch-norm of so many more channels, as an instance norm does.
    const auto kind = category == 0 ? NormalizationKind::batch : NormalizationKind::instance;
    p.family.operation = index_of<Normalization>();
    p.family.category = static_cast<std::uint32_t>(kind);
    if (p.family.pass == Pass::backward) p.family.gradients = all_gradients;
    return Relative{p, 1.0, error};
  }
  return std::nullopt;
}

// Elementwise kernels of one pass are bound by memory alike: any other kind says more than the datasheet does.
void add_other_kinds(const Place& own, std::vector<Relative>& relatives, std::size_t kinds, std::uint32_t step) {
  for (std::uint32_t kind = 0; kind < kinds; ++kind) {
    Place p = own;
    p.family.category = kind * step + own.family.category % step;
    if (p.family != own.family) relatives.push_back({p});
  }
}

// Any kernel that is bound by memory, as the sum of two tensors that moves as many bytes: batch-norms, poolings,
// optimizers' updates, copies.
Relative as_addition(const KernelKey& key, Backend backend) {
  constexpr double error = 0.3;
  const Work work = work_of(key, backend);
  const double elements = (work.read + work.written).value() / (3 * size_in_bytes(key.signature.dtype));
  KernelKey addition;
  const Shape shape{std::max<std::int64_t>(1, static_cast<std::int64_t>(elements))};
  addition.signature = {Binary{}, {shape, shape}, {shape}, key.signature.dtype};
  const double slowdown = usual_slowdown(key.signature.attributes) / usual_slowdown(addition.signature.attributes);
  return {place(addition), slowdown, error};
}

}  // namespace

std::vector<Relative> related(const KernelKey& key, Backend backend) {
  const Place own = place(key);
  if (own.family.operation == gemm_operation) return {};
  if (const auto* convolution = std::get_if<Convolution>(&key.signature.attributes))
    return convolution_relations(*convolution, key, own);
  if (std::holds_alternative<Attention>(key.signature.attributes)) return attention_relations(own);

  std::vector<Relative> relatives;
  auto with_kinds = [&](const Place& base) {
    if (std::holds_alternative<Unary>(key.signature.attributes))
      add_other_kinds(base, relatives, enum_names(UnaryKind{}).size(), 1);
    if (std::holds_alternative<Binary>(key.signature.attributes))
      add_other_kinds(base, relatives, enum_names(BinaryKind{}).size(), 2);
  };
  with_kinds(own);
  if (key.pass == Pass::backward) {
    for (std::uint8_t gradients = 1; gradients < 8; ++gradients) {
      Place p = own;
      p.family.gradients = gradients;
      if (p.family != own.family) relatives.push_back({p});
    }
    Place forward = own;
    forward.family.pass = Pass::forward;
    forward.family.gradients = 0;
    relatives.push_back({forward});
    with_kinds(forward);
  }
  if (const auto shared = shared_operation(key.signature.attributes, own)) relatives.push_back(*shared);
  if (!is_bound_by_units(key)) relatives.push_back(as_addition(key, backend));
  return relatives;
}

std::vector<Substitute> substitutes(const KernelKey& key) {
  constexpr double half_types = 0.05;  // f16 and bf16 have the same rate and the same kernels
  constexpr double tensor_cores = 0.2;
  constexpr double bound_by_memory = 0.15;
  const bool units = is_bound_by_units(key);
  const double other = units ? tensor_cores : bound_by_memory;
  switch (key.signature.dtype) {
    case DType::f16:
      return units ? std::vector<Substitute>{{DType::bf16, half_types}, {DType::tf32, other}}
                   : std::vector<Substitute>{{DType::bf16, half_types}, {DType::f32, other}};
    case DType::bf16:
      return units ? std::vector<Substitute>{{DType::f16, half_types}, {DType::tf32, other}}
                   : std::vector<Substitute>{{DType::f16, half_types}, {DType::f32, other}};
    case DType::tf32:
      return units ? std::vector<Substitute>{{DType::bf16, other}, {DType::f16, other}}
                   : std::vector<Substitute>{{DType::f32, 0.0}};
    case DType::f8e4m3: return {{DType::f8e5m2, half_types}, {DType::bf16, other}, {DType::f16, other}};
    case DType::f8e5m2: return {{DType::f8e4m3, half_types}, {DType::bf16, other}, {DType::f16, other}};
    default: return {};
  }
}

}  // namespace sibyl::interpolation
