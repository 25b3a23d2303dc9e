// What a stage computes and keeps, whatever its replicas exchange and share out: the same for all strategies that have
// the stage and differ in that alone, and worked out once for them.
//
// Kernels are added up one by one, with the host's launches beside them. Stages of equal content
// (ProgramTable::content()) are one, whichever of the program's steps they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "oracle/closed/memory_table.h"
#include "oracle/closed/program_table.h"
#include "oracle/closed/run.h"
#include "oracle/plan/recompute.h"
#include "oracle/simulate/rank_wires.h"
#include "oracle/simulate/streams.h"

namespace sibyl::closed {

struct Range {
  std::size_t begin = 0, end = 0;
};

// What a stage is asked to do with its steps.
struct Asked {
  RunsAgain again = {};
  bool split = false;       // backward is taken in two parts
  bool alone = false;       // there is no other stage
  bool replicated = false;  // there are other replicas, which want every gradient
  bool outside = false;     // what blocks keep to run again lies outside the device
  bool in_buckets = false;  // gradients are made in their buckets (plan/regathered.h)
  bool each = false;        // every micro-batch's gradients are exchanged, and added up by parts
  bool operator==(const Asked&) const = default;
};

// One pass over a micro-batch. `first`, `last`: of the stage's micro-batches.
struct StagePass {
  bool forward = true, inputs = true, weights = true, first = true, last = true;
};

// Backward passes by whether they are the first (+0) or not (+1), the last (+2) or not.
inline constexpr std::size_t backward_slots = 4;
constexpr std::size_t slot_of(bool first, bool last) { return (first ? 0U : 1U) + (last ? 2U : 0U); }
constexpr bool is_last(std::size_t slot) { return slot >= slot_of(true, true); }

class StageWork {
 public:
  StageWork(ProgramTable& table, MemoryTable& memory, Range range, const Asked& asked);
  // The same steps as `alike` has, asked for something else in how gradients are exchanged alone: in their sums and
  // copies.
  StageWork(const StageWork& alike, const Asked& asked);

  [[nodiscard]] Range range() const { return range_; }
  [[nodiscard]] const Asked& asked() const { return asked_; }
  [[nodiscard]] bool tied(const Parameter& parameter) const;  // do several stages hold it?
  [[nodiscard]] bool exchanged(const Parameter& parameter) const;
  // What the program adds this use's gradient to is made in a later stage, which has a copy of its own.
  [[nodiscard]] bool added_elsewhere(const Use& use) const { return use.after > range_.end; }

  [[nodiscard]] const Run& forward() const { return forward_; }
  [[nodiscard]] const Run& input() const { return input_; }
  [[nodiscard]] const Run& backward(std::size_t slot) const { return backward_[slot]; }
  // Of what runs again, bytes of a micro-batch that lie outside between its passes; those of which some do.
  struct Outside {
    Segment segment;
    std::int64_t bytes = 0;
  };
  [[nodiscard]] const std::vector<Outside>& outside() const { return outside_; }
  // All of a step of so many micro-batches that comes before its last backward, of one stage alone.
  [[nodiscard]] Run before_last(std::int64_t micro_batches) const;
  // The last micro-batch's backward, which messages go beside; of the `first`, if it is that, too.
  struct LastBackward {
    std::vector<double> done_by;     // compute done when each step's is
    std::vector<Stretch> stretches;  // empty where nothing is exchanged between its operations
  };
  [[nodiscard]] const LastBackward& last_backward(bool first) const;  // worked out when it is first asked for
  // For how long exchanges keep the wires busy: forward; of backward, or of its first part.
  [[nodiscard]] const WireTime& wires_forward() const { return wires_forward_; }
  [[nodiscard]] const WireTime& wires_backward() const { return wires_backward_; }
  [[nodiscard]] double alone() const { return alone_; }  // kernels by themselves, of a micro-batch

  // Bytes, as StageForm has them, without what is gathered; of weights those that it reads.
  [[nodiscard]] double weights() const { return weights_; }
  [[nodiscard]] double gradients() const { return gradients_; }
  [[nodiscard]] double kept() const { return kept_; }
  [[nodiscard]] double later() const { return later_; }
  [[nodiscard]] double pass() const { return pass_; }
  [[nodiscard]] double pass_and_gradients() const { return pass_and_gradients_; }
  // The same where a gradient goes into a bucket, and is gone, as soon as it is complete.
  [[nodiscard]] double pass_and_own_gradients() const { return pass_and_own_gradients_; }

  // Calls begun(step), then task(seconds, launches) or exchange(Exchanged) for each thing the device does for it, then
  // done(step), in the pass's order. The host launches an exchange as it does a kernel.
  void each_task(const StagePass& pass, auto&& task, auto&& exchange, auto&& begun, auto&& done) const;

 private:
  // What a step's backward runs: in every pass; in all but the first; in the last.
  struct Own {
    Kernels kernels, sums, copies;
    [[nodiscard]] Kernels in(bool first, bool last) const {
      Kernels all = kernels;
      if (!first) all.add(sums);
      if (last) all.add(copies);
      return all;
    }
  };
  // Calls visit(step) for those made again for its sake.
  void each_again(std::size_t step, auto&& visit) const;
  void forward_of(std::size_t step, auto&& task, auto&& exchange) const;
  // As each_task(), with the step's own kernels apart: own(Own) instead of a task.
  void backward(bool inputs, bool weights, auto&& task, auto&& exchange, auto&& own, auto&& begun, auto&& done) const;
  [[nodiscard]] Run run(const StagePass& pass, WireTime& wires) const;
  void run_backward();
  void add_memory(MemoryTable& memory);

  const ProgramTable& table_;
  const std::vector<Row>& rows_;
  Range range_;
  Asked asked_;
  double dispatch_, bare_;                  // of launches of operations; of others, as a share of it
  std::vector<Segment> segments_;           // that run again
  std::vector<Outside> outside_;            // of these
  std::vector<MadeAgain::Repeated> again_;  // ascending in readers
  Run forward_, input_;
  std::array<Run, backward_slots> backward_;
  mutable std::array<std::optional<LastBackward>, 2> last_backward_;  // of the first, or not
  WireTime wires_forward_{}, wires_backward_{};
  double alone_ = 0, weights_ = 0, gradients_ = 0, kept_ = 0, later_ = 0, pass_ = 0, pass_and_gradients_ = 0,
         pass_and_own_gradients_ = 0;
};

void StageWork::each_again(std::size_t step, auto&& visit) const {
  for (auto one = std::ranges::lower_bound(again_, step, {}, &MadeAgain::Repeated::reader);
       one != again_.end() && one->reader == step; ++one)
    visit(one->step);
}

void StageWork::forward_of(std::size_t step, auto&& task, auto&& exchange) const {
  each_again(step, [&](std::size_t again) { forward_of(again, task, exchange); });
  if (!asked_.alone && !table_.made_again().runs(step, range_.end)) return;
  const Row& row = rows_[step];
  if (row.exchange_forward.sent) exchange(row.forward_in(range_.begin, range_.end));
  if (row.forward.launches > 0) task(row.forward.seconds, row.forward.launches);
}

void StageWork::each_task(const StagePass& pass, auto&& task, auto&& exchange, auto&& begun, auto&& done) const {
  if (!pass.forward) {
    const auto all = [&](const Own& own) {
      const Kernels sum = own.in(pass.first, pass.last);
      if (sum.launches > 0) task(sum.seconds, sum.launches);
    };
    return backward(pass.inputs, pass.weights, task, exchange, all, begun, done);
  }
  for (std::size_t i = range_.begin; i < range_.end; ++i) {
    begun(i);
    forward_of(i, task, exchange);
    done(i);
  }
}

void StageWork::backward(bool inputs, bool weights, auto&& task, auto&& exchange, auto&& own, auto&& begun,
                         auto&& done) const {
  auto segment = segments_.rbegin();
  for (std::size_t i = range_.end; i-- > range_.begin;) {
    begun(i);
    if (segment != segments_.rend() && segment->end == i + 1) {
      for (std::size_t s = segment->begin; inputs && s < segment->end; ++s) forward_of(s, task, exchange);
      ++segment;
    }
    const Row& row = rows_[i];
    if (inputs && row.exchange_backward.sent) exchange(row.backward_in(range_.end));
    Own of;
    if (inputs) of.kernels.add(row.backward);
    if (weights) of.kernels.add(row.backward_weight);
    each_again(i, [&](std::size_t again) {
      if (inputs) of.kernels.add(rows_[again].backward);
      if (weights) of.kernels.add(rows_[again].backward_weight);
    });
    for (std::size_t u = table_.uses_from(i + 1); u < table_.uses_from(i); ++u) {
      const Use& use = table_.uses()[u];
      const Parameter& parameter = table_.parameters()[use.parameter];
      if (inputs && added_elsewhere(use)) of.kernels.add({-parameter.sum, -bare_});
      if (!weights || use.before > range_.begin) continue;
      const bool sent = exchanged(parameter);
      if (parameter.cast > 0)
        of.kernels.add({parameter.cast, bare_});
      else if (!sent || !asked_.each)
        of.sums.add({parameter.sum, bare_});
      if (sent && !asked_.in_buckets) (asked_.each ? of.kernels : of.copies).add({parameter.copy, bare_});
    }
    own(of);
    done(i);
  }
}

// The stages of one program that were asked for, by content.
class StageWorks {
 public:
  // Both must outlive it.
  StageWorks(ProgramTable& table, MemoryTable& memory) : table_(table), memory_(memory) {}
  // Good as long as this. `content`: the range's.
  StageWork& of(std::uint64_t content, Range range, const Asked& asked);

 private:
  struct Key {
    std::uint64_t content = 0;
    std::size_t length = 0;
    Asked asked;
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    std::size_t operator()(const Key& key) const;
  };

  ProgramTable& table_;
  MemoryTable& memory_;
  std::unordered_map<Key, std::unique_ptr<StageWork>, HashKey> works_;
  std::unordered_map<Key, const StageWork*, HashKey> alike_;  // however gradients are exchanged: the last made anew
};

}  // namespace sibyl::closed
