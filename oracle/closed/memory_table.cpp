#include "oracle/closed/memory_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/training/gradient_aliasing.h"
#include "oracle/memory/regathered.h"
#include "oracle/plan/recompute.h"

namespace sibyl::closed {
MemoryTable::MemoryTable(ProgramTable& table, const Strategy& strategy)
    : table_(table),
      frees_sent_(frees_sent(strategy)),
      like_(table.like()),
      backend_(table.kernels().cluster().kernels.device().backend),
      granularity_(backend_ == Backend::cpu ? 64 : 512) {
  find_facts(strategy);
  find_storages();
  find_wanted(strategy);
  find_working();
  find_later();
  for (std::size_t t = 0; t < table.program().tensors.size(); ++t)
    if (table.program().tensors[t].kind == TensorKind::input) inputs_ += rounded(bytes_of(LocalTensorId{t}));
}

double MemoryTable::rounded(double bytes) const { return std::ceil(bytes / granularity_) * granularity_; }

double MemoryTable::weights(std::size_t begin, std::size_t end) const {
  const std::vector<Reading>& readings = table_.readings();  // ascending in steps
  double bytes = 0;
  for (auto reading = std::ranges::lower_bound(readings, begin, {}, &Reading::step);
       reading != readings.end() && reading->step < end; ++reading)
    if (reading->before <= begin) bytes += rounded(reading->bytes);
  return bytes;
}

double MemoryTable::bytes_of(LocalTensorId id) const {
  const LocalTensor& tensor = table_.program()[id];
  return static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype);
}

void MemoryTable::find_facts(const Strategy& strategy) {
  const Stage& program = table_.program();
  facts_.resize(program.steps.size());
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&program.steps[i]);
    if (!compute || (!like_.empty() && like_[i] != i)) continue;
    Facts& facts = facts_[i];
    const Signature s = signature(program, *compute);
    facts.rule = training_rule(s, compute->gradients, backend_);
    if (compute->gradients == 0) continue;
    for (std::size_t in = 0; in < compute->inputs.size(); ++in)
      if ((compute->gradients >> in & 1U) != 0 && passes_gradient_through(s, in)) facts.passed_through |= 1U << in;
    facts.workspace = table_.kernels().of({s, Pass::backward, compute->gradients}, strategy).estimate.workspace.value();
  }
}

void MemoryTable::find_storages() {
  const Stage& program = table_.program();
  storage_.resize(program.tensors.size());
  for (std::size_t t = 0; t < storage_.size(); ++t) storage_[t] = t;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    if (const auto* exchange = std::get_if<Exchange>(&program.steps[i])) {
      if (in_place(exchange->forward)) storage_[exchange->output.index()] = storage_[exchange->input.index()];
      continue;
    }
    const auto& compute = std::get<Compute>(program.steps[i]);
    if (compute.inputs.empty() || !compute.inputs[0].valid()) continue;
    if (facts(i).rule.view)
      for (const LocalTensorId out : compute.outputs) storage_[out.index()] = storage_[compute.inputs[0].index()];
  }
}

void MemoryTable::find_wanted(const Strategy& strategy) {
  const Stage& program = table_.program();
  const std::vector<bool> regathered = regathered_tensors(program, strategy);
  wanted_.resize(program.steps.size());
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto want = [&](LocalTensorId id) {
      if (!id.valid() || regathered[id.index()]) return;
      const LocalTensorId storage{storage_[id.index()]};
      if (program[storage].kind == TensorKind::activation)
        wanted_[i].push_back({storage.index(), rounded(bytes_of(storage))});
    };
    if (const auto* exchange = std::get_if<Exchange>(&program.steps[i])) {
      if (regathered[exchange->output.index()]) want(exchange->input);
      continue;
    }
    const auto& compute = std::get<Compute>(program.steps[i]);
    if (compute.gradients == 0) continue;
    for (const Saved& saved : facts(i).rule.saved) {
      if (saved.what == Saved::What::extra) wanted_[i].push_back({absent, rounded(saved.bytes.value())});
      if (saved.what == Saved::What::input && saved.index < compute.inputs.size()) want(compute.inputs[saved.index]);
      if (saved.what == Saved::What::output && saved.index < compute.outputs.size()) want(compute.outputs[saved.index]);
    }
  }
}

// A gradient lives from the last step that reads its tensor to the one that made it; not where it is another one's,
// handed on.
void MemoryTable::find_working() {
  const Stage& program = table_.program();
  const std::size_t steps = program.steps.size();
  std::vector<std::size_t> made(program.tensors.size(), absent), last(program.tensors.size(), absent);
  std::vector<bool> own(program.tensors.size(), false);
  std::vector<double> change(steps + 1, 0.0);
  working_.assign(steps, 0.0);
  for (std::size_t i = 0; i < steps; ++i) {
    for (const LocalTensorId out : outputs_of(program.steps[i]))
      if (out.valid()) made[out.index()] = i;
    const auto* compute = std::get_if<Compute>(&program.steps[i]);
    if (!compute) {
      const auto& exchange = std::get<Exchange>(program.steps[i]);
      last[exchange.input.index()] = i;
      if (!in_place(exchange.backward)) own[exchange.input.index()] = true;
      continue;
    }
    if (compute->gradients == 0) continue;
    for (std::size_t in = 0; in < compute->inputs.size(); ++in) {
      if ((compute->gradients >> in & 1U) == 0) continue;
      const std::size_t tensor = compute->inputs[in].index();
      own[tensor] = own[tensor] || last[tensor] != absent || (facts(i).passed_through >> in & 1U) == 0;
      last[tensor] = i;
    }
    working_[i] = facts(i).workspace;
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (made[t] == absent || last[t] == absent || !own[t] || program.tensors[t].kind != TensorKind::activation)
      continue;
    const double bytes = rounded(bytes_of(LocalTensorId{t}));
    change[made[t]] += bytes;
    change[last[t] + 1] -= bytes;
  }
  double alive = 0;
  for (std::size_t i = 0; i < steps; ++i) working_[i] += alive += change[i];
}

void MemoryTable::find_later() {
  const Stage& program = table_.program();
  const std::vector<std::uint32_t> put_off = later_gradients(program);
  later_.assign(program.steps.size(), 0.0);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&program.steps[i]);
    if (compute && put_off[i] != 0 && !compute->outputs.empty()) later_[i] = rounded(bytes_of(compute->outputs[0]));
  }
}

Kept MemoryTable::kept(std::size_t begin, std::size_t end, const std::vector<Segment>& segments) {
  const Stage& program = table_.program();
  known_.resize(program.tensors.size(), 0);
  ++call_;
  const auto take = [&](const Wanted& wanted) {
    if (wanted.storage == absent) return wanted.bytes;
    const bool again = known_[wanted.storage] == call_;
    known_[wanted.storage] = call_;
    return again ? 0.0 : wanted.bytes;
  };
  const auto take_tensor = [&](LocalTensorId id) {
    const LocalTensorId storage{storage_[id.index()]};
    return program[storage].kind == TensorKind::activation ? take({storage.index(), rounded(bytes_of(storage))}) : 0.0;
  };
  Kept kept{std::vector<double>(end - begin, 0.0), std::vector<double>(end - begin, 0.0), 0, 0};
  double bytes = 0;
  for (const LocalTensorId id : table_.crossed(begin).tensors) bytes += take_tensor(id);
  auto segment = segments.begin();
  for (std::size_t i = begin; i < end; ++i) {
    if (segment != segments.end() && segment->end == i) ++segment;
    const bool inside = segment != segments.end() && segment->begin <= i;
    if (inside && segment->begin == i)
      for (const LocalTensorId in : inputs_of(program, *segment)) bytes += take_tensor(in);
    if (!inside)
      for (const Wanted& wanted : wanted_[i]) bytes += take(wanted);
    kept.until[i - begin] = bytes;
  }
  if (!frees_sent_)
    for (const LocalTensorId id : table_.crossed(end).tensors) bytes += take_tensor(id);
  kept.all = bytes;
  for (const Segment& s : segments) {
    double again = 0;
    for (std::size_t i = s.begin; i < s.end; ++i) {
      for (const Wanted& wanted : wanted_[i]) again += take(wanted);
      kept.again[i - begin] = again;
    }
  }
  ++call_;
  for (std::size_t i = begin; i < end; ++i) {
    if (later_[i] == 0) continue;
    kept.later += later_[i];
    for (const Wanted& wanted : wanted_[i]) kept.later += take(wanted);
  }
  return kept;
}

}  // namespace sibyl::closed
