#include "oracle/closed/stage_work.h"

#include <algorithm>

#include "oracle/cost/framework.h"
#include "oracle/plan/offload_activations.h"

namespace sibyl::closed {

StageWork::StageWork(ProgramTable& table, MemoryTable& memory, Range range, const Asked& asked)
    : table_(table),
      rows_(table.rows(asked.split)),
      range_(range),
      asked_(asked),
      dispatch_(table.kernels().cluster().kernels.device().dispatch.value()),
      bare_(bare_launch(table.kernels().cluster().kernels.device())),
      segments_(table.recomputed(asked_.again, range.begin, range.end)),
      again_(table.made_again().of(range.begin, range.end)) {
  forward_ = run({.forward = true}, wires_forward_);
  if (asked_.split) input_ = run({.forward = false, .weights = false}, wires_backward_);
  run_backward();
  for (std::size_t i = range.begin; i < range.end; ++i) alone_ += rows_[i].alone;
  for (const MadeAgain::Repeated& again : again_) alone_ += rows_[again.step].alone;
  const double factor = table.kernels().cluster().composition.factor;
  for (const Segment& segment : segments_)
    for (std::size_t i = segment.begin; i < segment.end; ++i)
      if (asked.alone || table.made_again().runs(i, range.end)) alone_ += rows_[i].computed_forward / factor;
  for (std::size_t u = table.uses_from(range.end); u < table.uses_from(range.begin); ++u)
    if (added_elsewhere(table.uses()[u])) alone_ -= table.parameters()[table.uses()[u].parameter].sum / factor;
  add_memory(memory);
}

StageWork::StageWork(const StageWork& alike, const Asked& asked) : StageWork(alike) {
  asked_ = asked;
  backward_ = {};
  last_backward_ = {};
  if (!asked_.split) wires_backward_ = {};
  run_backward();
}

bool StageWork::tied(const Parameter& parameter) const {
  return !asked_.alone && (parameter.first_use < range_.begin || parameter.last_use >= range_.end);
}

bool StageWork::exchanged(const Parameter& parameter) const {
  return asked_.replicated || !table_.summed_over()[parameter.summed].empty() || tied(parameter);
}

namespace {

constexpr auto nothing = [](std::size_t) {};

void add(const Exchanged& exchange, WireTime& wires) { wires.add(exchange.seconds - exchange.wait, exchange.wire); }

}  // namespace

Run StageWork::run(const StagePass& pass, WireTime& wires) const {
  Run all;
  each_task(
      pass, [&](double seconds, double launches) { all.add(seconds, dispatch_ * launches); },
      [&](const Exchanged& exchange) {
        all.add(exchange.seconds, dispatch_);
        add(exchange, wires);
      },
      nothing, nothing);
  return all;
}

// All four passes at once: they differ in sums and copies alone.
void StageWork::run_backward() {
  backward(
      !asked_.split, true,
      [&](double seconds, double launches) {
        for (Run& slot : backward_) slot.add(seconds, dispatch_ * launches);
      },
      [&](const Exchanged& exchange) {
        for (Run& slot : backward_) slot.add(exchange.seconds, dispatch_);
        add(exchange, wires_backward_);
      },
      [&](const Own& own) {
        for (const bool first : {true, false})
          for (const bool last : {true, false}) {
            const Kernels kernels = own.in(first, last);
            if (kernels.launches > 0)
              backward_[slot_of(first, last)].add(kernels.seconds, dispatch_ * kernels.launches);
          }
      },
      nothing, nothing);
}

const StageWork::LastBackward& StageWork::last_backward(bool first) const {
  std::optional<LastBackward>& known = last_backward_[first ? 0 : 1];
  if (known) return *known;
  LastBackward& last = known.emplace();
  last.done_by.resize(range_.end - range_.begin);
  double done = 0;
  each_task(
      {.forward = false, .inputs = !asked_.split, .weights = true, .first = first, .last = true},
      [&](double seconds, double) { done += seconds; },
      [&](const Exchanged& exchange) {
        std::vector<Stretch>& all = last.stretches;
        if (all.empty() || all.back().until < Seconds{done}) all.push_back({Seconds{done}});
        if (exchange.wait > 0) all.push_back({Seconds{done + exchange.wait}, WireUse{}});
        all.push_back({Seconds{done + exchange.seconds}, exchange.wire});
        done += exchange.seconds;
      },
      nothing, [&](std::size_t i) { last.done_by[i - range_.begin] = done; });
  return last;
}

Run StageWork::before_last(std::int64_t micro_batches) const {
  if (micro_batches == 1) return forward_;
  const Run first = forward_.then(backward_[slot_of(true, false)]);
  if (micro_batches == 2) return first.then(forward_);
  const Run further = forward_.then(backward_[slot_of(false, false)]);
  return first.then(further.times(micro_batches - 2)).then(forward_);
}

void StageWork::add_memory(MemoryTable& memory) {
  std::vector<std::vector<LocalTensorId>> outside;
  if (asked_.outside) outside = memory.outside(range_.begin, segments_);
  for (std::size_t s = 0; s < outside.size(); ++s)
    if (!outside[s].empty()) outside_.push_back({segments_[s], bytes_of(table_.program(), outside[s])});
  const Kept kept = memory.kept(range_.begin, range_.end, segments_, outside);
  weights_ = memory.weights(range_.begin, range_.end);
  kept_ = kept.all;
  later_ = kept.later;
  const double sent = kept.all - kept.until.back();
  double gradients = 0, own = 0;  // of parameters: that have one by then; for which there is more to come
  for (std::size_t i = range_.end; i-- > range_.begin;) {
    const std::size_t at = i - range_.begin;
    const double kept_yet = kept.until[at] + sent + kept.again[at] + (asked_.split ? kept.put_off[at] : 0.0);
    const double pass = kept_yet + memory.working()[i] + memory.packing()[i];
    for (std::size_t u = table_.uses_from(i + 1); u < table_.uses_from(i); ++u) {
      const Use& use = table_.uses()[u];
      const Parameter& parameter = table_.parameters()[use.parameter];
      const double bytes = memory.rounded(parameter.gradient_bytes());
      if (use.before <= range_.begin) gradients_ += bytes;
      if (parameter.last_use != i && parameter.last_use < range_.end) continue;
      gradients += bytes;
      own += bytes;
    }
    pass_ = std::max(pass_, pass);
    pass_and_gradients_ = std::max(pass_and_gradients_, pass + gradients);
    pass_and_own_gradients_ = std::max(pass_and_own_gradients_, pass + own);
    for (std::size_t u = table_.uses_from(i + 1); u < table_.uses_from(i); ++u)
      if (const Use& use = table_.uses()[u]; use.before <= range_.begin)
        own -= memory.rounded(table_.parameters()[use.parameter].gradient_bytes());
  }
}

std::size_t StageWorks::HashKey::operator()(const Key& key) const {
  const RunsAgain& again = key.asked.again;
  const std::size_t options = (key.length << 8U) + (static_cast<std::size_t>(again.recompute) << 6U) +
                              (key.asked.each ? 32U : 0U) + (key.asked.in_buckets ? 16U : 0U) +
                              (key.asked.outside ? 8U : 0U) + (key.asked.split ? 4U : 0U) +
                              (key.asked.alone ? 2U : 0U) + (key.asked.replicated ? 1U : 0U);
  const auto blocks =
      static_cast<std::size_t>(again.blocks.every) << 8U | static_cast<std::size_t>(again.blocks.together);
  return key.content ^ ((options ^ blocks << 32U) * 0x9E3779B97F4A7C15ULL);
}

StageWork& StageWorks::of(std::uint64_t content, Range range, const Asked& asked) {
  Key key{content, range.end - range.begin, asked};
  std::unique_ptr<StageWork>& work = works_[key];
  if (work) return *work;
  key.asked.replicated = key.asked.in_buckets = key.asked.each = false;
  const StageWork*& alike = alike_[key];
  if (alike && alike->range().begin == range.begin) {
    work = std::make_unique<StageWork>(*alike, asked);
  } else {
    work = std::make_unique<StageWork>(table_, memory_, range, asked);
    alike = work.get();
  }
  return *work;
}

}  // namespace sibyl::closed
