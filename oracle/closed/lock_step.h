// A pipeline's schedule in time where every coordinate has one stage and nothing shares a wire: most of the passes that
// schedule_form.h walks, many at once.
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

namespace sibyl::closed {

// max(ready, arrived) + time, and from then on its result is on its way, behind the one before it: of passes that do
// not wait for each other.
void pass_all(std::size_t count, double* __restrict ready, const double* __restrict arrived, double* __restrict sent,
              const double* __restrict times, const double* __restrict sends);

class LockStep {
 public:
  // Seconds of a coordinate's turns, but for those of its first and last micro-batch.
  struct Times {
    double forward = 0, send_forward = 0, backward = 0, send_backward = 0;
    double weights = 0;  // where a backward is split into two parts
  };
  struct Order {
    int micro_batches = 1;
    bool forward_first = false;  // all passes
    bool split = false;
  };
  // When a coordinate is done so far, and its last transfers each way.
  struct State {
    double ready = 0, forward = 0, backward = 0;
  };

  void begin(std::size_t coordinates, const Order& order);
  void set_times(std::size_t coordinate, const Times& times);
  [[nodiscard]] State state(std::size_t coordinate) const;
  void set_state(std::size_t coordinate, const State& state);

  [[nodiscard]] int ticks() const { return first_backward_ + 2 * (order_.micro_batches - 1) + 1; }
  [[nodiscard]] int last_forward() const { return 2 * (order_.micro_batches - 1); }  // of the first coordinate

  // A pass backward that is not like the others: of the first or last micro-batch, or before the first one of weights.
  struct Single {
    std::size_t coordinate = 0, micro_batch = 0;
    double arrived = 0;
  };
  // All passes of a tick but these, which wait for none of those.
  std::span<const Single> go(int tick);

 private:
  // Of the even, or the odd coordinates. What is sent has one element more: nothing comes from outside.
  struct Row {
    std::vector<double> ready, forward, backward;
    std::vector<double> forward_times, forward_sends, backward_times, backward_sends, weight_times;
  };
  // Those from `first` to `last` that are even, or odd.
  struct Stretch {
    std::size_t begin = 0, count = 0;  // in their row
  };
  static Stretch stretch(int first, int last, int odd);
  void forward(int tick);
  void backward(int since);  // the tick in which the first coordinate begins
  void backward(int first, int last, int odd, bool weights);
  void add_single(int coordinate, int micro_batch);

  std::array<Row, 2> rows_;
  Order order_;
  int coordinates_ = 1, first_backward_ = 1;  // k
  std::array<Single, 3> singles_;
  std::size_t single_count_ = 0;
};

}  // namespace sibyl::closed
