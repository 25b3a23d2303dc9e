#include "oracle/closed/lock_step.h"

#include <algorithm>

namespace sibyl::closed {

// Plain loops over arrays that do not overlap, which compilers turn into vector instructions.
void pass_all(std::size_t count, double* __restrict ready, const double* __restrict arrived, double* __restrict sent,
              const double* __restrict times, const double* __restrict sends) {
  for (std::size_t i = 0; i < count; ++i) {
    const double own = ready[i], others = arrived[i], channel = sent[i];
    const double done = (own < others ? others : own) + times[i];
    ready[i] = done;
    sent[i] = (channel < done ? done : channel) + sends[i];
  }
}

namespace {

void add_all(std::size_t count, double* __restrict to, const double* __restrict times) {
  for (std::size_t i = 0; i < count; ++i) to[i] += times[i];
}

}  // namespace

void LockStep::begin(std::size_t coordinates, const Order& order) {
  coordinates_ = static_cast<int>(coordinates);
  order_ = order;
  first_backward_ = 2 * coordinates_ - 1;
  if (order.forward_first) first_backward_ += 2 * (order.micro_batches - 1);
  for (std::size_t odd = 0; odd < rows_.size(); ++odd) {
    Row& row = rows_[odd];
    const std::size_t count = (coordinates + 1 - odd) / 2;
    for (auto* values : {&row.ready, &row.forward_times, &row.forward_sends, &row.backward_times, &row.backward_sends,
                         &row.weight_times})
      values->resize(count);
    row.forward.assign(count + 1, 0.0);   // the first of which comes from nowhere
    row.backward.assign(count + 1, 0.0);  // the last
  }
}

void LockStep::set_times(std::size_t coordinate, const Times& times) {
  Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  row.forward_times[at] = times.forward;
  row.forward_sends[at] = times.send_forward;
  row.backward_times[at] = times.backward;
  row.backward_sends[at] = times.send_backward;
  row.weight_times[at] = times.weights;
}

LockStep::State LockStep::state(std::size_t coordinate) const {
  const Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  return {row.ready[at], row.forward[at + 1], row.backward[at]};
}

void LockStep::set_state(std::size_t coordinate, const State& state) {
  Row& row = rows_[coordinate % 2];
  const std::size_t at = coordinate / 2;
  row.ready[at] = state.ready;
  row.forward[at + 1] = state.forward;
  row.backward[at] = state.backward;
}

std::span<const LockStep::Single> LockStep::go(int tick) {
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

void LockStep::forward(int tick) {
  const int odd = tick & 1, first = std::max(0, tick - last_forward()), last = std::min(tick, coordinates_ - 1);
  const auto [begin, count] = stretch(first, last, odd);
  Row& row = rows_[static_cast<std::size_t>(odd)];
  const Row& before = rows_[static_cast<std::size_t>(1 - odd)];  // of an even one the one before is a place lower
  pass_all(count, row.ready.data() + begin, before.forward.data() + begin + odd, row.forward.data() + begin + 1,
           row.forward_times.data() + begin, row.forward_sends.data() + begin);
}

// Coordinate c goes backward with micro-batch (since + c) / 2, and in zero-bubble's order its weights follow, of the
// micro-batch c before that: from coordinate `since` on down.
void LockStep::backward(int since) {
  single_count_ = 0;
  const int odd = since & 1, of_first = -since, of_last = last_forward() - since;
  const int first = std::max(0, of_first + 2), last = std::min(coordinates_ - 1, of_last - 2);
  if (order_.split) {
    backward(first, std::min(last, since - 2), odd, true);
    backward(std::max(first, since + 2), last, odd, false);
    if (since >= first && since <= last) add_single(since, since);
  } else {
    backward(first, last, odd, false);
  }
  add_single(of_first, 0);
  if (of_last != of_first) add_single(of_last, order_.micro_batches - 1);
}

void LockStep::backward(int first, int last, int odd, bool weights) {
  const auto [begin, count] = stretch(first, last, odd);
  Row& row = rows_[static_cast<std::size_t>(odd)];
  const Row& after = rows_[static_cast<std::size_t>(1 - odd)];  // of an odd one the one after is a place higher
  pass_all(count, row.ready.data() + begin, after.backward.data() + begin + odd, row.backward.data() + begin,
           row.backward_times.data() + begin, row.backward_sends.data() + begin);
  if (weights) add_all(count, row.ready.data() + begin, row.weight_times.data() + begin);
}

void LockStep::add_single(int coordinate, int micro_batch) {
  if (coordinate < 0 || coordinate >= coordinates_) return;
  const int odd = coordinate & 1;
  const Row& after = rows_[static_cast<std::size_t>(1 - odd)];
  singles_[single_count_++] = {static_cast<std::size_t>(coordinate), static_cast<std::size_t>(micro_batch),
                               after.backward[static_cast<std::size_t>(coordinate / 2 + odd)]};
}

}  // namespace sibyl::closed
