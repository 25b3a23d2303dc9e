#include "aten/operations/attention.h"

#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "aten/operations/families.h"
#include "aten/operations/ring_attention.h"

namespace sibyl::aten {

// Kept for the life of the process, as models keep it in a
// buffer: making it anew each step would be timed and counted.
at::Tensor causal_mask(const at::Tensor& scores, std::int64_t behind) {
  static std::mutex mutex;
  static std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, at::Tensor> masks;
  const std::int64_t queries = scores.size(-2), keys = scores.size(-1);
  const std::lock_guard lock(mutex);
  at::Tensor& mask = masks[{queries, keys, behind}];
  if (!mask.defined() || mask.device() != scores.device())
    mask = at::ones({queries, keys}, scores.options().dtype(at::kBool).requires_grad(false))
               .triu(keys - behind - queries + 1);
  return mask;
}

at::Tensor repeat_heads(const at::Tensor& x, std::int64_t heads) {
  if (x.size(1) == heads) return x;
  const std::int64_t repeats = heads / x.size(1);
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), repeats, x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

#if SIBYL_TORCH_AT_LEAST(2, 1)
namespace {

// As PyTorch models run attention on a GPU: by the fused kernel that PyTorch chooses. It aligns a causal mask at the
// first key, so queries must be as many as keys.
at::Tensor fused_attention(const Attention& op, const Tensors& in) {
  const at::Tensor &q = in.at(0), k = repeat_heads(in.at(1), q.size(1)), v = repeat_heads(in.at(2), q.size(1));
  return at::scaled_dot_product_attention(q, k, v, optional_operand(in, 3), op.dropout, op.causal, op.scale);
}

}  // namespace
#endif

at::Tensor run(const Attention& op, const Tensors& in) {
  if (op.ring > 1) return ring_attention(op, in, one_of_a_ring(op.ring));
  const at::Tensor& q = in.at(0);
#if SIBYL_TORCH_AT_LEAST(2, 1)
  if (q.is_cuda() && (!op.causal || (q.size(2) == in.at(1).size(2) && !operand(in, 3).defined())))
    return fused_attention(op, in);
#endif
  const at::Tensor k = repeat_heads(in.at(1), q.size(1));
  const at::Tensor v = repeat_heads(in.at(2), q.size(1));
  // Scaling q costs D / T of scaling the scores. Masking is in place: matmul does not keep its result.
  at::Tensor scores = at::matmul(op.scale == 1.0 ? q : q * op.scale, k.transpose(-2, -1));
  if (op.causal) scores.masked_fill_(causal_mask(scores, op.behind), -std::numeric_limits<double>::infinity());
  if (const at::Tensor mask = operand(in, 3); mask.defined()) {
    if (mask.scalar_type() == at::kBool)
      scores.masked_fill_(mask.logical_not(), -std::numeric_limits<double>::infinity());
    else
      scores.add_(mask);
  }
  at::Tensor probabilities = at::softmax(scores, -1);
  scores.reset();  // softmax keeps its result, not its operand
  if (op.dropout > 0.0) probabilities = at::dropout(probabilities, op.dropout, true);
  return at::matmul(probabilities, v);
}

}  // namespace sibyl::aten
