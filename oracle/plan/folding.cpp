#include "oracle/plan/folding.h"

#include <algorithm>

namespace sibyl {
namespace {

constexpr std::size_t stay = 4;  // layers

// Which operations of a graph are the same so many operations later: what they run, and what they are joined to.
class Repeats {
 public:
  explicit Repeats(const Graph& graph) : graph_(graph) {
    for (std::size_t i = 0; i < graph.operations().size(); ++i)
      kinds_.push_back(hash_value(signature(graph, OperationId{i}, graph.batch(), DType::f32)));
  }

  struct Run {
    std::size_t begin = 0, end = 0;  // operations of which each is the same `length` later
    std::size_t length = 0;
    [[nodiscard]] std::size_t covered() const { return end - begin + length; }
  };
  // The longest; of equally long ones that of the shortest layers. A layer has two operations at least, so that its end
  // and the next one's beginning can be told apart.
  [[nodiscard]] Run longest() const {
    Run best;
    for (std::size_t length = 2; length * (stay + 2) <= kinds_.size(); ++length) {
      if (!may_cover_more(best, length)) continue;
      for (std::size_t i = 0; i + length < kinds_.size(); ++i) {
        const std::size_t begin = i;
        while (i + length < kinds_.size() && same(i, length)) ++i;
        if (i - begin >= (stay + 1) * length && i - begin + length > best.covered()) best = {begin, i, length};
      }
    }
    return best;
  }

 private:
  // Whatever repeats after a layer does so after two, three, …: of a thousand layers many lengths would go through all
  // of them in vain. Where neither before nor behind the best run there is room for one that covers more, such a run
  // has the operation before the best one's first, or the one that the first behind all that it covers would repeat.
  [[nodiscard]] bool may_cover_more(const Run& best, std::size_t length) const {
    const std::size_t covered = best.covered(), behind = best.begin + covered;
    const bool room_before = best.begin + length >= covered + 2;
    const bool room_behind = kinds_.size() + length > behind + covered + 1;
    if (best.length == 0 || room_before || room_behind) return true;
    return (best.begin > 0 && same(best.begin - 1, length)) ||
           (behind < kinds_.size() && same(behind - length, length));
  }

  [[nodiscard]] bool same(std::size_t operation, std::size_t length) const {
    if (kinds_[operation] != kinds_[operation + length]) return false;
    const Operation &a = graph_.operations()[operation], &b = graph_.operations()[operation + length];
    if (a.attributes != b.attributes || a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size())
      return false;
    for (std::size_t i = 0; i < a.inputs.size(); ++i)
      if (!read_alike(a.inputs[i], b.inputs[i], length)) return false;
    for (std::size_t i = 0; i < a.outputs.size(); ++i)
      if (a.outputs[i].valid() != b.outputs[i].valid() ||
          (a.outputs[i].valid() &&
           !(alike(a.outputs[i], b.outputs[i]) && used_alike(a.outputs[i], b.outputs[i], length))))
        return false;
    return true;
  }

  [[nodiscard]] bool read_alike(TensorId a, TensorId b, std::size_t length) const {
    if (a == b) return true;
    if (!a.valid() || !b.valid() || !alike(a, b)) return false;
    const OperationId from = graph_.producer(a), later = graph_.producer(b);
    if (from.valid() != later.valid()) return false;
    return from.valid() ? later.index() == from.index() + length : used_alike(a, b, length);
  }

  [[nodiscard]] bool alike(TensorId a, TensorId b) const {
    const Tensor &one = graph_[a], &other = graph_[b];
    return one.shape == other.shape && one.dtype == other.dtype && one.kind == other.kind &&
           one.batch_axis == other.batch_axis && one.values == other.values && one.index_bound == other.index_bound;
  }

  [[nodiscard]] bool used_alike(TensorId a, TensorId b, std::size_t length) const {
    return std::ranges::equal(graph_.consumers(a), graph_.consumers(b), [&](OperationId one, OperationId other) {
      return other.index() == one.index() + length;
    });
  }

  const Graph& graph_;
  std::vector<std::size_t> kinds_;  // by operation
};

}  // namespace

// What the first one reads comes from elsewhere, so of it only a part repeats.
int repeated_layers(const Graph& graph) {
  const Repeats::Run run = Repeats(graph).longest();
  return run.length == 0 ? 0 : static_cast<int>((run.covered() + run.length - 1) / run.length);
}

std::optional<Folding> fold(const Graph& graph) {
  const Repeats::Run run = Repeats(graph).longest();
  if (run.length == 0) return std::nullopt;
  Folding folding{{}, run.begin, run.length, run.covered() / run.length - stay};
  const std::size_t gap = run.begin + 2 * run.length, left_out = folding.left_out * run.length;
  folding.graph.name = graph.name;
  std::vector<TensorId> known(graph.tensors().size());
  bool whole = true;
  const auto tensor = [&](TensorId id) {
    if (!id.valid()) return id;
    TensorId& own = known[id.index()];
    if (!own.valid()) own = folding.graph.add(graph[id]);
    return own;
  };
  // What an operation behind the gap reads of the layers that are left out, the last layer before it has; of those
  // before them it reads nothing.
  const auto read = [&](TensorId id) {
    const OperationId producer = id.valid() ? graph.producer(id) : OperationId{};
    if (!producer.valid() || producer.index() < run.begin || producer.index() >= gap + left_out) return tensor(id);
    if (producer.index() < run.begin + left_out || producer.index() < gap) {
      whole = false;
      return id;
    }
    const auto& outputs = graph[producer].outputs;
    const auto at = std::ranges::find(outputs, id) - outputs.begin();
    return tensor(graph.operations()[producer.index() - left_out].outputs[static_cast<std::size_t>(at)]);
  };
  for (std::size_t i = 0; i < graph.operations().size(); i = i + 1 == gap ? gap + left_out : i + 1) {
    Operation operation = graph.operations()[i];
    for (TensorId& in : operation.inputs) in = i < gap ? tensor(in) : read(in);
    for (TensorId& out : operation.outputs) out = tensor(out);
    if (!whole) return std::nullopt;
    folding.graph.add(std::move(operation));
  }
  if (graph.loss.valid()) folding.graph.loss = known[graph.loss.index()];
  if (!folding.graph.loss.valid() || !folding.graph.finish(graph.batch())) return std::nullopt;
  return folding;
}

namespace {

bool alike(const LocalTensor& a, const LocalTensor& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.kind == b.kind && a.requires_gradient == b.requires_gradient &&
         a.cuts == b.cuts && a.summed_over == b.summed_over && a.samples == b.samples;
}

bool runs_alike(const Step& a, const Step& b) {
  if (a.index() != b.index()) return false;
  if (const auto* one = std::get_if<Compute>(&a)) {
    const auto& other = std::get<Compute>(b);
    return one->attributes == other.attributes && one->dtype == other.dtype && one->gradients == other.gradients &&
           one->fused == other.fused && one->strided == other.strided && one->moved == other.moved;
  }
  const auto &one = std::get<Exchange>(a), &other = std::get<Exchange>(b);
  return one.axis == other.axis && one.forward == other.forward && one.backward == other.backward;
}

// Calls visit(id), which may change it, for every operand and result there is.
void each_tensor(Step& step, auto&& visit) {
  if (auto* exchange = std::get_if<Exchange>(&step)) return visit(exchange->input), visit(exchange->output);
  auto& compute = std::get<Compute>(step);
  for (auto* ids : {&compute.inputs, &compute.outputs})
    for (LocalTensorId& id : *ids)
      if (id.valid()) visit(id);
}

std::vector<LocalTensorId> tensors_of(const Step& step) {
  const auto read = inputs_of(step), made = outputs_of(step);
  std::vector<LocalTensorId> all(read.begin(), read.end());
  all.insert(all.end(), made.begin(), made.end());
  return all;
}

class Unfolding {
 public:
  Unfolding(const Folding& folding, const Stage& folded) : folding_(folding), folded_(folded) {}

  std::optional<Segment> layer() {
    if (!find_layers() || !match()) return std::nullopt;
    return Segment{begins_[2], begins_[3]};
  }

  std::optional<Unfolded> run() {
    if (!layer()) return std::nullopt;
    Unfolded result;
    Stage& whole = result.program = folded_;
    whole.steps.clear();
    for (std::size_t n = 0; n < folding_.left_out; ++n)
      for (const LocalTensorId own : own_) whole.tensors.push_back(folded_[own]);
    whole.steps.reserve(folded_.steps.size() + folding_.left_out * (begins_[3] - begins_[2]));
    for (std::size_t i = 0; i < begins_[3]; ++i) whole.steps.push_back(folded_.steps[i]), result.like.push_back(i);
    for (std::size_t n = 0; n < folding_.left_out; ++n)
      for (std::size_t i = begins_[2]; i < begins_[3]; ++i) {
        whole.steps.push_back(folded_.steps[i]);
        each_tensor(whole.steps.back(), [&](LocalTensorId& id) { id = in_copy(id, n); });
        result.like.push_back(i);
      }
    for (std::size_t i = begins_[3]; i < folded_.steps.size(); ++i) {
      result.like.push_back(whole.steps.size());
      whole.steps.push_back(folded_.steps[i]);
      each_tensor(whole.steps.back(), [&](LocalTensorId& id) {
        if (slot_[id.index()] != none) id = copy(slot_[id.index()], folding_.left_out - 1);
      });
    }
    return result;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // Each of the layers that stay begins with the first step of its first operation.
  bool find_layers() {
    begins_.assign(stay, folded_.steps.size());
    for (std::size_t i = folded_.steps.size(); i-- > 0;) {
      const auto* compute = std::get_if<Compute>(&folded_.steps[i]);
      if (!compute || compute->operation.index() < folding_.first) continue;
      const std::size_t at = compute->operation.index() - folding_.first;
      if (at % folding_.length == 0 && at / folding_.length < stay) begins_[at / folding_.length] = i;
    }
    seen_.assign(folded_.tensors.size(), none);
    for (std::size_t i = 0; i < folded_.steps.size(); ++i)
      for (const LocalTensorId id : tensors_of(folded_.steps[i]))
        if (id.valid() && seen_[id.index()] == none) seen_[id.index()] = i;
    return std::ranges::is_sorted(begins_) && begins_[3] < folded_.steps.size() &&
           begins_[2] - begins_[1] == begins_[3] - begins_[2] && begins_[2] > begins_[1];
  }

  // Is a tensor first seen in this one of the layers?
  [[nodiscard]] bool of_layer(LocalTensorId id, std::size_t layer) const {
    return seen_[id.index()] >= begins_[layer] && seen_[id.index()] < begins_[layer + 1];
  }

  bool match() {
    later_.assign(folded_.tensors.size(), LocalTensorId{});
    std::vector<bool> lasting(folded_.tensors.size(), false);
    const std::size_t length = begins_[2] - begins_[1];
    for (std::size_t i = begins_[1]; i < begins_[2]; ++i) {
      const Step &one = folded_.steps[i], &other = folded_.steps[i + length];
      const std::vector<LocalTensorId> a = tensors_of(one), b = tensors_of(other);
      if (!runs_alike(one, other) || a.size() != b.size()) return false;
      for (std::size_t k = 0; k < a.size(); ++k) {
        if (a[k].valid() != b[k].valid()) return false;
        if (a[k].valid() && !match(a[k], b[k], lasting)) return false;
      }
    }
    slot_.assign(folded_.tensors.size(), none);
    for (std::size_t t = 0; t < folded_.tensors.size(); ++t)
      if (seen_[t] != none && of_layer(LocalTensorId{t}, 2)) slot_[t] = own_.size(), own_.push_back(LocalTensorId{t});
    for (std::size_t i = begins_[3]; i < folded_.steps.size(); ++i)
      for (const LocalTensorId id : inputs_of(folded_.steps[i])) {
        if (!id.valid() || lasting[id.index()]) continue;
        if (of_layer(id, 0) || of_layer(id, 1)) return false;
      }
    return true;
  }

  // The same place in the second layer and in the third: own tensors of each, those of the layer before, or one for
  // all.
  bool match(LocalTensorId a, LocalTensorId b, std::vector<bool>& lasting) {
    if (a == b) {
      lasting[a.index()] = true;
      return seen_[a.index()] < begins_[1];
    }
    if (!alike(folded_[a], folded_[b])) return false;
    if (of_layer(b, 1)) return of_layer(a, 0);
    if (!of_layer(b, 2) || !of_layer(a, 1)) return false;
    LocalTensorId& later = later_[a.index()];
    if (!later.valid()) later = b;
    return later == b;
  }

  // What stands in the n-th copy of the third layer where `id` stands in that.
  [[nodiscard]] LocalTensorId in_copy(LocalTensorId id, std::size_t n) const {
    if (slot_[id.index()] != none) return copy(slot_[id.index()], n);
    if (!of_layer(id, 1)) return id;
    const LocalTensorId before = later_[id.index()];  // in the third layer
    return n == 0 ? before : copy(slot_[before.index()], n - 1);
  }
  [[nodiscard]] LocalTensorId copy(std::size_t slot, std::size_t n) const {
    return LocalTensorId{folded_.tensors.size() + n * own_.size() + slot};
  }

  const Folding& folding_;
  const Stage& folded_;
  std::vector<std::size_t> begins_;   // of the layers that stay: steps
  std::vector<std::size_t> seen_;     // by tensor: the first step that reads or makes it
  std::vector<LocalTensorId> later_;  // by tensor of the second layer: that of the third
  std::vector<LocalTensorId> own_;    // tensors first seen in the third layer
  std::vector<std::size_t> slot_;     // by tensor: which of these it is
};

}  // namespace

std::optional<Segment> repeated_layer(const Folding& folding, const Stage& folded) {
  return Unfolding(folding, folded).layer();
}

std::optional<Unfolded> unfold(const Folding& folding, const Stage& folded) { return Unfolding(folding, folded).run(); }

}  // namespace sibyl
