#include "oracle/closed/stage_work.h"

#include <algorithm>

namespace sibyl::closed {

StageWork::StageWork(ProgramTable& table, MemoryTable& memory, Range range, Asked asked)
    : table_(table),
      rows_(table.rows(asked.split)),
      range_(range),
      asked_(asked),
      dispatch_(table.kernels().cluster().kernels.device().dispatch.value()),
      segments_(table.recomputed(asked.recompute, range.begin, range.end)) {
  forward_ = run({{.forward = true}});
  if (asked.split) input_ = run({{.forward = false, .weights = false}});
  run_backward();
  for (std::size_t i = range.begin; i < range.end; ++i) alone_ += rows_[i].alone;
  add_memory(memory);
}

bool StageWork::tied(const Parameter& parameter) const {
  return !asked_.alone && (parameter.first_use < range_.begin || parameter.last_use >= range_.end);
}

bool StageWork::exchanged(const Parameter& parameter) const {
  return asked_.replicated || !table_.summed_over()[parameter.summed].empty() || tied(parameter);
}

namespace {

// A device that runs what its host issues.
struct Clock {
  double issued = 0, device = 0, busy = 0;  // by the host; done; computed

  void run(double seconds, double issue) {
    issued += issue;
    device = std::max(device, issued) + seconds;
    busy += seconds;
  }
};

constexpr auto nothing = [](std::size_t) {};

}  // namespace

StageWork::Run StageWork::run(const std::vector<StagePass>& passes) const {
  Clock clock;
  double before = 0;
  for (const StagePass& pass : passes) {
    before = clock.busy;
    each_task(
        pass, [&](double seconds, int launches) { clock.run(seconds, dispatch_ * launches); }, nothing, nothing);
  }
  return {clock.device, clock.device - clock.busy, before};
}

// All four passes at once: they differ in sums and copies alone.
void StageWork::run_backward() {
  std::array<Clock, backward_slots> clocks;
  for (std::vector<double>& done_by : done_by_) done_by.resize(range_.end - range_.begin);
  backward(
      !asked_.split, true,
      [&](double seconds, int launches) {
        for (Clock& clock : clocks) clock.run(seconds, dispatch_ * launches);
      },
      [&](const Own& own) {
        for (const bool first : {true, false})
          for (const bool last : {true, false}) {
            const Kernels kernels = own.in(first, last);
            if (kernels.launches > 0) clocks[slot_of(first, last)].run(kernels.seconds, dispatch_ * kernels.launches);
          }
      },
      nothing,
      [&](std::size_t i) {
        for (const bool first : {true, false})
          done_by_[first ? 0 : 1][i - range_.begin] = clocks[slot_of(first, true)].busy;
      });
  for (std::size_t slot = 0; slot < backward_slots; ++slot)
    backward_[slot] = {clocks[slot].device, clocks[slot].device - clocks[slot].busy, 0};
}

std::vector<StagePass> StageWork::passes(std::int64_t micro_batches) {
  std::vector<StagePass> all;
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    all.push_back({.forward = true});
    all.push_back({.forward = false, .first = m == 0, .last = m + 1 == micro_batches});
  }
  return all;
}

const StageWork::Run& StageWork::step(std::int64_t micro_batches) {
  std::optional<Run>& known = steps_[static_cast<std::size_t>(micro_batches)];
  if (!known) known = run(passes(micro_batches));
  return *known;
}

void StageWork::add_memory(MemoryTable& memory) {
  const Kept kept = memory.kept(range_.begin, range_.end, segments_);
  weights_ = memory.weights(range_.begin, range_.end);
  kept_ = kept.all;
  later_ = kept.later;
  const double sent = kept.all - kept.until.back();
  double gradients = 0;
  for (std::size_t i = range_.end; i-- > range_.begin;) {
    const std::size_t at = i - range_.begin;
    const double pass = kept.until[at] + sent + kept.again[at] + memory.working()[i];
    for (std::size_t u = table_.uses_from(i + 1); u < table_.uses_from(i); ++u) {
      const Use& use = table_.uses()[u];
      const Parameter& parameter = table_.parameters()[use.parameter];
      const double bytes = memory.rounded(parameter.bytes());
      if (use.before <= range_.begin) gradients_ += bytes;
      if (parameter.last_use == i || parameter.last_use >= range_.end) gradients += bytes;
    }
    pass_ = std::max(pass_, pass);
    pass_and_gradients_ = std::max(pass_and_gradients_, pass + gradients);
  }
}

std::size_t StageWorks::HashKey::operator()(const Key& key) const {
  const std::size_t options = (key.length << 5U) + (static_cast<std::size_t>(key.asked.recompute) << 3U) +
                              (key.asked.split ? 4U : 0U) + (key.asked.alone ? 2U : 0U) +
                              (key.asked.replicated ? 1U : 0U);
  return key.content ^ (options * 0x9E3779B97F4A7C15ULL);
}

StageWork& StageWorks::of(std::uint64_t content, Range range, const Asked& asked) {
  std::unique_ptr<StageWork>& work = works_[{content, range.end - range.begin, asked}];
  if (!work) work = std::make_unique<StageWork>(table_, memory_, range, asked);
  return *work;
}

}  // namespace sibyl::closed
