// One stage's turns, allocation by allocation: who holds which storage, and until when (footprint.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "models/training/training.h"
#include "oracle/cost/price.h"
#include "oracle/memory/ledger.h"
#include "oracle/plan/plan.h"

namespace sibyl {

class StepWalk {
 public:
  // Over so many backward turns, of which the last one's gradients are exchanged. `reuse`, if there is one, hears what
  // each kernel touches.
  StepWalk(const Stage& stage, const PricedStage& priced, const Strategy& strategy, const Device& device,
           Ledger& ledger, int backward_turns, Reuse* reuse = nullptr);

  void take_static();           // what is there before the step and stays, this step's batch with it
  void take(const Turn& turn);  // each turn, in the order of the schedule
  void update();

 private:
  using What = MemoryOwner::What;
  static constexpr std::size_t none = Storages::none;  // of anything that has a number
  void update_blocks();
  // Storages of a micro-batch that is on its way: what autograd keeps, by step; inputs of segments that run again; what
  // the rank itself holds until backward.
  struct Held {
    std::vector<std::vector<std::size_t>> saved, segments;
    std::vector<std::size_t> own;
  };
  // What is asked of a step in every pass over it.
  struct StepFacts {
    TrainingRule rule;
    std::vector<LocalTensorId> inputs, outputs;
    std::vector<LocalTensorId> gradients;  // of its operands, as each_gradient() tells them
    std::uint32_t passed_through = 0;      // operands whose gradient is the incoming one
    std::uint32_t met = 0;                 // operands that other operations of the same graph give a gradient, too
  };
  // What several operations of one graph give a parameter waits for the last of them, beside the parameter's gradient.
  struct Meeting {
    int of = 0, to_come = 0;
    std::size_t sum = Storages::none;  // of those that have come
  };
  [[nodiscard]] static StepFacts facts_of(const Stage& stage, const Step& step, Backend backend);
  // Of a segment that runs again.
  struct SegmentFacts {
    std::vector<LocalTensorId> inputs, outputs;
  };
  Held& held() { return *held_now_; }
  void begin_micro_batch();
  void end_micro_batch();
  [[nodiscard]] double bytes_of(LocalTensorId id) const { return bytes_[id.index()]; }
  [[nodiscard]] double gradient_bytes(LocalTensorId parameter) const;
  // Of a tensor's gradients as they are summed; of what is then added to an earlier sum, as it was made.
  [[nodiscard]] double sum_bytes(LocalTensorId id) const;
  [[nodiscard]] MemoryOwner owner(MemoryOwner::What what, std::size_t index) const { return {what, &stage_, index}; }
  [[nodiscard]] MemoryOwner owner(MemoryOwner::What what, LocalTensorId id) const { return owner(what, id.index()); }
  std::size_t allocate(double bytes, MemoryKind kind, const MemoryOwner& whose) {
    return storages_.allocate(bytes, kind, whose);
  }
  void enter(Turn::Kind kind, std::size_t step) {
    ledger_.enter({StepPlace::What::pass, &stage_, kind, micro_batch_, step});
  }
  void hold(std::size_t storage) { storages_.hold(storage); }
  void release(std::size_t storage) { storages_.release(storage); }

  void with_workspace(const std::optional<std::size_t>& kernel, auto&& body) {
    const double extra = kernel ? priced_.prices[*kernel].estimate.workspace.value() : 0;
    body();
    if (extra <= 0) return;
    const MemoryOwner whose = owner(MemoryOwner::What::workspace, *kernel);
    ledger_.take(MemoryKind::workspace, extra, whose);
    ledger_.give(MemoryKind::workspace, extra, whose);
  }

  // Forward.
  void forward();
  void receive();
  void keep(LocalTensorId id);
  void hand_on();
  [[nodiscard]] bool is_sent(LocalTensorId id) const;
  [[nodiscard]] bool is_received(LocalTensorId id) const;
  [[nodiscard]] bool dies(LocalTensorId id) const;
  void run(std::size_t i, std::vector<int>& uses, bool saves);
  void produce(const Compute& compute, const TrainingRule& rule);
  void save(const Compute& compute, std::size_t step);
  // What is not made in place is written anew. Nothing is kept for backward. `stays`: what it reads must stay as it is.
  void move(const Exchange& exchange, bool stays);
  void pack(const Exchange& exchange, const Transfer& transfer, LocalTensorId from, LocalTensorId to,
            bool stays = false);
  // Segments that run again, and units of parameters that are gathered.
  void keep_inputs(std::size_t segment);
  [[nodiscard]] bool lies_outside(std::size_t segment, LocalTensorId id) const;
  void leave_inputs(std::size_t segment);
  void bring_before(std::size_t segment);
  void replay(std::size_t segment);
  void end_segment(std::size_t segment);
  void bring(std::size_t unit);
  void gather(std::size_t unit);
  [[nodiscard]] double unit_bytes(std::size_t unit) const;
  [[nodiscard]] double own_part(std::size_t unit) const;
  void enter_unit(std::size_t unit, bool forwards);
  void leave(std::size_t unit);

  // What is heard by `reuse_` (step_walk_touches.cpp).
  void touch(LocalTensorId id, Reuse::Warm warm = Reuse::Warm::no);  // a tensor's value
  void touch_gradient(LocalTensorId id, Reuse::Warm warm = Reuse::Warm::no);
  void touch_storage(std::size_t storage, Reuse::Warm warm = Reuse::Warm::no);
  void begin_touching(const std::optional<std::size_t>& kernel);
  void touch_forward(std::size_t step);
  void touch_backward(std::size_t step, std::size_t incoming, std::uint32_t mask,
                      const std::optional<std::size_t>& kernel);
  void touch_moved_back(std::size_t step);
  void touch_update();

  // Backward.
  void backward(Turn::Kind kind, bool last);
  void receive_gradients();
  void send_gradients();
  void backward(std::size_t i);
  void catch_up(std::size_t i);
  void let_go(std::size_t i);
  void forget_gradients(std::size_t i);
  [[nodiscard]] std::size_t incoming(const Compute& compute) const;
  void give_to_bucket(LocalTensorId id);
  void differentiate(std::size_t step, std::uint32_t mask, std::size_t incoming,
                     const std::optional<std::size_t>& kernel);
  void move_back(const Exchange& exchange);
  void receive_gradient(LocalTensorId id, std::size_t incoming, bool passed_through);
  std::size_t first_gradient(LocalTensorId id, std::size_t incoming, bool passed_through);
  void take_addend(LocalTensorId id, bool passed_through);
  void add_gradient(std::size_t& sum, LocalTensorId id, bool passed_through);
  void find_meetings();
  std::size_t& sum_of(std::size_t step, std::size_t operand);
  void met(LocalTensorId id);

  const Stage& stage_;
  const PricedStage& priced_;
  const Strategy& strategy_;
  Ledger& ledger_;
  Storages storages_;
  std::vector<StepFacts> facts_;                            // by step
  std::vector<SegmentFacts> segments_;                      // of stage_.recomputed
  std::vector<std::size_t> segment_begun_, segment_ended_;  // by position: which begins or ends there, or none
  std::vector<int> uses_, to_come_;                         // by tensor: consumers in forward, gradients in backward
  std::vector<std::size_t> storage_of_, gradient_of_;       // by LocalTensorId
  std::map<std::size_t, Meeting> meetings_;                 // by tensor
  std::vector<double> bytes_;                               // by tensor
  std::map<int, Held> held_;                                // by micro-batch
  Held* held_now_ = nullptr;                                // of the one at hand
  std::vector<Held> given_up_;                              // empty ones, to be used again
  std::vector<bool> again_;                                 // by step: it runs again before its backward
  std::vector<bool> regathered_;                            // by tensor: gathered once more for backward, not kept
  std::vector<bool> reads_kept_;                            // by step: an exchange of what its segment keeps
  std::vector<std::uint32_t> later_;                        // by step: gradients that a backward_weight turn computes
  bool linked_;                                             // one of several stages
  bool sums_apart_;                                         // of Device
  std::vector<bool> sharded_;                               // by tensor: a parameter of which ranks hold parts
  std::vector<bool> gathered_, brought_;                    // by unit; the rank's part has come from outside
  int micro_batch_ = 0;                                     // the one at hand
  int backward_turns_, backwards_ = 0;                      // in all; taken
  Reuse* reuse_;
};

}  // namespace sibyl
