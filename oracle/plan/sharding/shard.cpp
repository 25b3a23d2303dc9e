#include "oracle/plan/sharding/shard.h"

#include <algorithm>
#include <map>

#include "oracle/plan/sharding/choose.h"
#include "oracle/plan/sharding/conversion.h"
#include "oracle/plan/sharding/emitter.h"
#include "oracle/plan/sharding/undivided.h"

namespace sibyl {
namespace {

class Sharder {
 public:
  Sharder(const Stage& stage, const Policy& policy, int ways, const Choices& choices)
      : stage_(stage), axis_(policy.axis), ways_(ways), choices_(choices), held_(stage.tensors.size()) {}

  Stage run() {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      if (const auto* compute = std::get_if<Compute>(&stage_.steps[i]))
        add_compute(*compute, choices_.variants[i]);
      else
        add_exchange(std::get<Exchange>(stage_.steps[i]), choices_.variants[i]);
    }
    return std::move(result_);
  }

 private:
  using Converted = std::map<std::pair<LocalTensorId, Need>, LocalTensorId>;

  // A tensor of the program before this axis, as this axis holds it.
  LocalTensorId add(LocalTensorId before, const Layout& layout) {
    LocalTensor tensor = stage_[before];
    tensor.shape = part_of(std::move(tensor.shape), layout, ways_);
    if (layout.is_split()) tensor.cuts.push_back({axis_, layout});
    result_.tensors.push_back(std::move(tensor));
    return LocalTensorId{result_.tensors.size() - 1};
  }

  // An intermediate result beside `like`.
  LocalTensorId add_like(LocalTensorId like, Shape shape) {
    LocalTensor tensor = result_[like];
    tensor.shape = std::move(shape);
    tensor.kind = TensorKind::activation;
    result_.tensors.push_back(std::move(tensor));
    return LocalTensorId{result_.tensors.size() - 1};
  }

  // The tensor as `need` asks: held so, converted before, or converted now.
  LocalTensorId obtain(LocalTensorId id, const Need& need) {
    if (const auto known = converted_.find({id, need}); known != converted_.end()) return known->second;
    const LocalTensor& tensor = stage_[id];
    const bool free_source = !choices_.layouts[id.index()].has_value();
    if (free_source && !need.changes_elements()) {
      Need without = need;
      without.partial_gradient = false;
      LocalTensorId& source = converted_[{id, without}];
      if (!source.valid()) source = add(id, need.layout);
      return source;
    }
    const Layout have = free_source ? need.layout : *choices_.layouts[id.index()];
    LocalTensorId& held = held_[id.index()];
    if (free_source)
      held = obtain(id, Need{need.layout, false, {}});
    else if (!held.valid())
      held = add(id, have);
    Need asked = need;
    if (is_source(id) && tensor.requires_gradient && need.partial_gradient && choices_.partial_gradient[id.index()]) {
      note_partial_gradient(held);
      asked.partial_gradient = false;
    }
    return converted_[{id, need}] = convert_from(held, have, asked, tensor.requires_gradient);
  }

  LocalTensorId convert_from(LocalTensorId id, const Layout& have, const Need& need, bool gradient) {
    for (Conversion& conversion : convert(have, need, gradient)) {
      for (Transfer* transfer : {&conversion.forward, &conversion.backward})
        if (transfer->motion == Motion::halo || transfer->motion == Motion::halo_sum) transfer->ranks = ways_;
      const LocalTensorId next = add_like(id, result_shape(conversion.forward, result_[id].shape, ways_));
      if (conversion.forward.motion == Motion::all_gather)
        mark(next, Layout::whole());
      else if (conversion.forward.motion != Motion::halo)
        mark(next, need.layout);
      result_.steps.push_back(Exchange{axis_, id, next, conversion.forward, conversion.backward});
      id = next;
    }
    return id;
  }

  void mark(LocalTensorId id, const Layout& layout) {
    std::vector<PartOf>& cuts = result_.tensors[id.index()].cuts;
    std::erase_if(cuts, [&](const PartOf& cut) { return cut.axis == axis_; });
    if (layout.is_split()) cuts.push_back({axis_, layout});
  }

  [[nodiscard]] bool is_source(LocalTensorId id) const { return stage_[id].kind != TensorKind::activation; }

  void note_partial_gradient(LocalTensorId id) {
    std::vector<MeshAxis>& axes = result_.tensors[id.index()].summed_over;
    if (std::find(axes.begin(), axes.end(), axis_) == axes.end()) axes.push_back(axis_);
  }

  void add_compute(const Compute& before, const Variant& variant) {
    Compute compute = before;
    compute.attributes = variant.attributes;
    for (std::size_t i = 0; i < compute.inputs.size(); ++i) {
      LocalTensorId& in = compute.inputs[i];
      if (!in.valid()) continue;
      if (variant.late_bias == i) {
        in = LocalTensorId{};
        compute.gradients &= ~(1U << i);
      } else {
        in = obtain(in, variant.inputs[i]);
      }
    }
    if (variant.program) {
      Emitter emitter(result_, axis_, before.operation, before.dtype, stage_[before.outputs.at(0)]);
      const std::vector<LocalTensorId> made = variant.program(emitter, compute.inputs);
      for (std::size_t i = 0; i < made.size(); ++i) held_[before.outputs[i].index()] = made[i];
      return;
    }
    for (std::size_t i = 0; i < compute.outputs.size(); ++i)
      compute.outputs[i] = add(compute.outputs[i], variant.outputs[i]);
    if (!variant.outputs.empty() && variant.outputs[0].is_partial()) {
      result_.steps.push_back(compute);
      add_sum(before, variant, compute.outputs[0]);
      return;
    }
    for (std::size_t i = 0; i < compute.outputs.size(); ++i) held_[before.outputs[i].index()] = compute.outputs[i];
    result_.steps.push_back(std::move(compute));
  }

  // Summands become the sum: scaled, reduced to where the policy wants it, the bias added.
  void add_sum(const Compute& before, const Variant& variant, LocalTensorId summand) {
    const LocalTensorId origin = before.outputs[0];
    if (variant.scale != 1.0)
      summand = add_pointwise(before, Unary{UnaryKind::scale_shift, variant.scale, 0.0}, {summand});
    LocalTensorId sum = convert_from(summand, Layout::partial(variant.outputs[0].dim),
                                     {*choices_.layouts[origin.index()], false, {}}, stage_[origin].requires_gradient);
    if (variant.late_bias && before.inputs[*variant.late_bias].valid()) {
      LocalTensorId bias = obtain(before.inputs[*variant.late_bias], variant.inputs[*variant.late_bias]);
      const std::size_t after = result_[sum].shape.size() - variant.outputs[0].dim - 1;
      if (after > 0) bias = add_dimensions(before, bias, after);
      sum = add_pointwise(before, Binary{BinaryKind::add}, {sum, bias});
    }
    held_[origin.index()] = sum;
  }

  LocalTensorId add_dimensions(const Compute& before, LocalTensorId bias, std::size_t count) {
    Shape shape = result_[bias].shape;
    shape.resize(shape.size() + count, 1);
    const LocalTensorId column = add_like(bias, std::move(shape));
    result_.steps.push_back(Compute{
        before.operation, Reshape{}, {bias}, {column}, before.dtype, result_[bias].requires_gradient ? 1U : 0U});
    return column;
  }

  LocalTensorId add_pointwise(const Compute& before, Attributes op, std::vector<LocalTensorId> inputs) {
    const LocalTensorId out = add_like(inputs[0], result_[inputs[0]].shape);
    std::uint32_t gradients = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (result_[inputs[i]].requires_gradient) gradients |= 1U << i;
    result_.steps.push_back(
        Compute{before.operation, std::move(op), std::move(inputs), {out}, before.dtype, gradients});
    return out;
  }

  // Another axis's exchange moves this axis's part of the tensor.
  void add_exchange(const Exchange& before, const Variant& variant) {
    Exchange exchange = before;
    const Layout& layout = variant.inputs[0].layout;
    for (Transfer* transfer : {&exchange.forward, &exchange.backward})
      if (layout.is_split() && in_equal_pieces(*transfer, layout.dim, ways_))
        *transfer = within_part(*transfer, layout.dim, ways_);
    exchange.input = obtain(before.input, variant.inputs[0]);
    exchange.output = held_[before.output.index()] = add(before.output, variant.outputs[0]);
    result_.steps.push_back(std::move(exchange));
  }

  const Stage& stage_;
  MeshAxis axis_;
  int ways_;
  const Choices& choices_;
  std::vector<LocalTensorId> held_;  // by LocalTensorId of the stage before
  Converted converted_;
  Stage result_;
};

}  // namespace

Result<Stage> shard(const Graph& graph, const Stage& stage, const Policy& policy, int ways) {
  const Choices choices = choose(stage, policy, ways);
  if (!choices.shares) return undivided(graph, stage, policy, ways);
  return Sharder(stage, policy, ways, choices).run();
}

}  // namespace sibyl
