#include "aten/operations/ring_attention.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <limits>
#include <utility>

#include "aten/operations/attention.h"

namespace sibyl::aten {
namespace {

using Tensors = std::vector<at::Tensor>;

class OneOfARing final : public Ring {
 public:
  explicit OneOfARing(std::int64_t ranks) : ranks_(static_cast<int>(ranks)) {}
  [[nodiscard]] int rank() const override { return ranks_ - 1; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  void pass(Tensors tensors) override {
    for (const at::Tensor& tensor : tensors) {
      out_.push_back(tensor.contiguous());
      in_.push_back(out_.back().clone());
    }
  }
  Tensors arrived() override {
    out_.clear();
    return std::exchange(in_, {});
  }

 private:
  int ranks_;
  Tensors out_, in_;
};

// In round i a rank has the part of the rank that is i before it; of a causal sequence those behind its own are not
// seen.
enum class Seen { all, to_the_diagonal, none };
Seen seen(const Attention& op, const Ring& ring, int round) {
  if (!op.causal) return Seen::all;
  if (round == 0) return Seen::to_the_diagonal;
  return round <= ring.rank() ? Seen::all : Seen::none;
}

at::Tensor scores_of(const at::Tensor& scaled, const at::Tensor& keys, Seen seen) {
  at::Tensor scores = at::matmul(scaled, keys.transpose(-2, -1)).to(at::kFloat);
  if (seen == Seen::to_the_diagonal)
    scores.masked_fill_(causal_mask(scores, 0), -std::numeric_limits<double>::infinity());
  return scores;
}

at::Tensor scaled(const Attention& op, const at::Tensor& q) { return op.scale == 1.0 ? q : q * op.scale; }

// What probabilities are multiplied by in a round, the same in both passes: drawn anew from the seed that forward
// found.
class Noise {
 public:
  explicit Noise(double dropout) : dropout_(dropout) {
    if (dropout > 0) seed_ = at::globalContext().defaultGenerator(at::kCPU).current_seed();
  }
  void multiply(at::Tensor& probabilities, int round) const {
    if (dropout_ > 0) probabilities.mul_(draw(probabilities, round));
  }

 private:
  [[nodiscard]] at::Tensor draw(const at::Tensor& like, int round) const {
    at::manual_seed(seed_ + static_cast<std::uint64_t>(round));
    return at::empty_like(like).bernoulli_(1 - dropout_).div_(1 - dropout_);
  }

  double dropout_;
  std::uint64_t seed_ = 0;
};

// Of rows: f32.
struct SoFar {
  at::Tensor greatest, sum, y;

  void add(at::Tensor scores, const at::Tensor& values, const Noise& noise, int round) {
    at::Tensor now = scores.amax(-1, true);
    if (greatest.defined()) now = at::maximum(greatest, now);
    scores.sub_(now).exp_();
    at::Tensor part = scores.sum(-1, true);
    noise.multiply(scores, round);
    at::Tensor weighed = at::matmul(scores.to(values.scalar_type()), values).to(at::kFloat);
    if (greatest.defined()) {
      const at::Tensor less = at::exp(greatest - now);
      part.add_(sum.mul_(less));
      weighed.add_(y.mul_(less));
    }
    greatest = now, sum = part, y = weighed;
  }
};

struct Attended {
  at::Tensor y, log_sum;
};

Attended forward(const Attention& op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, Ring& ring,
                 const Noise& noise) {
  const at::Tensor queries = scaled(op, q);
  Tensors part = {k, v};
  SoFar so_far;
  for (int round = 0; round < ring.ranks(); ++round) {
    const bool last = round + 1 == ring.ranks();
    if (!last) ring.pass(part);
    if (const Seen sees = seen(op, ring, round); sees != Seen::none)
      so_far.add(scores_of(queries, repeat_heads(part[0], q.size(1)), sees), repeat_heads(part[1], q.size(1)), noise,
                 round);
    if (!last) part = ring.arrived();
  }
  return {so_far.y.div_(so_far.sum).to(q.scalar_type()), so_far.greatest.add_(so_far.sum.log_())};
}

// [B, H, T, D] -> [B, Hkv, T, D]: the sum over the query heads that a key head serves.
at::Tensor sum_heads(const at::Tensor& x, std::int64_t heads) {
  if (x.size(1) == heads) return x;
  return x.view({x.size(0), heads, x.size(1) / heads, x.size(2), x.size(3)}).sum(2);
}

class RingNode final : public torch::autograd::Node {
 public:
  RingNode(const Attention& op, std::shared_ptr<Ring> ring, const Noise& noise, torch::autograd::edge_list next)
      : Node(std::move(next)), op_(op), ring_(std::move(ring)), noise_(noise) {}

  void keep(Tensors operands, Attended result) { operands_ = std::move(operands), result_ = std::move(result); }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    at::Tensor incoming = std::move(gradients.at(0));
    gradients.clear();
    if (!incoming.defined()) incoming = at::zeros_like(result_.y);  // the other ranks wait for this one
    return backward(incoming);
  }
  void release_variables() override {
    operands_.clear();
    result_ = {};
  }
  std::string name() const override { return "RingAttention"; }

 private:
  // Of keys and values, in their type.
  Tensors add_part(const Tensors& part, int round, const at::Tensor& incoming, const at::Tensor& weighed,
                   at::Tensor& of_queries) const {
    const Seen sees = seen(op_, *ring_, round);
    if (sees == Seen::none) return {at::zeros_like(part[0]), at::zeros_like(part[1])};
    const at::Tensor& q = operands_[0];
    const at::ScalarType type = q.scalar_type();
    const std::int64_t heads = q.size(1), of_keys = part[0].size(1);
    const at::Tensor queries = scaled(op_, q), keys = repeat_heads(part[0], heads);
    at::Tensor probabilities = scores_of(queries, keys, sees).sub_(result_.log_sum).exp_();
    at::Tensor of_scores = at::matmul(incoming, repeat_heads(part[1], heads).transpose(-2, -1)).to(at::kFloat);
    noise_.multiply(of_scores, round);
    of_scores.sub_(weighed).mul_(probabilities);
    noise_.multiply(probabilities, round);
    const at::Tensor of_values = at::matmul(probabilities.to(type).transpose(-2, -1), incoming);
    probabilities.reset();
    of_scores = of_scores.to(type);
    of_queries.add_(at::matmul(of_scores, keys), op_.scale);
    return {sum_heads(at::matmul(of_scores.transpose(-2, -1), queries), of_keys), sum_heads(of_values, of_keys)};
  }

  // The sums of a part's gradients are passed on a round behind the part: what a rank adds to has just arrived.
  torch::autograd::variable_list backward(const at::Tensor& incoming) {
    const at::Tensor weighed = (incoming.to(at::kFloat) * result_.y.to(at::kFloat)).sum(-1, true);
    at::Tensor of_queries = at::zeros(operands_[0].sizes(), operands_[0].options().dtype(at::kFloat));
    Tensors part = {operands_[1], operands_[2]}, own, sums;
    const int ranks = ring_->ranks();
    for (int round = 0; round < ranks; ++round) {
      Tensors out = round + 1 < ranks ? part : Tensors{};
      out.insert(out.end(), sums.begin(), sums.end());
      if (!out.empty()) ring_->pass(out);
      Tensors made = add_part(part, round, incoming, weighed, of_queries);
      Tensors in = out.empty() ? Tensors{} : ring_->arrived();
      out.clear();
      if (round > 1)
        for (std::size_t i = 0; i < made.size(); ++i) made[i].add_(in[in.size() - made.size() + i]);
      if (round + 1 < ranks) part = {in[0], in[1]};
      (round == 0 ? own : sums) = std::move(made);
    }
    ring_->pass(sums);
    const Tensors home = ring_->arrived();
    for (std::size_t i = 0; i < own.size(); ++i) own[i].add_(home[i]);
    return {of_queries.to(operands_[0].scalar_type()), own[0], own[1]};
  }

  Attention op_;
  std::shared_ptr<Ring> ring_;
  Noise noise_;
  Tensors operands_;
  Attended result_;
};

}  // namespace

std::shared_ptr<Ring> one_of_a_ring(std::int64_t ranks) { return std::make_shared<OneOfARing>(ranks); }

at::Tensor ring_attention(const Attention& op, const std::vector<at::Tensor>& in, std::shared_ptr<Ring> ring) {
  const Tensors operands = {in.at(0), in.at(1), in.at(2)};
  const Noise noise(op.dropout);
  std::shared_ptr<RingNode> node;
  if (at::GradMode::is_enabled() && (in[0].requires_grad() || in[1].requires_grad() || in[2].requires_grad()))
    node = std::shared_ptr<RingNode>(new RingNode(op, ring, noise, torch::autograd::collect_next_edges(operands)),
                                     torch::autograd::deleteNode);
  const at::NoGradGuard no_grad;
  const Attended result = forward(op, in[0], in[1], in[2], *ring, noise);
  if (!node) return result.y;
  at::Tensor y = result.y;
  node->keep({in[0].detach(), in[1].detach(), in[2].detach()}, {y.detach(), result.log_sum});
  torch::autograd::set_history(y, node);
  return y;
}

}  // namespace sibyl::aten
