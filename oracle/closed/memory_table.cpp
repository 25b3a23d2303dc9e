#include "oracle/closed/memory_table.h"

#include <algorithm>

#include "oracle/plan/offload_activations.h"
#include "oracle/plan/recompute.h"
#include "oracle/plan/regathered.h"
#include "oracle/plan/sharding/conversion.h"

namespace sibyl::closed {
namespace {

BackwardMemory backward_memory(ProgramTable& table, const Strategy& strategy) {
  const WorkspaceOf workspace = [&](const Signature& s, std::uint32_t gradients) {
    return table.kernels().of({s, Pass::backward, gradients}, strategy).estimate.workspace;
  };
  const Backend backend = table.kernels().cluster().kernels.device().backend;
  return {table.program(), strategy, backend, table.like(), workspace};
}

}  // namespace

MemoryTable::MemoryTable(ProgramTable& table, const Strategy& strategy)
    : table_(table), backward_(backward_memory(table, strategy)), frees_sent_(frees_sent(strategy)) {
  for (std::size_t t = 0; t < table.program().tensors.size(); ++t)
    if (table.program().tensors[t].kind == TensorKind::input) inputs_ += backward_.bytes_of(LocalTensorId{t});
  const Stage& program = table.program();
  packing_.assign(program.steps.size(), 0.0);
  made_.assign(program.tensors.size(), 0);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    for (const LocalTensorId out : outputs_of(program.steps[i]))
      if (out.valid()) made_[out.index()] = i;
    const auto* exchange = std::get_if<Exchange>(&program.steps[i]);
    if (!exchange) continue;
    const LocalTensor &from = program[exchange->output], &to = program[exchange->input];
    const std::int64_t elements =
        packing_elements(exchange->backward, from.shape, to.shape, strategy.degree(exchange->axis));
    packing_[i] = backward_.rounded(static_cast<double>(elements) * size_in_bytes(from.dtype));
  }
}

double MemoryTable::weights(std::size_t begin, std::size_t end) const {
  const std::vector<Reading>& readings = table_.readings();  // ascending in steps
  double bytes = 0;
  for (auto reading = std::ranges::lower_bound(readings, begin, {}, &Reading::step);
       reading != readings.end() && reading->step < end; ++reading)
    if (reading->before <= begin) bytes += backward_.rounded(reading->bytes);
  return bytes;
}

// What comes from another stage stays.
std::vector<std::vector<LocalTensorId>> MemoryTable::outside(std::size_t begin,
                                                             const std::vector<Segment>& segments) const {
  std::vector<std::vector<LocalTensorId>> result = kept_apart(table_.program(), segments);
  for (std::vector<LocalTensorId>& of_segment : result)
    std::erase_if(of_segment, [&](LocalTensorId id) { return made_[id.index()] < begin; });
  return result;
}

Kept MemoryTable::kept(std::size_t begin, std::size_t end, const std::vector<Segment>& segments,
                       const std::vector<std::vector<LocalTensorId>>& outside) {
  const Stage& program = table_.program();
  known_.resize(program.tensors.size(), 0);
  ++call_;
  const auto take = [&](const BackwardMemory::Wanted& wanted) {
    if (wanted.storage == BackwardMemory::none) return wanted.bytes;
    if (program[LocalTensorId{wanted.storage}].kind != TensorKind::activation) return 0.0;
    const bool again = known_[wanted.storage] == call_;
    known_[wanted.storage] = call_;
    return again ? 0.0 : wanted.bytes;
  };
  const auto take_tensor = [&](LocalTensorId id) {
    const LocalTensorId storage = backward_.storage(id);
    return take({storage.index(), backward_.bytes_of(storage)});
  };
  Kept kept{std::vector<double>(end - begin, 0.0), brought(begin, end, segments, outside),
            std::vector<double>(end - begin, 0.0), 0, 0};
  double bytes = 0;
  for (const LocalTensorId id : table_.crossed(begin).tensors) bytes += take_tensor(id);
  auto segment = segments.begin();
  for (std::size_t i = begin; i < end; ++i) {
    if (segment != segments.end() && segment->end == i) ++segment;
    const bool inside = segment != segments.end() && segment->begin <= i;
    if (inside && segment->begin == i)
      for (const LocalTensorId in : inputs_of(program, *segment)) {
        const double here = take_tensor(in);
        const auto at = static_cast<std::size_t>(segment - segments.begin());
        if (outside.empty() || std::ranges::count(outside[at], in) == 0) bytes += here;
      }
    if (!inside)
      for (const BackwardMemory::Wanted& wanted : backward_.wanted(i)) bytes += take(wanted);
    kept.until[i - begin] = bytes;
  }
  if (!frees_sent_)
    for (const LocalTensorId id : table_.crossed(end).tensors) bytes += take_tensor(id);
  kept.all = bytes;
  for (const Segment& s : segments) {
    // Results are made again, too, and they and their gradients are held, which else are gone behind the last step.
    const double results = this->results(s);
    double again = results;
    for (std::size_t i = s.begin; i < s.end; ++i) {
      for (const BackwardMemory::Wanted& wanted : backward_.wanted(i)) again += take(wanted);
      kept.again[i - begin] += again + (i + 1 < s.end ? results : 0.0);
    }
  }
  ++call_;
  for (std::size_t i = end; i-- > begin;) {
    kept.put_off[i - begin] = kept.later;
    if (backward_.later()[i] == 0) continue;
    kept.later += backward_.later()[i];
    for (const BackwardMemory::Wanted& wanted : backward_.wanted(i)) kept.later += take(wanted);
  }
  return kept;
}

double MemoryTable::results(const Segment& segment) const {
  double bytes = 0;
  for (const LocalTensorId id : table_.crossed(segment.end).tensors)
    if (made_[id.index()] >= segment.begin && made_[id.index()] < segment.end) bytes += backward_.bytes_of(id);
  return bytes;
}

// A segment's from when the one behind it begins backward, or backward itself does, until its own backward is over.
std::vector<double> MemoryTable::brought(std::size_t begin, std::size_t end, const std::vector<Segment>& segments,
                                         const std::vector<std::vector<LocalTensorId>>& outside) const {
  std::vector<double> here(end - begin, 0.0);
  std::size_t until = end;
  for (std::size_t s = outside.size(); s-- > 0;) {
    if (outside[s].empty()) continue;
    double bytes = 0;
    for (const LocalTensorId id : outside[s]) bytes += backward_.bytes_of(id);
    for (std::size_t i = segments[s].begin; i < until; ++i) here[i - begin] += bytes;
    until = segments[s].end;
  }
  return here;
}

}  // namespace sibyl::closed
