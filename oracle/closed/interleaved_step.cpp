#include "oracle/closed/interleaved_step.h"

#include <algorithm>

namespace sibyl::closed {

void InterleavedStep::begin(const Order& order) {
  order_ = order;
  passes_ = order.micro_batches * order.chunks;
  const auto coordinates = static_cast<std::size_t>(order.coordinates);
  stages_.resize(coordinates * static_cast<std::size_t>(order.chunks));
  for (PassRow* passes : {&forwards_, &backwards_}) passes->resize(coordinates, order.sharing);
  for (MessageRow* messages : {&sent_forward_, &sent_backward_}) messages->resize(coordinates, order.sharing);
  for (auto* values : {&ready_, &forward_, &backward_, &arrived_}) values->resize(coordinates);
  if (!order.sharing) return;
  for (std::vector<double>& until : until_) until.resize(coordinates);
  for (auto* values : {&nothing_.share, &nothing_.most}) values->assign(coordinates, 0.0);
  for (auto* values : {&following_.share, &following_.most}) values->resize(coordinates);
}

void InterleavedStep::set_stage(std::size_t stage, const StageFacts& facts) { stages_[stage] = facts; }

CoordinateState InterleavedStep::state(std::size_t c) const {
  CoordinateState state{ready_[c], forward_[c], backward_[c]};
  for (std::size_t wire = 0; order_.sharing && wire < wire_count; ++wire) state.until[wire] = until_[wire][c];
  return state;
}

void InterleavedStep::set_state(std::size_t c, const CoordinateState& state) {
  ready_[c] = state.ready, forward_[c] = state.forward, backward_[c] = state.backward;
  for (std::size_t wire = 0; order_.sharing && wire < wire_count; ++wire) until_[wire][c] = state.until[wire];
}

std::span<const SinglePass> InterleavedStep::go(int round, double busy) {
  singles_.clear();
  if (round == 0) {
    switch_forward(0);
    switch_following(-1);
  }
  switch_backward(round);
  if (round <= last_forward() + order_.coordinates - 1) forward(round);
  switch_forward(round + 1);
  if (round - order_.lead + order_.coordinates > 0) backward(round, busy);
  return singles_;
}

StageFacts& InterleavedStep::forward_stage(int pass, int coordinate) {
  const int chunk = pass % passes_of_a_round() / order_.coordinates;
  return stages_[static_cast<std::size_t>(chunk * order_.coordinates + coordinate)];
}

StageFacts& InterleavedStep::backward_stage(int pass, int coordinate) {
  const int chunk = order_.chunks - 1 - pass % passes_of_a_round() / order_.coordinates;
  return stages_[static_cast<std::size_t>(chunk * order_.coordinates + coordinate)];
}

// The coordinate that begins a chunk in this round.
void InterleavedStep::switch_forward(int round) {
  const int coordinate = round % order_.coordinates, pass = round - coordinate;
  if (pass >= passes_) return;
  const StageFacts& stage = forward_stage(pass, coordinate);
  forwards_.set(static_cast<std::size_t>(coordinate), stage.forward, order_.sharing);
  sent_forward_.set(static_cast<std::size_t>(coordinate), stage.sent_forward, order_.sharing);
}

// The coordinate that begins a chunk in the next round, already in this one.
void InterleavedStep::switch_following(int round) {
  if (!order_.sharing) return;
  const int coordinate = (round + 1) % order_.coordinates;
  const PassFacts::Loss loss = forward_stage(round + 1 - coordinate, coordinate).forward.of_forward;
  following_.share[static_cast<std::size_t>(coordinate)] = loss.share;
  following_.most[static_cast<std::size_t>(coordinate)] = loss.most;
}

// In the first round of micro-batches the first one's pass is not as those that follow it.
void InterleavedStep::switch_backward(int round) {
  const int first = round - order_.lead, p = order_.coordinates;
  const auto set = [&](int coordinate, bool begins) {
    const int pass = first + coordinate;
    if (pass < 0 || pass >= passes_) return;
    const bool of_first_round = pass < passes_of_a_round();
    if (!begins && !of_first_round) return;
    const StageFacts& stage = backward_stage(pass, coordinate);
    const auto at = static_cast<std::size_t>(coordinate);
    backwards_.set(at, begins && of_first_round ? stage.first_backward : stage.backward, order_.sharing);
    sent_backward_.set(at, stage.sent_backward, order_.sharing);
  };
  const int begins = ((-first) % p + p) % p;
  set(begins, true);
  set((begins + 1) % p, false);
}

// Behind it comes a pass backward in the same round, or else forward in the next one.
void InterleavedStep::forward(int round) {
  const int p = order_.coordinates, first = std::max(0, round - passes_ + 1), last = std::min(p - 1, round);
  const bool around = first == 0 && round % passes_of_a_round() >= p;
  arrived_.front() = around ? forward_.back() : 0.0;  // at the first coordinate's next chunk
  std::copy(forward_.begin(), forward_.end() - 1, arrived_.begin() + 1);
  if (!order_.sharing) return forward(first, last, nothing_, 0);
  switch_following(round);
  const int turning = std::max(first, order_.lead - round);
  forward(first, std::min(last, turning - 1), following_, static_cast<std::size_t>(first));
  forward(turning, last, backwards_.of_forward, static_cast<std::size_t>(turning));
}

void InterleavedStep::forward(int first, int last, const PassRow::Losses& losses, std::size_t next) {
  if (first > last) return;
  const auto at = static_cast<std::size_t>(first);
  const Coordinates coordinates{static_cast<std::size_t>(last - first + 1), &ready_[at], &arrived_[at], &forward_[at]};
  if (!order_.sharing) return pass_all(coordinates, forwards_, sent_forward_, at);
  pass_all({coordinates, until_, at, order_.within}, forwards_, sent_forward_, at, losses, next);
}

// Behind it comes a pass forward in the next round, as long as there are any.
void InterleavedStep::backward(int round, double busy) {
  const int p = order_.coordinates, first = round - order_.lead;
  const int begin = std::max(0, -first), last = std::min(p - 1, passes_ - 1 - first);
  std::copy(backward_.begin() + 1, backward_.end(), arrived_.begin());
  const bool ends = (first + p - 1) % passes_of_a_round() < p;  // at the last coordinate's last chunk
  arrived_.back() = ends ? 0.0 : backward_.front();
  const auto add = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    singles_.push_back({at, static_cast<std::size_t>(first + i), arrived_[at]});
  };
  if (busy > 0 && std::any_of(ready_.begin() + begin, ready_.begin() + last + 1, [&](double r) { return r < busy; })) {
    for (int i = begin; i <= last; ++i) add(i);
    return;
  }
  const int going_on = std::max(begin, round + 2 - passes_);
  const auto row = [&](int from, int to) {
    backward(from, std::min(to, going_on - 1), nothing_);
    backward(std::max(from, going_on), to, forwards_.of_backward);
  };
  const int of_last = ((p - 1 - first) % p + p) % p;
  if (of_last >= begin && of_last <= last && first + of_last >= passes_ - passes_of_a_round()) {
    row(begin, of_last - 1);
    row(of_last + 1, last);
    add(of_last);
  } else {
    row(begin, last);
  }
}

void InterleavedStep::backward(int first, int last, const PassRow::Losses& losses) {
  if (first > last) return;
  const auto at = static_cast<std::size_t>(first);
  const Coordinates coordinates{static_cast<std::size_t>(last - first + 1), &ready_[at], &arrived_[at], &backward_[at]};
  if (!order_.sharing) return pass_all(coordinates, backwards_, sent_backward_, at);
  pass_all({coordinates, until_, at, order_.within}, backwards_, sent_backward_, at, losses, at);
}

}  // namespace sibyl::closed
