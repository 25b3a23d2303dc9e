#include "oracle/closed/lock_step.h"

#include <algorithm>

namespace sibyl::closed {

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
    row.forward.assign(count + 1, 0.0);   // the first of which comes from nowhere
    row.backward.assign(count + 1, 0.0);  // the last
    for (PassRow* passes : {&row.forwards, &row.backwards}) passes->resize(count, order.sharing);
    for (MessageRow* messages : {&row.sent_forward, &row.sent_backward}) messages->resize(count, order.sharing);
    if (!order.sharing) continue;
    row.first_backwards.resize(count, true);
    for (std::vector<double>& until : row.until) until.resize(count);
  }
  if (order.sharing) nothing_.share.assign(coordinates, 0.0), nothing_.most.assign(coordinates, 0.0);
}

void LockStep::set_stage(std::size_t coordinate, const StageFacts& facts) {
  Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  row.weights[at] = facts.weights;
  row.forwards.set(at, facts.forward, order_.sharing);
  row.backwards.set(at, facts.backward, order_.sharing);
  if (order_.sharing) row.first_backwards.set(at, facts.first_backward, true);
  row.sent_forward.set(at, facts.sent_forward, order_.sharing);
  row.sent_backward.set(at, facts.sent_backward, order_.sharing);
}

CoordinateState LockStep::state(std::size_t coordinate) const {
  const Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  CoordinateState state{row.ready[at], row.forward[at + 1], row.backward[at]};
  for (std::size_t wire = 0; order_.sharing && wire < wire_count; ++wire) state.until[wire] = row.until[wire][at];
  return state;
}

void LockStep::set_state(std::size_t coordinate, const CoordinateState& state) {
  Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  row.ready[at] = state.ready;
  row.forward[at + 1] = state.forward;
  row.backward[at] = state.backward;
  for (std::size_t wire = 0; order_.sharing && wire < wire_count; ++wire) row.until[wire][at] = state.until[wire];
}

std::span<const SinglePass> LockStep::go(int tick) {
  forward(tick);
  backward(tick - first_backward_);
  return {singles_.data(), single_count_};
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
  int first = std::max(0, ended);
  if (!order_.sharing) return forward(first, last, odd, &Row::forwards);
  const int turning = order_.forward_first ? coordinates_ : 2 * (coordinates_ - 1) - tick;
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
  const Coordinates coordinates{count, row.ready.data() + begin, before.forward.data() + begin + odd,
                                row.forward.data() + begin + 1};
  if (!order_.sharing) return pass_all(coordinates, row.forwards, row.sent_forward, begin);
  pass_all({coordinates, row.until, begin}, row.forwards, row.sent_forward, begin, (row.*next).of_forward, begin);
}

// Coordinate c goes backward with micro-batch (since + c) / 2, and in zero-bubble's order its weights follow, of the
// micro-batch c before that: from coordinate `since` on down. Others go forward then with the micro-batch p - c later,
// as long as there are any.
void LockStep::backward(int since) {
  single_count_ = 0;
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
  const int going_on = order_.sharing && !order_.forward_first
                           ? std::max(first, since + 2 * (coordinates_ - order_.micro_batches) + 1)
                           : last + 1;
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
  if (!order_.sharing) return pass_all(coordinates, row.backwards, row.sent_backward, begin);
  const PassRow::Losses& losses = goes_on ? row.forwards.of_backward : nothing_;
  pass_all({coordinates, row.until, begin}, row.backwards, row.sent_backward, begin, losses, begin);
}

void LockStep::add_single(int coordinate, int micro_batch) {
  if (coordinate < 0 || coordinate >= coordinates_) return;
  const int odd = coordinate & 1;
  const Row& after = rows_[static_cast<std::size_t>(1 - odd)];
  singles_[single_count_++] = {static_cast<std::size_t>(coordinate), static_cast<std::size_t>(micro_batch),
                               after.backward[static_cast<std::size_t>(coordinate / 2 + odd)]};
}

}  // namespace sibyl::closed
