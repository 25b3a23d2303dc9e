#include "oracle/closed/least_time.h"

#include <algorithm>
#include <iterator>

#include "oracle/closed/program_table.h"
#include "oracle/closed/schedule_form.h"
#include "oracle/plan/pipeline/cut.h"

namespace sibyl::closed {

Result<FoldedProgram> FoldedProgram::make(const Graph& graph, const Folding* folding, const Strategy& strategy) {
  if (folding) {
    SIBYL_TRY(Stage folded, make_program(folding->graph, strategy));
    if (const std::optional<Segment> layer = repeated_layer(*folding, folded))
      return FoldedProgram{std::move(folded), *layer, folding->left_out};
  }
  SIBYL_TRY(Stage whole, make_program(graph, strategy));
  return FoldedProgram{std::move(whole)};
}

namespace {

// `hidden`: what computes beside it may hide all of it.
Kernels with(Kernels kernels, const Exchanged& exchange, bool hidden) {
  if (exchange.sent) kernels.add({hidden ? 0.0 : exchange.least(), 1});
  return kernels;
}

// By step: of a parameter's gradient it makes a part, to which that of a later step is added. In another stage there
// may be nothing to add to.
std::vector<bool> adds_gradients(const Stage& program) {
  std::vector<bool> adds(program.steps.size(), false), seen(program.tensors.size(), false);
  for (std::size_t i = adds.size(); i-- > 0;) {
    std::vector<std::size_t> own;
    each_gradient(program, program.steps[i], [&](LocalTensorId id) {
      if (program[id].kind != TensorKind::parameter) return;
      adds[i] = adds[i] || seen[id.index()];
      own.push_back(id.index());
    });
    for (const std::size_t tensor : own) seen[tensor] = true;
  }
  return adds;
}

}  // namespace

// A row of kernels takes at least what they take on the device, and what the host takes to issue them.
LeastTime::Work LeastTime::add_up(bool split) {
  const Stage& program = program_.steps;
  std::vector<Row>& rows = program_.rows[split ? 1 : 0];
  if (rows.empty()) rows = priced_rows(program, strategy_, kernels_, split);
  const std::vector<OperationId> begins = beginnings(program);
  const std::vector<bool> made_again = repeatable_steps(program), adds = adds_gradients(program);
  const bool hides = strategy_.overlap_tensor || goes_round(strategy_);
  Kernels all, of_stages, waited_for;
  std::vector<Kernels> before, waited_for_before;  // by place
  const auto note = [&] {
    before.push_back(of_stages);
    waited_for_before.push_back(waited_for);
  };
  const auto add = [&](std::size_t i) {
    if (begins[i].valid() || before.empty()) note();
    const Row& row = rows[i];
    const Kernels forward = with(row.forward, row.exchange_forward, hides);
    const Kernels backward = with(row.backward, row.exchange_backward, hides);
    for (const Kernels& kernels : {forward, backward, row.backward_weight}) all.add(kernels);
    if (made_again[i]) return;
    for (Kernels* sum : {&of_stages, &waited_for}) {
      sum->add(forward);
      if (!adds[i]) sum->add(backward);
    }
    if (!adds[i]) of_stages.add(row.backward_weight);
  };
  const auto [begin, end] = program_.again;
  for (std::size_t i = 0; i < end; ++i) add(i);
  for (std::size_t n = 0; n < program_.times; ++n)
    for (std::size_t i = begin; i < end; ++i) add(i);
  for (std::size_t i = end; i < rows.size(); ++i) add(i);
  note();
  const double dispatch = kernels_.cluster().kernels.device().dispatch.value();
  const bool host = dispatch * of_stages.launches > of_stages.seconds;
  Work work;
  const auto seconds = [&](const Kernels& kernels) { return host ? dispatch * kernels.launches : kernels.seconds; };
  std::ranges::transform(before, std::back_inserter(work.before), seconds);
  std::ranges::transform(waited_for_before, std::back_inserter(work.waited_for), seconds);
  work.whole = std::max(all.seconds, dispatch * all.launches);
  return work;
}

const LeastTime::Work& LeastTime::work(bool split) {
  std::optional<Work>& work = work_[split ? 1 : 0];
  if (!work) work = add_up(split);
  return *work;
}

namespace {

// Do so many stages come to the program's beginning, laid from the back, each as long as `may_take(work behind it)`
// lets it? `before`: all work before a place.
bool possible(const std::vector<double>& before, int stages, const auto& may_take) {
  std::size_t begin = before.size() - 1;
  for (int s = 0; s < stages && begin > 0; ++s) {
    const double from = before[begin] - may_take(before.back() - before[begin]);
    std::size_t next = begin, stride = 1;  // most stages are short
    for (; next > 0 && before[next] >= from; stride *= 2) next -= std::min(stride, next);
    const auto low = before.begin() + static_cast<std::ptrdiff_t>(next);
    const auto high = before.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto found = std::lower_bound(low, high, from);
    if (found == high) return false;  // the operation before is longer
    begin = static_cast<std::size_t>(found - before.begin());
  }
  return begin == 0;
}

// The least that is possible, to 2 % and from below, given something that is no more.
double least_possible(double least, const auto& is_possible) {
  constexpr double precision = 1.02;
  double step = precision, most = least * step;
  for (; !is_possible(most); most = least * step) {
    least = most;
    step *= step;
  }
  while (most > precision * least) {
    const double middle = (least + most) / 2;
    (is_possible(middle) ? most : least) = middle;
  }
  return least;
}

}  // namespace

// Of so many stages the longest.
double LeastTime::longest_stage(int stages, bool split) {
  const auto [known, added] = longest_.try_emplace({stages, split}, 0.0);
  const std::vector<double>& before = work(split).before;
  if (added)
    known->second = least_possible(before.back() / stages,
                                   [&](double time) { return possible(before, stages, [&](double) { return time; }); });
  return known->second;
}

double LeastTime::of_stages(const Strategy& s) {
  const bool split = s.schedule == PipelineSchedule::zero_bubble;
  const auto micro_batches = static_cast<double>(s.accumulation);
  const Work& work = this->work(split);
  const std::vector<double>& before = work.waited_for;
  double least = std::max(work.before.back() * micro_batches / s.pipeline, before.back());
  if (s.chunks > 1 || split) least = std::max(least, micro_batches * longest_stage(s.stages(), split));
  if (s.chunks > 1 || s.accumulation == 1) return least;
  return least_possible(least, [&](double time) {
    return possible(before, s.pipeline,
                    [&](double behind) { return (time - before.back() + behind) / (micro_batches - 1); });
  });
}

Seconds LeastTime::of(const Strategy& s) {
  constexpr double rounding = 1e-9;
  if (s.stages() == 1) return Seconds{work(false).whole * static_cast<double>(s.accumulation) * (1 - rounding)};
  const auto [known, added] = known_.try_emplace({s.schedule, s.pipeline, s.chunks, s.accumulation}, 0.0);
  if (added) known->second = of_stages(s);
  return Seconds{known->second * (1 - ScheduleForm::not_walked - rounding)};
}

}  // namespace sibyl::closed
