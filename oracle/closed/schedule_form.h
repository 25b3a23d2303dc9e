// A pipeline's schedule in time, as schedule_walk.h has it, without what reports want: what a step takes among others.
//
// No turn is written down. Most passes are taken many at once (lock_step.h, interleaved_step.h), unless messages are
// crowded. One by one coordinates go through a schedule in step: in round e coordinate i takes its forward pass
// e - i, and then, `lead(i)` forward passes after its first one, a backward pass. Whatever a pass waits for lies in the
// round before (or earlier in this one), so that of each coordinate only the last transfer has to be known: O(passes)
// time, O(stages) memory, however many the micro-batches.
//
// Where micro-batches are many, the last ones only repeat what others did. The least and the most that a round of as
// many micro-batches as there are coordinates adds to any of them bound what all further rounds add (a schedule's walk
// is a max-plus linear map, and such a map never draws two states apart): more are walked until the two agree. Where
// messages are crowded that is no bound, and as many rounds are walked as are followed (simulate/node_wires.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "oracle/closed/interleaved_step.h"
#include "oracle/closed/lock_step.h"
#include "oracle/closed/schedule_shape.h"
#include "oracle/closed/stage_form.h"
#include "oracle/simulate/node_wires.h"
#include "oracle/simulate/successive_steps.h"

namespace sibyl::closed {

struct StageInPipeline {
  const StageForm* form = nullptr;
  double send_forward = 0, send_backward = 0;  // seconds
  WireUse forward_wire = {}, backward_wire = {};
  Passage forward_passage = {}, backward_passage = {};
  double arrives_forward = 0, arrives_backward = 0;  // bytes that its passes wait for
};

// A parameter that several stages hold.
struct TiedMessage {
  std::vector<int> stages;
  double seconds = 0;
};

// What coordinates wait for each other for once their turns are done.
struct LastMessages {
  std::vector<TiedMessage> tied = {};
  std::optional<double> clip_norm = {};  // where gradients are clipped by their norm over all stages: seconds
};

class ScheduleForm {
 public:
  struct Ends {
    double time = 0;
    std::size_t slowest = 0;  // coordinate: the last to end
    bool walked = true;       // else it takes this time at the least
  };
  // Where messages are crowded, and where several steps are walked, it takes its time: it is asked first whether a step
  // that takes this at the least is wanted, and else that is the answer.
  Ends ends(
      const ScheduleShape& shape, const std::vector<StageInPipeline>& stages, const LastMessages& last,
      const std::function<bool(double)>& wanted = [](double) { return true; });
  // No more than that, without a walk: what a coordinate runs, and what the first one waits for between its beginning
  // and its last backward.
  static double at_least(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages);
  // Of many micro-batches the last ones are not walked: by so much of the step the time may be too low.
  static constexpr double not_walked = 0.001;
  [[nodiscard]] std::size_t passes_kept() const { return passes_.capacity(); }  // all that grows with micro-batches

 private:
  // What every pass of one number is, on whichever coordinate.
  struct PassOf {
    std::uint32_t forward = 0, backward = 0;  // the stage on the first coordinate
    std::uint32_t slot = 0;                   // by slot_of()
  };

  void prepare(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages);
  void find_sends();
  Ends steady(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages, const LastMessages& last,
              const std::function<bool(double)>& wanted);
  // Do all passes run at the same times, whether coordinates begin so or as the others? True only if they do.
  [[nodiscard]] bool unnoticed(const std::vector<double>& begins, const std::vector<double>& others) const;
  // When coordinates end that begin so, in `ends_`.
  void walk_enough(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages, const LastMessages& last,
                   const std::vector<double>& begins);
  // All passes. `spaced`: from what is so many rounds of micro-batches before the last forward pass and at it,
  // `least_` and `most_` are taken.
  void walk(const ScheduleShape& shape, const std::vector<double>& begins, int spaced);
  void number_passes(const ScheduleShape& shape);
  // `apart`: passes between the states that are compared; 0: none are.
  void walk_by_rounds(int apart);  // one by one
  void walk_many_at_once(const ScheduleShape& shape, int apart);
  template <class Step, class Go>
  void walk_with(Step& step, int apart, const Go& go);
  [[nodiscard]] bool goes_many_at_once(const ScheduleShape& shape);
  // False: of what a coordinate sent over a wire it matters in which turn.
  bool find_flows();
  [[nodiscard]] TimesAlone times_of(const StageInPipeline& stage) const;
  [[nodiscard]] StageFacts facts_of(const StageInPipeline& stage, std::size_t coordinate) const;
  [[nodiscard]] std::vector<std::vector<double>> state() const;
  void compare(int rounds);
  void forward_passes(int round);
  void backward_passes(int round);
  [[nodiscard]] bool share() const;
  [[nodiscard]] LostToOthers lost_between_nodes(const ScheduleShape& shape) const;
  // Null: it takes none.
  [[nodiscard]] const StageInPipeline* forward_in(int round, std::size_t coordinate) const {
    const int pass = round - static_cast<int>(coordinate);
    if (pass < 0 || pass >= static_cast<int>(passes_.size())) return nullptr;
    return &stages_[passes_[static_cast<std::size_t>(pass)].forward + coordinate];
  }
  // The pass.
  [[nodiscard]] std::optional<std::size_t> backward_in(int round, std::size_t coordinate) const {
    const int pass = round - lead_ + (interleaved_ ? static_cast<int>(coordinate) : 0);
    if (pass < 0 || pass >= static_cast<int>(passes_.size())) return std::nullopt;
    return static_cast<std::size_t>(pass);
  }
  // Or of its first part.
  [[nodiscard]] double backward_time(const StageInPipeline& stage, std::size_t pass) const {
    return split_ ? stage.form->input.time : stage.form->backward[passes_[pass].slot].time;
  }
  struct Beside {  // what the coordinate runs next; nothing: it waits
    const TurnWires* wires = nullptr;
    double time = 0;
  };
  void send(std::size_t coordinate, const StageInPipeline& stage, bool forward, const Beside& beside);
  void interleaved_backward_passes(int first);
  void backward_pass(std::size_t coordinate, std::size_t pass, double arrival);
  void weight_pass(std::size_t coordinate, std::size_t pass);
  void put_off_weights(std::size_t coordinate);                                // of passes that are done
  void exchange(std::size_t coordinate, const StageForm& form, double alone);  // its gradients, by itself until then
  void finish(const std::vector<StageInPipeline>& stages, const LastMessages& last);

  std::span<const StageInPipeline> stages_;  // that it is asked about
  std::vector<StageSends> sends_;            // parallel to these, where messages may be crowded
  // Of the walk at hand:
  std::vector<PassOf> passes_;
  std::size_t coordinates_ = 1;
  int lead_ = 0;  // of the first coordinate; of the others less by one for each where rounds are interleaved
  bool interleaved_ = false, split_ = false, sharing_ = false, crowded_ = false;
  bool apart_ = false;                        // gradients have a wire of their own
  std::vector<double> free_, ends_;           // by coordinate: done so far; with all
  std::vector<GradientsUnderWay> gradients_;  // by coordinate
  std::vector<double> forwards_, backwards_;  // by coordinate: its last transfer there
  LostToOthers lost_;                         // where messages are crowded
  std::vector<std::array<std::size_t, 2>> sent_;  // messages, by coordinate and way; likewise
  std::vector<OnWires> wires_;                    // by coordinate: what it sends
  // As how many flows a coordinate sends over its wires (0: nothing), and which one it does each way (null: none).
  struct CoordinateFlows {
    std::array<double, wire_count> on{};
    const WireUse *forward = nullptr, *backward = nullptr;
  };
  std::vector<CoordinateFlows> flows_;
  double last_gradients_ = 0;  // that are under way are there by then
  LockStep lock_step_;
  InterleavedStep interleaved_step_;
  std::vector<std::vector<double>> before_, after_;
  std::vector<double> begins_;
  double least_ = 0, most_ = 0;  // seconds that a round adds
};

}  // namespace sibyl::closed
