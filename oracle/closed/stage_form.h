// One stage of a pipeline by formula: what its turns take, what follows them, and its memory.
//
// What it computes is a StageWork; here is what a group of replicas adds to that: messages, by closed_streams()
// (simulate/streams.h), and by run_streams() where parameters are gathered before use (ZeRO 3), every micro-batch's
// gradients are reduced, buckets are compressed, something lies outside the device or the host holds the device up;
// updates; and its share of the state.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "oracle/closed/replicas.h"
#include "oracle/closed/stage_updates.h"
#include "oracle/closed/stage_work.h"
#include "oracle/simulate/streams.h"

namespace sibyl::closed {

// Seconds; bytes.
struct StageForm {
  struct Turns {
    double time = 0;
    double messages = 0;  // from its beginning until its last message has ended; 0 without any
  };
  Turns forward, input;
  std::array<Turns, backward_slots> backward;  // whole, or its second part; by slot_of()
  TurnWires wires_forward{}, wires_backward{};  // of backward, or of its first part
  double messages = 0;                          // of gradients, each by itself
  WireTime wires_messages{};                    // for how long these keep the wires busy
  double tail = 0;                              // once all messages are there: copies back, updates, gathers
  double norm = 0;                              // of that: until the gradients' norm over all stages can be summed
  double alone = 0, alone_once = 0;            // kernels by themselves: of a micro-batch, of updates

  double state = 0;      // weights, optimizer, buffers of messages
  double gradients = 0;  // of parameters
  double kept = 0;       // by one micro-batch between its passes
  double later = 0;      // by one micro-batch between the two parts of its backward
  double pass = 0;       // at most in one micro-batch's backward, of what it keeps and what it works on
  double pass_and_gradients =
      0;  // the same with the gradients that are there by then: where there is one micro-batch alone
  double update = 0;  // at most while it updates, beside state and gradients
};

// What brings a unit of parameters together: the rank's part comes to the device, if it lies outside, is copied into
// it, and sent to the others. Seconds.
struct Gathering {
  Replicas::Sent sent;
  double copy = 0;
  std::optional<double> brought = {};
};

class StageFormula {
 public:
  StageFormula(ProgramTable& table, UpdatePrices& updates, Replicas& replicas, Slowdown slowdown);

  StageForm stage(const StageWork& work);
  // No more than that in any respect, whatever is exchanged in which buckets and where replicas lie: without messages,
  // buffers and updates. As quick as a sum over parameters.
  [[nodiscard]] StageForm least(const StageWork& work) const;
  // Closer to it, where parameters are gathered before use: a pass takes no less than they do, one after the other. All
  // of stage() but turns and messages.
  StageForm least_of_gathering(const StageWork& work);
  [[nodiscard]] bool gathers() const;
  // Are every micro-batch's gradients exchanged? Fails where that cannot be, as make_plan() does.
  [[nodiscard]] Result<bool> reduces_each() const;
  [[nodiscard]] double least_step(const StageWork& work, std::int64_t micro_batches) const;  // no more than step()
  // Where gradients are clipped: of the message that sums their norm over all ranks that hold different ones, seconds.
  [[nodiscard]] std::optional<double> clip_norm() const { return clip_norm_; }
  // The whole of a step of one stage alone, before its tail: the host runs ahead from one turn into the next.
  StageForm::Turns step(const StageWork& work, std::int64_t micro_batches);

 private:
  struct Message {
    Replicas::Sent sent_as;
    std::size_t step = 0;  // it is complete when backward has done this step
    bool overlapped = true;
    std::size_t sent = 0;  // as soon as backward has done this step: those before it in its group are complete, too
  };
  struct Bucket {
    std::int64_t elements = 0;
    DType dtype = DType::f32, summed = DType::f32;  // of parameters; of their gradients
    std::size_t step = 0;  // whose backward completes it
    std::size_t stretch = 0;
    std::size_t closed = open;  // the number of those closed before
    std::vector<std::int64_t> of_each = {};  // elements of its parameters, where these are told apart
    static constexpr std::size_t open = static_cast<std::size_t>(-1);
  };
  // Parameters, and the steps that complete their gradients.
  using Arrivals = std::vector<std::pair<std::size_t, std::size_t>>;
  // Parameters whose gradients are summed over the same axes.
  struct Summed {
    std::vector<MeshAxis> axes;
    int parts = 1;  // among which their state is shared out
    Arrivals arrivals;
  };

  [[nodiscard]] double sum_norm();
  void prepare(const StageWork& work);  // once for several questions about one stage
  void add_group(const Summed& summed);
  [[nodiscard]] std::vector<Bucket> in_turn(const Arrivals& arrivals) const;
  [[nodiscard]] std::vector<Bucket> by_unit(const Arrivals& arrivals);
  void find_stretches();
  void add_whole(const Use& use);
  [[nodiscard]] StageUpdates::Order order_of(const Use& use) const;
  [[nodiscard]] bool on_cpu() const;
  [[nodiscard]] double part_copy_seconds(std::int64_t elements, DType dtype) const;
  void find_outside();
  void add_memory(StageForm& form) const;
  // Bytes of units at most at once, forward, or backward.
  [[nodiscard]] double gathered(bool forward) const;
  void add_tail(StageForm& form);
  void add_turns(StageForm& form);
  void add_times(StageForm& form, const StageWork& work) const;  // of turns by themselves
  [[nodiscard]] TurnWires wires(const WireTime& exchanges, const StagePass& pass, const Run& run, double time);

  StageForm::Turns turn(const StagePass& pass, const Run& run);
  // A pass behind others that have no messages, from where those begin.
  StageForm::Turns behind(const Run& others, const StagePass& pass, const Run& run);
  // By formula: all of them, and the messages of the last one.
  StageForm::Turns with_messages(const Run& others, const StagePass& last, const Run& all);
  // Messages and kernels event by event; these one by one where the host holds them up. `shared`: gathers and exchanges
  // have half of that wire.
  StageForm::Turns streams(const Run& others, std::span<const StagePass> passes, bool one_by_one,
                           std::optional<std::size_t> shared = {});
  // A step of a stage alone that gathers its parameters, reduces every micro-batch's gradients, or keeps something
  // outside.
  StageForm::Turns event_by_event(std::int64_t micro_batches, bool one_by_one);

  ProgramTable& table_;
  Replicas& replicas_;
  Slowdown slowdown_;
  double dispatch_, bare_;  // of launches of operations; of others, as a share of it
  CopyPrices copies_;
  StageUpdates updates_;            // of the stage at hand
  std::vector<Summed> summed_;      // by ProgramTable::summed_over()
  std::vector<std::size_t> order_;  // of these, in which they are sent
  std::optional<double> clip_norm_;
  // Of the stage at hand:
  const StageWork* work_ = nullptr;
  std::vector<Message> messages_;
  std::vector<Segment> stretches_;  // of steps that share a bucket where parameters are gathered before use
  struct Unit {
    Segment steps;
    Gathering gather;
    double bytes = 0, part = 0;  // of which: the rank's
  };
  std::vector<Unit> units_;          // in order of their first step
  std::vector<std::size_t> by_end_;  // these, in order of their last step
  struct Outside {
    Segment steps;
    double out = 0, in = 0;
  };
  std::vector<Outside> outside_;  // what blocks keep there
  bool sums_norms_ = false;       // of each parameter, over ranks
  // The kernels that compress a bucket, once backward has done this step, which completes it; the last step first.
  struct Compressed {
    std::size_t step = 0;
    Kernels kernels;
  };
  std::vector<Compressed> compressed_;
  Kernels copies_back_;  // with what decompresses
  double compression_alone_ = 0;
  double gathers_ = 0;
  double weights_ = 0, buffers_ = 0;
  bool freed_ = false;  // gradients, once they are in their bucket
  double unsent_ = 0;   // bytes of gradients that are summed over no ranks
  Kernels part_sums_;   // of two micro-batches' parts
  std::vector<ReadyMessage> ready_;
};

}  // namespace sibyl::closed
