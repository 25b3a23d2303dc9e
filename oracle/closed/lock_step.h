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
#include <span>
#include <vector>

#include "oracle/closed/pass_rows.h"

namespace sibyl::closed {

class LockStep {
 public:
  struct Order {
    int micro_batches = 1;
    bool forward_first = false;  // all passes
    bool split = false;
    bool sharing = false;  // wires; else what is said of these counts for nothing
  };

  void begin(std::size_t coordinates, const Order& order);
  void set_stage(std::size_t coordinate, const StageFacts& facts);
  [[nodiscard]] CoordinateState state(std::size_t coordinate) const;
  void set_state(std::size_t coordinate, const CoordinateState& state);

  [[nodiscard]] int ticks() const { return first_backward_ + 2 * (order_.micro_batches - 1) + 1; }
  [[nodiscard]] int last_forward() const { return 2 * (order_.micro_batches - 1); }  // of the first coordinate
  [[nodiscard]] static int ticks_of(int passes) { return 2 * passes; }               // of a coordinate, each way

  // All passes of a tick but those of the first and last micro-batch, and the one before the first one of weights:
  // these are given back.
  std::span<const SinglePass> go(int tick);

 private:
  // Of the even, or the odd coordinates. What is sent has one element more: nothing comes from outside.
  struct Row {
    std::vector<double> ready, forward, backward, weights;
    UntilByWire until;
    PassRow forwards, backwards, first_backwards;
    MessageRow sent_forward, sent_backward;
  };
  // Those from `first` to `last` that are even, or odd; maybe none.
  struct Stretch {
    std::size_t begin = 0, count = 0;  // in their row
  };
  static Stretch stretch(int first, int last, int odd);
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
