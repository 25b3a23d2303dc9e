#include "trainer/exchange.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <utility>
#include <vector>

#include "aten/device.h"
#include "trainer/parts.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {
namespace {

// Room for the parts of all ranks, one after the other.
at::Tensor room_for_parts(Shape part, int ways, const at::Tensor& like) {
  part.insert(part.begin(), ways);
  return at::empty(part, like.options());
}

at::Tensor all_gather(const Transfer& t, const at::Tensor& x, Communicator& ranks) {
  const Shape part = x.sizes().vec();
  at::Tensor whole = at::empty(result_shape(t, part, ranks.size()), x.options());
  const Division division{t.dim, t.pieces, ranks.size(), t.surplus};
  const bool straight = in_a_row(t, part);
  Shape rows = part;
  rows.insert(rows.begin(), ranks.size());
  at::Tensor parts = straight ? whole.view(rows) : room_for_parts(part, ranks.size(), x);
  parts[ranks.rank()].copy_(x);
  ranks.all_gather(bytes_of(parts), x.itemsize());
  if (!straight) put_together(parts, division, whole);
  return whole;
}

// The operand's own memory, or that of a copy.
at::Tensor writable(const at::Tensor& x, bool overwrite) {
  return overwrite && x.is_contiguous() ? x.variable_data() : x.clone(at::MemoryFormat::Contiguous);
}

at::Tensor all_reduce(const at::Tensor& x, Communicator& ranks, bool overwrite, Reduction reduction) {
  at::Tensor result = writable(x, overwrite);
  ranks.all_reduce(elements_of(result), Algorithm::automatic, reduction);
  return result;
}

at::Tensor reduce_scatter(const Transfer& t, const at::Tensor& x, Communicator& ranks, bool overwrite) {
  const Shape whole = x.sizes().vec();
  const Division division{t.dim, t.pieces, ranks.size(), t.surplus};
  const Shape part = division.part_shape(whole);
  Shape rows = part;
  rows.insert(rows.begin(), ranks.size());
  const bool here = overwrite && x.is_contiguous() && in_a_row(t, whole);
  at::Tensor parts = here ? x.variable_data().view(rows) : room_for_parts(part, ranks.size(), x);
  if (!here) take_apart(x, division, parts);
  ranks.reduce_scatter(elements_of(parts), Algorithm::automatic);
  return parts[ranks.rank()].clone();
}

at::Tensor all_to_all(const Transfer& t, const at::Tensor& x, Communicator& ranks) {
  const int ways = ranks.size();
  const Division leaving{t.to, t.to_pieces, ways}, arriving{t.dim, t.pieces, ways};
  const Shape part = leaving.part_shape(x.sizes().vec());
  at::Tensor out = room_for_parts(part, ways, x), in = room_for_parts(part, ways, x);
  take_apart(x, leaving, out);
  ranks.all_to_all(bytes_of(out), bytes_of(in));
  out.reset();
  at::Tensor result = at::empty(result_shape(t, x.sizes().vec(), ways), x.options());
  put_together(in, arriving, result);
  return result;
}

// The slabs that a rank gives to its neighbours, and room for what they give.
struct Slabs {
  at::Tensor to_last, to_next, from_last, from_next;  // undefined where nothing goes

  void swap(Communicator& ranks) const {
    std::vector<Communicator::Swap> swaps;
    const auto add = [&](int peer, const at::Tensor& out, const at::Tensor& in) {
      if (out.defined() || in.defined())
        swaps.push_back({peer, out.defined() ? bytes_of(out) : std::span<std::byte>{},
                         in.defined() ? bytes_of(in) : std::span<std::byte>{}});
    };
    add(ranks.rank() - 1, to_last, from_last);
    add(ranks.rank() + 1, to_next, from_next);
    ranks.swap(swaps);
  }
};

at::Tensor rows(const at::Tensor& x, const Transfer& t, std::int64_t begin, std::int64_t count) {
  return x.narrow(static_cast<std::int64_t>(t.dim), begin, count);
}

at::Tensor room_for_rows(const at::Tensor& x, const Transfer& t, std::int64_t count) {
  Shape shape = x.sizes().vec();
  shape[t.dim] = count;
  return at::empty(shape, x.options());
}

at::Tensor halo(const Transfer& t, const at::Tensor& x, Communicator& ranks) {
  const auto [before, after, fill] = t.halo;
  const std::int64_t own = x.size(static_cast<std::int64_t>(t.dim));
  const bool has_last = ranks.rank() > 0, has_next = ranks.rank() + 1 < ranks.size();
  Slabs slabs;
  if (before > 0 && has_next) slabs.to_next = rows(x, t, own - before, before).contiguous();
  if (before > 0 && has_last) slabs.from_last = room_for_rows(x, t, before);
  if (after > 0 && has_last) slabs.to_last = rows(x, t, 0, after).contiguous();
  if (after > 0 && has_next) slabs.from_next = room_for_rows(x, t, after);
  slabs.swap(ranks);
  at::Tensor result = room_for_rows(x, t, before + own + after);
  rows(result, t, before, own).copy_(x);
  const auto place = [&](const at::Tensor& arrived, std::int64_t begin, std::int64_t count) {
    if (count == 0) return;
    at::Tensor border = rows(result, t, begin, count);
    if (arrived.defined())
      border.copy_(arrived);
    else
      border.fill_(fill);  // the image's rim
  };
  place(slabs.from_last, 0, before);
  place(slabs.from_next, before + own, after);
  return result;
}

// What lies on the image's rim is nobody's.
at::Tensor halo_sum(const Transfer& t, const at::Tensor& x, Communicator& ranks) {
  const std::int64_t before = t.halo.before, after = t.halo.after;
  const std::int64_t own = x.size(static_cast<std::int64_t>(t.dim)) - before - after;
  const bool has_last = ranks.rank() > 0, has_next = ranks.rank() + 1 < ranks.size();
  Slabs slabs;
  if (before > 0 && has_last) slabs.to_last = rows(x, t, 0, before).contiguous();
  if (before > 0 && has_next) slabs.from_next = room_for_rows(x, t, before);
  if (after > 0 && has_next) slabs.to_next = rows(x, t, before + own, after).contiguous();
  if (after > 0 && has_last) slabs.from_last = room_for_rows(x, t, after);
  slabs.swap(ranks);
  at::Tensor result = rows(x, t, before, own).clone(at::MemoryFormat::Contiguous);
  if (slabs.from_last.defined()) rows(result, t, 0, after).add_(slabs.from_last);
  if (slabs.from_next.defined()) rows(result, t, own - before, before).add_(slabs.from_next);
  return result;
}

at::Tensor own_numbers(const Transfer& t, const at::Tensor& x, Communicator& ranks) {
  at::Tensor own = x - ranks.rank() * t.numbers_of;
  // What is nobody's, or an earlier axis's, stays so.
  return own.masked_fill_(own.lt(0).logical_or_(own.ge(t.numbers_of)).logical_or_(x.lt(0)), -1);
}

at::Tensor fill(const Transfer& t, const at::Tensor& x, Communicator& ranks, bool overwrite) {
  at::Tensor result = writable(x, overwrite);
  const auto dim = static_cast<std::int64_t>(t.dim);
  const std::int64_t end = within(x.size(dim), {t.dim, {}, ranks.size(), t.surplus}, ranks.rank());
  result.narrow(dim, end, x.size(dim) - end).fill_(t.value);
  return result;
}

class ExchangeNode final : public torch::autograd::Node {
 public:
  ExchangeNode(const Exchange& exchange, Communicator& communicator, torch::autograd::edge_list next)
      : Node(std::move(next)), exchange_(exchange), communicator_(communicator) {}

  void set_result(const at::Tensor& result) { shape_ = result.sizes().vec(), options_ = result.options(); }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    at::Tensor gradient = std::move(gradients.at(0));
    gradients.clear();
    // The other ranks wait for this one's part, be it zeros.
    if (!gradient.defined()) gradient = at::zeros(shape_, options_);
    const bool nobody_elses = gradient.use_count() == 1 && gradient.storage().use_count() == 1;
    return {perform(exchange_.backward, gradient, communicator_, nobody_elses)};
  }
  std::string name() const override { return "Exchange"; }

 private:
  const Exchange& exchange_;
  Communicator& communicator_;
  Shape shape_;
  at::TensorOptions options_;
};

}  // namespace

at::Tensor perform(const Transfer& transfer, const at::Tensor& x, Communicator& communicator, bool overwrite) {
  // What goes round is sent by the operation that reads it (ring_passing.h).
  if (transfer.motion == Motion::pass_round || transfer.motion == Motion::sum_round) return x.variable_data();
  // Messages are the host's: what lies on a device is brought there and back, if anything is sent of it.
  if (!x.device().is_cpu() && !x.is_meta() && collective_of(transfer.motion))
    return perform(transfer, aten::to_host(x), communicator, true).to(x.device());
  switch (transfer.motion) {
    case Motion::none:
    case Motion::pass_round:
    case Motion::sum_round: break;
    case Motion::slice:
      return part_of(x, {transfer.dim, transfer.pieces, communicator.size(), transfer.surplus}, communicator.rank());
    case Motion::all_gather: return all_gather(transfer, x, communicator);
    case Motion::all_reduce: return all_reduce(x, communicator, overwrite, Reduction::sum);
    case Motion::maximum: return all_reduce(x, communicator, overwrite, Reduction::maximum);
    case Motion::reduce_scatter: return reduce_scatter(transfer, x, communicator, overwrite);
    case Motion::all_to_all: return all_to_all(transfer, x, communicator);
    case Motion::halo: return halo(transfer, x, communicator);
    case Motion::halo_sum: return halo_sum(transfer, x, communicator);
    case Motion::own_numbers: return own_numbers(transfer, x, communicator);
    case Motion::fill: return fill(transfer, x, communicator, overwrite);
  }
  return x.variable_data();
}

at::Tensor run_exchange(const Exchange& exchange, const at::Tensor& x, Communicator& communicator, bool overwrite) {
  std::shared_ptr<ExchangeNode> node;
  if (at::GradMode::is_enabled() && x.requires_grad())
    node = std::shared_ptr<ExchangeNode>(
        new ExchangeNode(exchange, communicator, torch::autograd::collect_next_edges(x)), torch::autograd::deleteNode);
  const at::NoGradGuard no_grad;
  at::Tensor result = perform(exchange.forward, x.detach(), communicator, overwrite);
  if (node) {
    node->set_result(result);
    torch::autograd::set_history(result, node);
  }
  return result;
}

}  // namespace sibyl::trainer
