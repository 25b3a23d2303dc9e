// A pipeline's schedule in time where every coordinate has one stage: most of the passes that schedule_form.h walks,
// many at once (pass_rows.h).
//
// Passes lie on ticks, such that what a pass waits for was done the tick before. With micro-batch n coordinate c goes
// forward in tick c + 2 n and backward in tick 2 n + k - c, where k is odd. Of p coordinates and m micro-batches,
// k = 2 p - 1 puts the pass forward of j before the one backward of n where j <= n + p - 1 - c: 1F1B's order, and
// zero-bubble's, whose weights follow in the tick of a pass backward. k = 2 (p + m) - 3 puts all passes forward before
// all backward: GPipe's. In a tick either the even coordinates go forward and the odd ones backward, or the other way
// round, so even and odd ones lie in rows of their own.
#pragma once

#include <array>
#include <cstddef>

#include "oracle/closed/pass_rows.h"

namespace sibyl::closed {

struct Ticks;

class LockStep {
 public:
  struct Order {
    int micro_batches = 1;
    bool forward_first = false;  // all passes
    bool split = false;
    bool sharing = false;  // wires; else what is said of these counts for nothing
    bool within = true;    // of these some inside nodes
  };

  void begin(std::size_t coordinates, const Order& order);
  void set_stage(std::size_t coordinate, const StageFacts& facts);  // where wires are shared
  void set_times(std::size_t coordinate, const TimesAlone& times);  // where none are
  [[nodiscard]] CoordinateState state(std::size_t coordinate) const;
  void set_state(std::size_t coordinate, const CoordinateState& state);

  [[nodiscard]] int ticks() const { return first_backward_ + 2 * (order_.micro_batches - 1) + 1; }
  [[nodiscard]] int last_forward() const { return 2 * (order_.micro_batches - 1); }  // of the first coordinate
  [[nodiscard]] static int ticks_of(int passes) { return 2 * passes; }               // of a coordinate, each way

  // All passes from `tick` on, up to a tick that has single ones, or to `last`; where wires are shared, of that tick.
  // Single ones are those backward behind which a coordinate exchanges its gradients. Where wires are shared they are
  // those of the first and last micro-batch, and the one before the first one of weights.
  Reached go(int tick, int last);

 private:
  // Of the even, or the odd coordinates.
  struct Row {
    AlignedValues ready;
    AlignedValues forward, backward;  // what was sent; one element more than coordinates: nothing comes from outside
    AlignedValues weights;
    // Where wires are shared:
    UntilByWire until;
    PassRow forwards, backwards, first_backwards;
    MessageRow sent_forward, sent_backward;
    // Where none are. What a pass backward and one of weights take changes behind the first one, and before that one of
    // weights takes no time: `backward_time` and `weights` have what it is at the moment.
    AlignedValues forward_time, backward_time, forward_alone, backward_alone;
    AlignedValues later_backward, first_weights, later_weights;
  };
  // In `forward` the first coordinate comes behind so many elements, the last of which is the one from outside: rows of
  // what is written together begin with a cache line.
  static constexpr std::size_t front = 8;
  // Those from `first` to `last` that are even, or odd; maybe none.
  struct Stretch {
    std::size_t begin = 0, count = 0;  // in their row
  };
  static Stretch stretch(int first, int last, int odd);
  [[nodiscard]] Ticks in_ticks();
  // Where wires are shared:
  void forward(int tick);
  void forward(int first, int last, int odd, PassRow Row::*next);
  void backward(int since);  // the tick in which the first coordinate begins
  void backward(int first, int last, int odd, bool goes_on);
  void add_single(int coordinate, int micro_batch);

  std::array<Row, 2> rows_;
  PassRow::Losses nothing_;  // is lost
  Order order_;
  int coordinates_ = 1, first_backward_ = 1;  // k
  std::array<SinglePass, 3> singles_;
  std::size_t single_count_ = 0;
};

}  // namespace sibyl::closed
