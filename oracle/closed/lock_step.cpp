#include "oracle/closed/lock_step.h"

#include <algorithm>

namespace sibyl::closed {

// The even or the odd coordinates where no wires are shared, as LockStep::Row has them. None of these overlap.
struct TickRow {
  int count = 0;
  double *ready = nullptr, *forward = nullptr, *backward = nullptr, *backward_time = nullptr, *weights = nullptr;
  const double *forward_time = nullptr, *forward_alone = nullptr, *backward_alone = nullptr;
  const double *later_backward = nullptr, *first_weights = nullptr, *later_weights = nullptr;
};

struct Ticks {
  std::array<TickRow, 2> rows;
  int coordinates = 1, last_forward = 0, first_backward = 1;
  bool exchange_last = true;  // gradients behind the last pass backward: it is a single one
};

namespace {

[[gnu::always_inline]] inline void forward_in_row(const TickRow& row, const double* arrived, int begin, int end) {
  double *ready = row.ready, *sent = row.forward;
  const double *time = row.forward_time, *alone = row.forward_alone;
  SIBYL_ROWS_APART
  for (int i = begin; i < end; ++i) ready[i] = pass_one(ready[i], arrived[i], time[i], alone[i], sent[i]);
}

// What is sent back does not wait for weights.
[[gnu::always_inline]] inline void backward_in_row(const TickRow& row, const double* arrived, int begin, int end) {
  double *ready = row.ready, *sent = row.backward;
  const double *time = row.backward_time, *alone = row.backward_alone, *weights = row.weights;
  SIBYL_ROWS_APART
  for (int i = begin; i < end; ++i) ready[i] = pass_one(ready[i], arrived[i], time[i], alone[i], sent[i]) + weights[i];
}

// After a tick coordinate -since has had its first pass backward, and coordinate `since` its first one of weights: the
// next one of its row has that next time. That is set a tick early, as vectors would wait for what was just written.
[[gnu::always_inline]] inline void switch_times(const TickRow& row, int since, int coordinates) {
  const int next = since + 2;
  if (since <= 0 && -since < coordinates) row.backward_time[-since / 2] = row.later_backward[-since / 2];
  if (since >= 0 && since < coordinates) row.weights[since / 2] = row.later_weights[since / 2];
  if (next >= 0 && next < coordinates) row.weights[next / 2] = row.first_weights[next / 2];
}

}  // namespace

// Coordinates from tick - last_forward to `tick` go forward, from -since to last_forward - since backward, as far as
// there are such. In the other row the coordinate before an even one is a place lower and that before an odd one at the
// same place, the one after an even one at the same and that after an odd one a place higher.
SIBYL_WIDEST_VECTORS void pass_ticks(const Ticks& ticks, int tick, int last) {
  for (; tick <= last; ++tick) {
    const int odd = tick & 1, since = tick - ticks.first_backward, of_last = ticks.last_forward - since;
    const TickRow& ahead = ticks.rows[static_cast<std::size_t>(odd)];
    const TickRow& back = ticks.rows[static_cast<std::size_t>(1 - odd)];
    forward_in_row(ahead, back.forward + (odd - 1), std::max(0, tick - ticks.last_forward) / 2,
                   std::min(tick / 2 + 1, ahead.count));
    backward_in_row(back, ahead.backward + (1 - odd), std::max(0, -since) / 2,
                    std::min(of_last / 2 + (ticks.exchange_last ? 0 : 1), back.count));
    switch_times(back, since, ticks.coordinates);
  }
}

void LockStep::begin(std::size_t coordinates, const Order& order) {
  coordinates_ = static_cast<int>(coordinates);
  order_ = order;
  first_backward_ = 2 * coordinates_ - 1;
  if (order.forward_first) first_backward_ += 2 * (order.micro_batches - 1);
  for (std::size_t odd = 0; odd < rows_.size(); ++odd) {
    Row& row = rows_[odd];
    const std::size_t count = (coordinates + 1 - odd) / 2;
    row.ready.resize(count);
    row.weights.resize(count);
    row.forward.assign(front + count, 0.0);
    row.backward.assign(count + 1, 0.0);  // the last of which comes from nowhere
    if (!order.sharing) {
      for (AlignedValues* values : {&row.forward_time, &row.backward_time, &row.forward_alone, &row.backward_alone,
                                    &row.later_backward, &row.first_weights, &row.later_weights})
        values->resize(count);
      continue;
    }
    for (PassRow* passes : {&row.forwards, &row.backwards, &row.first_backwards}) passes->resize(count, true);
    for (MessageRow* messages : {&row.sent_forward, &row.sent_backward}) messages->resize(count, true);
    for (std::vector<double>& until : row.until) until.resize(count);
  }
  if (order.sharing) nothing_.share.assign(coordinates, 0.0), nothing_.most.assign(coordinates, 0.0);
}

void LockStep::set_stage(std::size_t coordinate, const StageFacts& facts) {
  Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  row.weights[at] = facts.weights;
  row.forwards.set(at, facts.forward, true);
  row.backwards.set(at, facts.backward, true);
  row.first_backwards.set(at, facts.first_backward, true);
  row.sent_forward.set(at, facts.sent_forward, true);
  row.sent_backward.set(at, facts.sent_backward, true);
}

void LockStep::set_times(std::size_t coordinate, const TimesAlone& times) {
  Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  row.forward_time[at] = times.forward;
  row.forward_alone[at] = times.sent_forward;
  row.backward_time[at] = times.first_backward;
  row.later_backward[at] = times.backward;
  row.backward_alone[at] = times.sent_backward;
  row.weights[at] = coordinate == 0 ? times.first_weights : 0.0;  // of the others weights follow a later pass
  row.first_weights[at] = times.first_weights;
  row.later_weights[at] = times.weights;
}

CoordinateState LockStep::state(std::size_t coordinate) const {
  const Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  CoordinateState state{row.ready[at], row.forward[front + at], row.backward[at]};
  for (std::size_t wire = 0; order_.sharing && wire < wire_count; ++wire) state.until[wire] = row.until[wire][at];
  return state;
}

void LockStep::set_state(std::size_t coordinate, const CoordinateState& state) {
  Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  row.ready[at] = state.ready;
  row.forward[front + at] = state.forward;
  row.backward[at] = state.backward;
  for (std::size_t wire = 0; order_.sharing && wire < wire_count; ++wire) row.until[wire][at] = state.until[wire];
}

// Where no wires are shared, gradients are exchanged behind the last pass backward, or, as long as others put off their
// weights, behind the first coordinate's alone: then it has the last tick to itself.
Reached LockStep::go(int tick, int last) {
  single_count_ = 0;
  if (order_.sharing) {
    forward(tick);
    backward(tick - first_backward_);
    return {tick, {singles_.data(), single_count_}};
  }
  const int first_single = ticks() - (order_.split ? 1 : coordinates_);
  last = std::min(last, std::max(tick, first_single));
  pass_ticks(in_ticks(), tick, order_.split ? std::min(last, first_single - 1) : last);
  if (last >= first_single) add_single(last_forward() + first_backward_ - last, order_.micro_batches - 1);
  return {last, {singles_.data(), single_count_}};
}

Ticks LockStep::in_ticks() {
  const auto row_of = [](Row& row) {
    return TickRow{static_cast<int>(row.ready.size()),
                   row.ready.data(),
                   row.forward.data() + front,
                   row.backward.data(),
                   row.backward_time.data(),
                   row.weights.data(),
                   row.forward_time.data(),
                   row.forward_alone.data(),
                   row.backward_alone.data(),
                   row.later_backward.data(),
                   row.first_weights.data(),
                   row.later_weights.data()};
  };
  return {{row_of(rows_[0]), row_of(rows_[1])}, coordinates_, last_forward(), first_backward_, !order_.split};
}

LockStep::Stretch LockStep::stretch(int first, int last, int odd) {
  first += (first & 1) != odd ? 1 : 0;
  last -= (last & 1) != odd ? 1 : 0;
  if (first > last) return {};
  return {static_cast<std::size_t>(first / 2), static_cast<std::size_t>((last - first) / 2 + 1)};
}

// Coordinate c goes forward with micro-batch (tick - c) / 2. Behind that of p - 1 - c comes its first pass backward, or
// behind the last one, if that is sooner.
void LockStep::forward(int tick) {
  const int odd = tick & 1, ended = tick - last_forward(), last = std::min(tick, coordinates_ - 1);
  const int turning = order_.forward_first ? coordinates_ : 2 * (coordinates_ - 1) - tick;
  int first = std::max(0, ended);
  if (ended >= 0 && ended < turning && ended <= last) {
    forward(ended, ended, odd, &Row::first_backwards);
    ++first;
  }
  forward(first, std::min(last, turning - 1), odd, &Row::forwards);
  if (turning >= first && turning <= last) forward(turning, turning, odd, &Row::first_backwards);
  forward(std::max(first, turning + 1), last, odd, &Row::backwards);
}

void LockStep::forward(int first, int last, int odd, PassRow Row::*next) {
  const auto [begin, count] = stretch(first, last, odd);
  if (count == 0) return;
  Row& row = rows_[static_cast<std::size_t>(odd)];
  const Row& before = rows_[static_cast<std::size_t>(1 - odd)];  // of an even one the one before is a place lower
  const Coordinates coordinates{count, row.ready.data() + begin, before.forward.data() + (front - 1) + begin + odd,
                                row.forward.data() + front + begin};
  pass_all({coordinates, row.until, begin, order_.within}, row.forwards, row.sent_forward, begin,
           (row.*next).of_forward, begin);
}

// Coordinate c goes backward with micro-batch (since + c) / 2, and in zero-bubble's order its weights follow, of the
// micro-batch c before that: from coordinate `since` on down. Others go forward then with the micro-batch p - c later,
// as long as there are any.
void LockStep::backward(int since) {
  const int odd = since & 1, of_first = -since, of_last = last_forward() - since;
  int first = std::max(0, of_first + 2);
  const int last = std::min(coordinates_ - 1, of_last - 2);
  if (order_.split) {
    const int with_weights = std::min(last, since - 2);
    backward(first, with_weights, odd, false);
    const auto [begin, count] = stretch(first, with_weights, odd);
    Row& row = rows_[static_cast<std::size_t>(odd)];
    add_all(count, row.ready.data() + begin, row.weights.data() + begin);
    if (since >= first && since <= last) add_single(since, since);
    first = std::max(first, since + 2);
  }
  const int going_on =
      order_.forward_first ? last + 1 : std::max(first, since + 2 * (coordinates_ - order_.micro_batches) + 1);
  backward(first, std::min(last, going_on - 1), odd, false);
  backward(going_on, last, odd, true);
  add_single(of_first, 0);
  if (of_last != of_first) add_single(of_last, order_.micro_batches - 1);
}

void LockStep::backward(int first, int last, int odd, bool goes_on) {
  const auto [begin, count] = stretch(first, last, odd);
  if (count == 0) return;
  Row& row = rows_[static_cast<std::size_t>(odd)];
  const Row& after = rows_[static_cast<std::size_t>(1 - odd)];  // of an odd one the one after is a place higher
  const Coordinates coordinates{count, row.ready.data() + begin, after.backward.data() + begin + odd,
                                row.backward.data() + begin};
  const PassRow::Losses& losses = goes_on ? row.forwards.of_backward : nothing_;
  pass_all({coordinates, row.until, begin, order_.within}, row.backwards, row.sent_backward, begin, losses, begin);
}

void LockStep::add_single(int coordinate, int micro_batch) {
  if (coordinate < 0 || coordinate >= coordinates_) return;
  const int odd = coordinate & 1;
  const Row& after = rows_[static_cast<std::size_t>(1 - odd)];
  singles_[single_count_++] = {static_cast<std::size_t>(coordinate), static_cast<std::size_t>(micro_batch),
                               after.backward[static_cast<std::size_t>(coordinate / 2 + odd)]};
}

}  // namespace sibyl::closed
