#include "oracle/plan/pipeline/arrivals.h"

namespace sibyl {

std::vector<LocalTensorId> arriving_tensors(const Stage& stage, Pass pass) {
  std::vector<LocalTensorId> tensors;
  for (const Link& link : pass == Pass::forward ? stage.receives : stage.sends)
    if (pass == Pass::forward || link.gradient) tensors.push_back(link.tensor);
  return tensors;
}

// Of the neighbour's turns those that end with a message. (Weights' gradients go nowhere.)
Arrivals::Arrivals(const std::vector<Stage>& stages, const std::vector<std::vector<Turn>>& turns, int coordinate,
                   Pass pass) {
  const bool forward = pass == Pass::forward;
  const int coordinates = static_cast<int>(turns.size());
  const int neighbour = (coordinate + (forward ? coordinates - 1 : 1)) % coordinates;
  for (const Turn& turn : turns[static_cast<std::size_t>(neighbour)]) {
    if ((turn.kind == Turn::Kind::forward) != forward || turn.kind == Turn::Kind::backward_weight) continue;
    const int stage = turn.stage + (forward ? 1 : -1);
    if (stage < 0 || stage >= static_cast<int>(stages.size())) continue;
    if (!arriving_tensors(stages[static_cast<std::size_t>(stage)], pass).empty())
      coming_.push_back({stage, turn.micro_batch});
  }
}

Arrivals::Message Arrivals::ask() {
  pending_.insert(coming_[asked_]);
  return coming_[asked_++];
}

std::vector<Arrivals::Message> Arrivals::begin() {
  asked_ = 0;
  pending_.clear();
  if (coming_.empty()) return {};
  return {ask()};
}

// A neighbour may send in another order than its messages are wanted in.
std::vector<Arrivals::Message> Arrivals::before(const Message& wanted) {
  std::vector<Message> asked;
  while (!pending_.contains(wanted) && asked_ < coming_.size()) asked.push_back(ask());
  return asked;
}

std::vector<Arrivals::Message> Arrivals::after(const Message& taken) {
  pending_.erase(taken);
  if (!pending_.empty() || asked_ == coming_.size()) return {};
  return {ask()};
}

}  // namespace sibyl
