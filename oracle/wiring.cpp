#include "oracle/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "oracle/cost/plan_for.h"
#include "oracle/cost/price.h"
#include "oracle/plan/blocks.h"
#include "oracle/plan/message_bytes.h"

namespace sibyl {
namespace {

class Wirer {
 public:
  Wirer(const Graph& graph, const Plan& plan, const Cluster& cluster)
      : graph_(graph), plan_(plan), cluster_(cluster), priced_(price(plan, cluster)) {
    result_.operations.resize(graph.operations().size());
    result_.stages = static_cast<int>(plan.stages.size());
    last_step_.resize(graph.operations().size());
  }

  Result<Wiring> run(const Stage& program, const Cancelled& cancelled) {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      if (is_true(cancelled)) return interrupted();
      visit_stage(s);
    }
    describe_operations();
    put_in_order();
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      if (is_true(cancelled)) return interrupted();
      add_exchanges(s);
      add_links(s);
      add_gradients(s);
    }
    add_blocks(program);
    for (auto& [ends, wire] : wires_) result_.wires.push_back(std::move(wire));
    return std::move(result_);
  }

 private:
  // Where a step stands: its stage, and there.
  using At = std::pair<std::size_t, std::size_t>;

  void visit_stage(std::size_t s) {
    const Stage& stage = plan_.stages[s];
    made_by_.emplace_back(stage.tensors.size(), stage.steps.size());
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      for (const LocalTensorId out : outputs_of(stage.steps[i]))
        if (out.valid()) made_by_[s][out.index()] = i;
      const auto* compute = std::get_if<Compute>(&stage.steps[i]);
      if (!compute) continue;
      WiredOperation& operation = result_.operations[compute->operation.index()];
      std::optional<At>& last = last_step_[compute->operation.index()];
      if (last && last->first != s) continue;  // what later stages make again for themselves is shown once
      operation.stage = static_cast<int>(s);
      last = At{s, i};
      add_work(operation, priced_[s].kernels, i);
      for (const auto* tensors : {&compute->inputs, &compute->outputs})
        for (const LocalTensorId id : *tensors)
          if (id.valid() && (tensors == &compute->outputs || stage[id].kind == TensorKind::parameter))
            add_splits(operation, stage[id]);
      note_output(operation, *compute, stage);
    }
  }

  void add_work(WiredOperation& operation, const StageKernels& kernels, std::size_t step) const {
    const Backend backend = cluster_.kernels.device().backend;
    const StageKernels::OfStep& of = kernels.steps[step];
    if (of.forward) operation.forward += work_of(kernels.keys[*of.forward], backend).flops;
    for (const auto& key : {of.backward, of.backward_weight})
      if (key) operation.backward += work_of(kernels.keys[*key], backend).flops;
  }

  void add_splits(WiredOperation& operation, const LocalTensor& tensor) const {
    for (const PartOf& part : tensor.cuts) {
      const std::string what = fmt::format("{} {}", graph_[tensor.origin].name, to_string(part.layout));
      auto found = std::ranges::find(operation.splits, part.axis, &OperationSplit::axis);
      if (found == operation.splits.end())
        found =
            operation.splits.insert(std::ranges::upper_bound(operation.splits, part.axis, {}, &OperationSplit::axis),
                                    OperationSplit{part.axis, plan_.mesh.size(part.axis), ""});
      if (found->what.find(what) == std::string::npos) found->what += (found->what.empty() ? "" : ", ") + what;
    }
  }

  void note_output(WiredOperation& operation, const Compute& compute, const Stage& stage) const {
    const auto& outputs = graph_[compute.operation].outputs;
    for (const LocalTensorId id : compute.outputs)
      if (id.valid() && !outputs.empty() && stage[id].origin == outputs.front())
        operation.local_output = to_string(stage[id].shape);
  }

  void describe_operations() {
    std::set<TensorId> counted;
    for (std::size_t i = 0; i < graph_.operations().size(); ++i) {
      const Operation& operation = graph_.operations()[i];
      WiredOperation& wired = result_.operations[i];
      if (!operation.outputs.empty())
        wired.output = to_string(local_shape(graph_, operation.outputs.front(), graph_.batch()));
      for (const TensorId in : operation.inputs) {
        if (!in.valid()) continue;
        if (graph_[in].kind == TensorKind::parameter && counted.insert(in).second)
          wired.parameters += element_count(graph_[in].shape);
        // What no rank runs as a step of its own goes with what it reads.
        if (const OperationId producer = graph_.producer(in); !last_step_[i] && producer.valid()) {
          wired.stage = std::max(wired.stage, result_.operations[producer.index()].stage);
          beside_[i] = std::max(beside_[i], at(producer));
        }
      }
    }
  }

  [[nodiscard]] At at(OperationId id) const {
    if (last_step_[id.index()]) return *last_step_[id.index()];
    const auto found = beside_.find(id.index());
    return found == beside_.end() ? At{} : found->second;
  }

  void put_in_order() {
    for (std::size_t i = 0; i < graph_.operations().size(); ++i) result_.order.emplace_back(i);
    std::ranges::stable_sort(result_.order, {}, [this](OperationId id) { return at(id); });
  }

  // The operation that made this local tensor, before whatever it was exchanged by; invalid: the model's input.
  [[nodiscard]] OperationId source(std::size_t s, LocalTensorId tensor) const {
    const Stage& stage = plan_.stages[s];
    for (std::size_t step = made_by_[s][tensor.index()]; step < stage.steps.size();
         step = made_by_[s][tensor.index()]) {
      if (const auto* compute = std::get_if<Compute>(&stage.steps[step])) return compute->operation;
      tensor = std::get<Exchange>(stage.steps[step]).input;
    }
    return graph_.producer(stage[tensor].origin);
  }

  // Those that read it, or what it becomes by exchanges.
  void add_readers(std::size_t s, LocalTensorId tensor, std::vector<OperationId>& readers) const {
    for (const Step& step : plan_.stages[s].steps) {
      const std::span<const LocalTensorId> inputs = inputs_of(step);
      if (std::ranges::find(inputs, tensor) == inputs.end()) continue;
      if (const auto* compute = std::get_if<Compute>(&step)) {
        if (std::ranges::find(readers, compute->operation) == readers.end()) readers.push_back(compute->operation);
      } else {
        add_readers(s, std::get<Exchange>(step).output, readers);
      }
    }
  }

  Wire& wire(OperationId from, const std::vector<OperationId>& to, TensorId tensor) {
    Wire& found = wires_[{from, tensor, to}];
    if (found.transfers.empty()) found = {from, to, tensor, {}};
    return found;
  }

  void add_exchanges(std::size_t s) {
    const Stage& stage = plan_.stages[s];
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
      if (!exchange) continue;
      std::vector<WireTransfer> transfers;
      const LocalTensor& in = stage[exchange->input];
      const LocalTensor& out = stage[exchange->output];
      const int ranks = plan_.mesh.size(exchange->axis);
      const auto add = [&](const Transfer& transfer, Pass pass, const LocalTensor& from, const LocalTensor& to,
                           const std::optional<CollectiveEstimate>& time) {
        if (time)
          transfers.push_back({std::string(to_string(transfer.motion)), pass, exchange->axis, ranks,
                               message_bytes(transfer, from, to.shape, ranks) * exchange->filled, time->time.time});
      };
      add(exchange->forward, Pass::forward, in, out, priced_[s].exchanges[i].forward);
      add(exchange->backward, Pass::backward, out, in, priced_[s].exchanges[i].backward);
      if (transfers.empty()) continue;
      std::vector<OperationId> readers;
      add_readers(s, exchange->output, readers);
      Wire& added = wire(source(s, exchange->input), readers, in.origin);
      added.transfers.insert(added.transfers.end(), transfers.begin(), transfers.end());
    }
  }

  void add_links(std::size_t s) {
    const Stage& stage = plan_.stages[s];
    for (std::size_t n = 0; n < stage.sends.size(); ++n) {
      const Link& link = stage.sends[n];
      const auto peer = static_cast<std::size_t>(link.peer);
      const LocalTensor& tensor = stage[link.tensor];
      std::vector<OperationId> readers;
      for (const Link& received : plan_.stages[peer].receives)
        if (plan_.stages[peer][received.tensor].origin == tensor.origin) add_readers(peer, received.tensor, readers);
      if (readers.empty()) continue;  // it only passes through
      const Bytes bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
      Wire& added = wire(source(s, link.tensor), readers, tensor.origin);
      const double share = 1.0 / static_cast<double>(stage.sends.size());
      if (priced_[s].send_forward)
        added.transfers.push_back(
            {"send", Pass::forward, MeshAxis::pipeline, 2, bytes, priced_[s].send_forward->time * share});
      if (priced_[peer].send_backward && link.gradient)
        added.transfers.push_back(
            {"send", Pass::backward, MeshAxis::pipeline, 2, bytes, priced_[peer].send_backward->time * share});
    }
  }

  // An operation belongs to the block of the whole program that its last step lies in; where stages part a block, each
  // has its own piece.
  void add_blocks(const Stage& program) {
    constexpr std::size_t none = static_cast<std::size_t>(-1);
    std::vector<std::size_t> block_of(graph_.operations().size(), none);
    const std::vector<Segment> blocks = find_blocks(program);
    for (std::size_t i = 0, b = 0; i < program.steps.size(); ++i) {
      while (b < blocks.size() && blocks[b].end <= i) ++b;
      if (const auto* compute = std::get_if<Compute>(&program.steps[i]))
        block_of[compute->operation.index()] = b < blocks.size() && blocks[b].begin <= i ? b : none;
    }
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= result_.order.size(); ++i) {
      const OperationId first = result_.order[begin];
      if (i < result_.order.size() && block_of[result_.order[i].index()] == block_of[first.index()] &&
          at(result_.order[i]).first == at(first).first)
        continue;
      const auto size = static_cast<std::size_t>(std::ranges::count(block_of, block_of[first.index()]));
      if (block_of[first.index()] != none && i - begin > 1)
        result_.blocks.push_back({begin, i, kind_of(begin, i), size == i - begin});
      begin = i;
    }
  }

  [[nodiscard]] std::uint64_t kind_of(std::size_t begin, std::size_t end) const {
    Hash kind;
    for (std::size_t i = begin; i < end; ++i) {
      const WiredOperation& operation = result_.operations[result_.order[i].index()];
      kind.add(static_cast<std::uint64_t>(operation.stage));
      kind.add(static_cast<std::uint64_t>(graph_[result_.order[i]].attributes.index()));
      for (const char c : operation.output + "|" + operation.local_output) kind.add(static_cast<std::uint64_t>(c));
      kind.add(static_cast<std::uint64_t>(operation.parameters));
    }
    return kind.value();
  }

  void add_gradients(std::size_t s) {
    const Stage& stage = plan_.stages[s];
    std::size_t message = 0;  // into priced_[s].messages, which are sync by sync, bucket by bucket
    for (const GradientSync& sync : stage.gradients)
      for (const Bucket& bucket : sync.buckets) {
        const PricedMessage& priced = priced_[s].messages[message++];
        const int first = sync.stages.empty() ? static_cast<int>(s) : sync.stages.front();
        const int rank = first % plan_.mesh.size(MeshAxis::pipeline) * plan_.mesh.stride(MeshAxis::pipeline);
        const auto ranks = static_cast<int>(sync_group(plan_.mesh, sync, rank).size());
        std::vector<MeshAxis> axes = sync.axes;
        if (!sync.stages.empty()) axes.push_back(MeshAxis::pipeline);
        for (const LocalTensorId parameter : bucket.parameters) add_gradient(stage[parameter].origin);
        result_.gradients.push_back({std::string(priced.exchange), static_cast<int>(s),
                                     std::move(axes), ranks, priced.bytes, priced.estimate.time.time});
      }
  }

  void add_gradient(TensorId parameter) {
    for (const OperationId reader : graph_.consumers(parameter)) {
      std::vector<std::size_t>& messages = result_.operations[reader.index()].gradients;
      if (messages.empty() || messages.back() != result_.gradients.size()) messages.push_back(result_.gradients.size());
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  const Cluster& cluster_;
  std::vector<PricedStage> priced_;
  std::vector<std::vector<std::size_t>> made_by_;  // by stage and local tensor: the step; their number where none does
  std::vector<std::optional<At>> last_step_;       // by operation
  std::map<std::size_t, At> beside_;               // of operations without a step
  std::map<std::tuple<OperationId, TensorId, std::vector<OperationId>>, Wire> wires_;
  Wiring result_;
};

}  // namespace

Result<Wiring> wiring(const Graph& graph, const Strategy& strategy, const Cluster& cluster,
                      const Cancelled& cancelled) {
  SIBYL_TRY(const Plan plan, plan_for(graph, strategy, cluster));
  if (is_true(cancelled)) return interrupted();
  SIBYL_TRY(const Stage program, make_program(graph, strategy));
  return Wirer(graph, plan, cluster).run(program, cancelled);
}

}  // namespace sibyl
