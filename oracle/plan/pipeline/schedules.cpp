#include "oracle/plan/pipeline/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sibyl {
namespace {

using Kind = Turn::Kind;

// One list for each coordinate, from a function that writes it.
template <class Write>
Turns by_coordinate(const PipelineShape& shape, Write write) {
  Turns turns(static_cast<std::size_t>(shape.coordinates));
  for (int i = 0; i < shape.coordinates; ++i) write(i, turns[static_cast<std::size_t>(i)]);
  return turns;
}

// `warm_up` forwards, then a backward after each further forward, then the backwards that are left.
template <class Forward, class Backward>
void one_for_one(int passes, int warm_up, Forward forward, Backward backward) {
  warm_up = std::min(warm_up, passes);
  for (int k = 0; k < warm_up; ++k) forward(k);
  for (int k = warm_up; k < passes; ++k) forward(k), backward(k - warm_up);
  for (int k = passes - warm_up; k < passes; ++k) backward(k);
}

}  // namespace

Turns gpipe(const PipelineShape& shape) {
  return by_coordinate(shape, [&](int i, std::vector<Turn>& turns) {
    one_for_one(
        shape.micro_batches, shape.micro_batches, [&](int m) { turns.push_back({Kind::forward, m, i}); },
        [&](int m) { turns.push_back({Kind::backward, m, i}); });
  });
}

Turns one_forward_one_backward(const PipelineShape& shape) {
  return by_coordinate(shape, [&](int i, std::vector<Turn>& turns) {
    one_for_one(
        shape.micro_batches, shape.coordinates - i - 1, [&](int m) { turns.push_back({Kind::forward, m, i}); },
        [&](int m) { turns.push_back({Kind::backward, m, i}); });
  });
}

// Passes go round: S micro-batches through a chunk, the same S through the next, and so on, then the next S.
Turns interleaved(const PipelineShape& shape) {
  const int coordinates = shape.coordinates, round = coordinates * shape.chunks;
  const auto micro_batch = [=](int k) { return k / round * coordinates + k % coordinates; };
  const auto chunk = [=](int k) { return k % round / coordinates; };
  return by_coordinate(shape, [&](int i, std::vector<Turn>& turns) {
    const int warm_up = (coordinates - i - 1) * 2 + (shape.chunks - 1) * coordinates;
    one_for_one(
        shape.micro_batches * shape.chunks, warm_up,
        [&](int k) { turns.push_back({Kind::forward, micro_batch(k), chunk(k) * coordinates + i}); },
        [&](int k) {
          turns.push_back({Kind::backward, micro_batch(k), (shape.chunks - 1 - chunk(k)) * coordinates + i});
        });
  });
}

Turns zero_bubble(const PipelineShape& shape) {
  return by_coordinate(shape, [&](int i, std::vector<Turn>& turns) {
    one_for_one(
        shape.micro_batches, shape.coordinates - i - 1, [&](int m) { turns.push_back({Kind::forward, m, i}); },
        [&](int m) {
          turns.push_back({Kind::backward_input, m, i});
          if (m >= i) turns.push_back({Kind::backward_weight, m - i, i});
        });
    for (int m = std::max(0, shape.micro_batches - i); m < shape.micro_batches; ++m)
      turns.push_back({Kind::backward_weight, m, i});
  });
}

Result<void> check_shape(PipelineSchedule schedule, const PipelineShape& shape) {
  const int rest = shape.micro_batches % shape.coordinates;
  if (schedule == PipelineSchedule::interleaved && rest != 0) {
    const int above = shape.micro_batches + shape.coordinates - rest;
    return fail(ErrorCode::infeasible,
                fmt::format("interleaved stages take micro-batches {} at a time, and {} are no multiple of that",
                            shape.coordinates, shape.micro_batches),
                "--micro-batches",
                above > shape.coordinates ? fmt::format("{} or {}", above - shape.coordinates, above)
                                          : fmt::format("{}", above));
  }
  return {};
}

Result<Turns> make_schedule(PipelineSchedule schedule, const PipelineShape& shape) {
  constexpr std::array table = {&gpipe, &one_forward_one_backward, &interleaved, &zero_bubble};
  SIBYL_CHECK(check_shape(schedule, shape));
  return table[static_cast<std::size_t>(schedule)](shape);
}

namespace {

// Where in the schedule each pass of each stage and micro-batch stands.
class Progress {
 public:
  Progress(int stages, int micro_batches)
      : stages_(stages), done_(static_cast<std::size_t>(stages) * static_cast<std::size_t>(micro_batches)) {}

  struct Done {
    bool forward = false, input = false, weight = false;
  };
  Done& at(int stage, int micro_batch) {
    return done_[static_cast<std::size_t>(micro_batch) * static_cast<std::size_t>(stages_) +
                 static_cast<std::size_t>(stage)];
  }

  // Has everything happened that the turn waits for?
  [[nodiscard]] bool ready(const Turn& turn) {
    const Done& own = at(turn.stage, turn.micro_batch);
    switch (turn.kind) {
      case Kind::forward: return turn.stage == 0 || at(turn.stage - 1, turn.micro_batch).forward;
      case Kind::backward:
      case Kind::backward_input:
        return own.forward && (turn.stage + 1 == stages_ || at(turn.stage + 1, turn.micro_batch).input);
      case Kind::backward_weight: return own.input;
    }
    return false;
  }

  void note(const Turn& turn) {
    Done& own = at(turn.stage, turn.micro_batch);
    if (turn.kind == Kind::forward) own.forward = true;
    if (turn.kind == Kind::backward || turn.kind == Kind::backward_input) own.input = true;
    if (turn.kind == Kind::backward || turn.kind == Kind::backward_weight) own.weight = true;
  }

 private:
  int stages_;
  std::vector<Done> done_;
};

std::string words(const Turn& turn) {
  constexpr std::array names = {"forward", "backward", "backward of inputs", "backward of weights"};
  return fmt::format("the {} of stage {}, micro-batch {}", names[static_cast<std::size_t>(turn.kind)], turn.stage,
                     turn.micro_batch);
}

int micro_batches_in(const Turns& turns) {
  int most = 0;
  for (const std::vector<Turn>& own : turns)
    for (const Turn& turn : own) most = std::max(most, turn.micro_batch + 1);
  return most;
}

// Each turn is there once and where it belongs.
Result<void> check_presence(const Turns& turns, const PipelineShape& shape) {
  const int stages = shape.coordinates * shape.chunks;
  Progress seen(stages, shape.micro_batches);
  for (std::size_t i = 0; i < turns.size(); ++i)
    for (const Turn& turn : turns[i]) {
      if (turn.stage < 0 || turn.stage >= stages || turn.micro_batch < 0 || turn.micro_batch >= shape.micro_batches)
        return fail(fmt::format("{} does not exist", words(turn)));
      if (turn.stage % shape.coordinates != static_cast<int>(i))
        return fail(fmt::format("{} is on coordinate {}", words(turn), i));
      const Progress::Done before = seen.at(turn.stage, turn.micro_batch);
      const bool again = (turn.kind == Kind::forward && before.forward) ||
                         (turn.kind != Kind::forward && turn.kind != Kind::backward_weight && before.input) ||
                         (turn.kind != Kind::forward && turn.kind != Kind::backward_input && before.weight);
      if (again) return fail(fmt::format("{} comes twice", words(turn)));
      seen.note(turn);
    }
  for (int stage = 0; stage < stages; ++stage)
    for (int m = 0; m < shape.micro_batches; ++m) {
      const Progress::Done done = seen.at(stage, m);
      if (!done.forward || !done.input || !done.weight)
        return fail(fmt::format("{} is missing", words({done.forward ? Kind::backward : Kind::forward, m, stage})));
    }
  return {};
}

}  // namespace

bool in_order(const Turns& turns, int stages, const std::function<void(const Turn&)>& visit) {
  Progress progress(stages, micro_batches_in(turns));
  std::vector<std::size_t> next(turns.size(), 0);
  bool moved = true, left = true;
  while (moved && left) {
    moved = left = false;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      for (; next[i] < turns[i].size() && progress.ready(turns[i][next[i]]); ++next[i], moved = true) {
        progress.note(turns[i][next[i]]);
        visit(turns[i][next[i]]);
      }
      left = left || next[i] < turns[i].size();
    }
  }
  return !left;
}

Result<void> check_schedule(const Turns& turns, const PipelineShape& shape) {
  if (turns.size() != static_cast<std::size_t>(shape.coordinates))
    return fail(fmt::format("{} coordinates are scheduled, and there are {}", turns.size(), shape.coordinates));
  SIBYL_CHECK(check_presence(turns, shape));
  if (in_order(turns, shape.coordinates * shape.chunks, [](const Turn&) {})) return {};
  return fail("stages wait for each other, and none can go on");
}

}  // namespace sibyl
