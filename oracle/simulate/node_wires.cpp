#include "oracle/simulate/node_wires.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

namespace sibyl {

using Kind = Turn::Kind;

StageSends::Message sent_by(double alone, const WireUse& wire, const Passage& passage) {
  return {alone * wire.busy, alone * (1 - wire.busy), passage};
}

bool crowded(const std::vector<StageSends>& stages, std::size_t coordinates) {
  if (3 * turns_of_a_round(stages.size(), coordinates) > turns_followed) return false;
  // With messages of a twelfth of its turns a step of eight stages would grow by 1.1 % (docs/models/step.md).
  constexpr double long_enough = 1.0 / 8;
  const auto on_wire = [](const StageSends::Message& m) { return m.passage.between_nodes() ? m.wire : 0.0; };
  if (std::ranges::none_of(stages, [&](const StageSends& s) {
        return on_wire(s.forward) + on_wire(s.backward) > long_enough * s.turns;
      }))
    return false;
  using Sender = std::pair<std::size_t, bool>;  // coordinate and way: its messages follow one another
  std::map<std::pair<bool, int>, std::set<Sender>> wires;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const bool forward : {true, false}) {
      const StageSends::Message& message = forward ? stages[s].forward : stages[s].backward;
      if (on_wire(message) <= 0) continue;
      wires[{true, message.passage.out}].emplace(s % coordinates, forward);
      wires[{false, message.passage.in}].emplace(s % coordinates, forward);
    }
  return std::ranges::any_of(wires, [](const auto& wire) { return wire.second.size() > 1; });
}

namespace {

constexpr double not_sent = -1;

class Following {
 public:
  Following(const Turns& turns, const std::vector<StageSends>& stages, int micro_batches,
            const std::function<double(const Turn&)>& length)
      : turns_(turns),
        stages_(stages),
        length_(length),
        next_(turns.size(), 0),
        free_(turns.size(), 0.0),
        there_{std::vector<double>(stages.size() * static_cast<std::size_t>(micro_batches), not_sent), {}},
        senders_(2 * turns.size()) {
    there_[1] = there_[0];
    lost_.of.resize(turns.size());
    for (auto& on : on_) on.resize(turns.size());
    for (std::size_t c = 0; c < turns.size(); ++c) woken_.push_back(c);
  }

  LostToOthers run() {
    while (true) {
      while (!woken_.empty()) {
        const std::size_t c = woken_.back();
        woken_.pop_back();
        go_on(c);
      }
      if (events_.empty()) return std::move(lost_);
      const Event event = events_.top();
      events_.pop();
      if (event.version != senders_[event.sender].version) continue;
      now_ = event.time;
      event.ends ? end(event.sender) : begin(event.sender);
    }
  }

 private:
  struct Message {
    const StageSends::Message* what = nullptr;
    double ready = 0;
    std::size_t index = 0;     // of stage and micro-batch
    std::size_t receiver = 0;  // coordinate
  };
  // A coordinate's messages one way, one after the other.
  struct Sender {
    std::deque<Message> messages;  // that are not there yet
    double free = 0;               // seconds: the one before is there
    double begun = 0, since = 0;   // seconds: when the first of them set out; since when its rate is what it is
    double left = 0, rate = 1;     // seconds on the wire by itself, then; and of these in a second
    unsigned version = 0;          // of what it does next
  };
  struct Event {
    double time = 0;
    std::size_t sender = 0;
    unsigned version = 0;
    bool ends = false;
    bool operator>(const Event& other) const {
      return std::tuple(time, !ends, sender) > std::tuple(other.time, !other.ends, other.sender);
    }
  };

  [[nodiscard]] std::size_t index(int stage, int micro_batch) const {
    return static_cast<std::size_t>(micro_batch) * stages_.size() + static_cast<std::size_t>(stage);
  }

  // When what the turn waits for is there; none: that is not known yet.
  [[nodiscard]] std::optional<double> arrival(const Turn& turn) const {
    const bool forward = turn.kind == Kind::forward;
    const int from = turn.stage + (forward ? -1 : 1);
    if (turn.kind == Kind::backward_weight || from < 0 || from == static_cast<int>(stages_.size())) return 0.0;
    const double there = there_[forward ? 0 : 1][index(from, turn.micro_batch)];
    return there == not_sent ? std::nullopt : std::optional(there);
  }

  // All turns of the coordinate for which everything is there, or will be at a time that is known.
  void go_on(std::size_t c) {
    for (; next_[c] < turns_[c].size(); ++next_[c]) {
      const Turn& turn = turns_[c][next_[c]];
      const std::optional<double> there = arrival(turn);
      if (!there) return;
      free_[c] = std::max(free_[c], *there) + length_(turn);
      if (turn.kind != Kind::backward_weight) hand_over(turn, c);
    }
  }

  void hand_over(const Turn& turn, std::size_t c) {
    const bool forward = turn.kind == Kind::forward;
    const int to = turn.stage + (forward ? 1 : -1);
    if (to < 0 || to == static_cast<int>(stages_.size())) return;
    const StageSends& stage = stages_[static_cast<std::size_t>(turn.stage)];
    const Message message{forward ? &stage.forward : &stage.backward, free_[c], index(turn.stage, turn.micro_batch),
                          static_cast<std::size_t>(to) % turns_.size()};
    if (message.what->alone() > 0) {
      const std::size_t one = 2 * c + (forward ? 0 : 1);
      senders_[one].messages.push_back(message);
      if (senders_[one].messages.size() == 1) expect_begin(one);
    } else {
      there_[forward ? 0 : 1][message.index] = message.ready;
      woken_.push_back(message.receiver);
    }
  }

  void expect_begin(std::size_t one) {
    const Sender& sender = senders_[one];
    events_.push({std::max(sender.free, sender.messages.front().ready), one, sender.version, false});
  }

  void expect_end(std::size_t one) {
    Sender& sender = senders_[one];
    events_.push({now_ + std::max(0.0, sender.left) / sender.rate, one, ++sender.version, true});
  }

  void begin(std::size_t one) {
    Sender& sender = senders_[one];
    sender.begun = sender.since = now_;
    sender.left = sender.messages.front().what->wire;
    sender.rate = 1.0;
    const Passage& passage = sender.messages.front().what->passage;
    if (passage.between_nodes()) {
      for (std::vector<std::size_t>* on : wires_of(passage)) on->push_back(one);
      share(passage, one);
      sender.rate = rate_on(passage);
    }
    expect_end(one);
  }

  void end(std::size_t one) {
    Sender& sender = senders_[one];
    const Message message = sender.messages.front();
    const bool forward = one % 2 == 0;
    lost_.of[one / 2][forward ? 0 : 1].push_back(std::max(0.0, now_ - sender.begun - message.what->wire));
    sender.free = there_[forward ? 0 : 1][message.index] = now_ + message.what->rest;
    woken_.push_back(message.receiver);
    sender.messages.pop_front();
    if (message.what->passage.between_nodes()) {
      for (std::vector<std::size_t>* on : wires_of(message.what->passage)) std::erase(*on, one);
      share(message.what->passage, one);
    }
    if (!sender.messages.empty()) expect_begin(one);
  }

  std::array<std::vector<std::size_t>*, 2> wires_of(const Passage& passage) {
    return {&on_[0][static_cast<std::size_t>(passage.out)], &on_[1][static_cast<std::size_t>(passage.in)]};
  }

  double rate_on(const Passage& passage) {
    const auto [out, in] = wires_of(passage);
    return 1.0 / static_cast<double>(std::max(out->size(), in->size()));
  }

  // What else is on these wires, now that there is one message more or less.
  void share(const Passage& passage, std::size_t but) {
    for (const std::vector<std::size_t>* on : wires_of(passage))
      for (const std::size_t one : *on) {
        Sender& sender = senders_[one];
        const double rate = rate_on(sender.messages.front().what->passage);
        if (one == but || rate == sender.rate) continue;
        sender.left -= (now_ - sender.since) * sender.rate;
        sender.since = now_;
        sender.rate = rate;
        expect_end(one);
      }
  }

  const Turns& turns_;
  const std::vector<StageSends>& stages_;
  const std::function<double(const Turn&)>& length_;
  std::vector<std::size_t> next_;             // turn, by coordinate
  std::vector<double> free_;                  // by coordinate
  std::array<std::vector<double>, 2> there_;  // when a stage's message is there, by way and index()
  std::vector<Sender> senders_;               // two of each coordinate
  std::vector<std::size_t> woken_;            // coordinates
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::array<std::vector<std::vector<std::size_t>>, 2> on_;  // senders, by the wires that leave nodes, that reach them
  double now_ = 0;
  LostToOthers lost_;
};

}  // namespace

LostToOthers lost_to_others(const Turns& turns, const std::vector<StageSends>& stages, int micro_batches,
                            const std::function<double(const Turn&)>& length) {
  return Following(turns, stages, micro_batches, length).run();
}

}  // namespace sibyl
