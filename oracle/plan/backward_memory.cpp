#include "oracle/plan/backward_memory.h"

#include <algorithm>
#include <cmath>

#include "oracle/plan/regathered.h"

namespace sibyl {

BackwardMemory::BackwardMemory(const Stage& program, const Strategy& strategy, Backend backend,
                               const std::vector<std::size_t>& like, const WorkspaceOf& workspace)
    : program_(program), like_(like), backend_(backend), granularity_(backend == Backend::cpu ? 64 : 512) {
  const AllFacts facts = facts_of_steps(workspace);
  find_storages(facts);
  find_wanted(facts, strategy);
  find_working(facts);
  find_later();
}

double BackwardMemory::rounded(double bytes) const { return std::ceil(bytes / granularity_) * granularity_; }

double BackwardMemory::bytes_of(LocalTensorId id) const {
  const LocalTensor& tensor = program_[id];
  return rounded(static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype));
}

BackwardMemory::AllFacts BackwardMemory::facts_of_steps(const WorkspaceOf& workspace) const {
  AllFacts all(program_.steps.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&program_.steps[i]);
    if (!compute || (!like_.empty() && like_[i] != i)) continue;
    Facts& facts = all[i];
    const Signature s = signature(program_, *compute);
    facts.rule = rule_of(program_, *compute, backend_);
    if (compute->gradients == 0) continue;
    for (std::size_t in = 0; in < compute->inputs.size(); ++in)
      if ((compute->gradients >> in & 1U) != 0 && passes_gradient(program_, *compute, in, backend_))
        facts.passed_through |= 1U << in;
    if (workspace) facts.workspace = workspace(s, compute->gradients).value();
  }
  return all;
}

void BackwardMemory::find_storages(const AllFacts& facts) {
  storage_.resize(program_.tensors.size());
  for (std::size_t t = 0; t < storage_.size(); ++t) storage_[t] = t;
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    if (const auto* exchange = std::get_if<Exchange>(&program_.steps[i])) {
      if (in_place(exchange->forward)) storage_[exchange->output.index()] = storage_[exchange->input.index()];
      continue;
    }
    const auto& compute = std::get<Compute>(program_.steps[i]);
    if (compute.inputs.empty() || !compute.inputs[0].valid()) continue;
    if (of(facts, i).rule.view)
      for (const LocalTensorId out : compute.outputs) storage_[out.index()] = storage_[compute.inputs[0].index()];
  }
}

void BackwardMemory::find_wanted(const AllFacts& facts, const Strategy& strategy) {
  const std::vector<bool> regathered = regathered_tensors(program_, strategy);
  wanted_.resize(program_.steps.size());
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    const auto want = [&](LocalTensorId id) {
      if (!id.valid() || regathered[id.index()]) return;
      const LocalTensorId storage = this->storage(id);
      const TensorKind kind = program_[storage].kind;
      if (kind == TensorKind::activation || kind == TensorKind::input)
        wanted_[i].push_back({storage.index(), bytes_of(storage)});
    };
    if (const auto* exchange = std::get_if<Exchange>(&program_.steps[i])) {
      if (regathered[exchange->output.index()]) want(exchange->input);
      continue;
    }
    const auto& compute = std::get<Compute>(program_.steps[i]);
    if (compute.gradients == 0) continue;
    for (const Saved& saved : of(facts, i).rule.saved) {
      if (saved.what == Saved::What::extra) wanted_[i].push_back({none, rounded(saved.bytes.value())});
      if (saved.what == Saved::What::input && saved.index < compute.inputs.size()) want(compute.inputs[saved.index]);
      if (saved.what == Saved::What::output && saved.index < compute.outputs.size()) want(compute.outputs[saved.index]);
    }
  }
}

// A gradient lives from the last step that reads its tensor to the one that made it; not where it is another one's,
// handed on.
void BackwardMemory::find_working(const AllFacts& facts) {
  const std::size_t steps = program_.steps.size();
  std::vector<std::size_t> made(program_.tensors.size(), none), last(program_.tensors.size(), none);
  std::vector<bool> own(program_.tensors.size(), false);
  std::vector<double> change(steps + 1, 0.0);
  working_.assign(steps, 0.0);
  for (std::size_t i = 0; i < steps; ++i) {
    for (const LocalTensorId out : outputs_of(program_.steps[i]))
      if (out.valid()) made[out.index()] = i;
    const auto* compute = std::get_if<Compute>(&program_.steps[i]);
    if (!compute) {
      const auto& exchange = std::get<Exchange>(program_.steps[i]);
      last[exchange.input.index()] = i;
      if (!in_place(exchange.backward)) own[exchange.input.index()] = true;
      continue;
    }
    if (compute->gradients == 0) continue;
    for (std::size_t in = 0; in < compute->inputs.size(); ++in) {
      if ((compute->gradients >> in & 1U) == 0) continue;
      const std::size_t tensor = compute->inputs[in].index();
      own[tensor] = own[tensor] || last[tensor] != none || (of(facts, i).passed_through >> in & 1U) == 0;
      last[tensor] = i;
    }
    working_[i] = of(facts, i).workspace;
  }
  for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
    if (made[t] == none || last[t] == none || !own[t] || program_.tensors[t].kind != TensorKind::activation) continue;
    const double bytes = bytes_of(LocalTensorId{t});
    change[made[t]] += bytes;
    change[last[t] + 1] -= bytes;
  }
  double alive = 0;
  for (std::size_t i = 0; i < steps; ++i) working_[i] += alive += change[i];
}

void BackwardMemory::find_later() {
  const std::vector<std::uint32_t> put_off = later_gradients(program_);
  later_.assign(program_.steps.size(), 0.0);
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&program_.steps[i]);
    if (compute && put_off[i] != 0 && !compute->outputs.empty()) later_[i] = bytes_of(compute->outputs[0]);
  }
}

}  // namespace sibyl
