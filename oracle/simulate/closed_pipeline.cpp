// A pipeline's step without walking every micro-batch. docs/pipeline.md, "Time", says why this holds.
#include <algorithm>
#include <limits>
#include <optional>

#include "oracle/plan/pipeline/schedules.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/schedule_walk.h"

namespace sibyl {
namespace {

using Kind = Turn::Kind;

// Further micro-batches pass all of a line's machines in order, each machine taking one at a time. `free`: from when on each
// machine is; then, after them. The longest way from the first micro-batch on machine h to the last on machine i stays on the
// slowest machine between for all but one.
void pass(std::vector<Seconds>& free, const std::vector<Seconds>& times, int micro_batches) {
  if (micro_batches <= 0) return;
  std::vector<Seconds> after(free.size());
  for (std::size_t h = 0; h < free.size(); ++h) {
    Seconds once, slowest;
    for (std::size_t i = h; i < free.size(); ++i) {
      once += times[i];
      slowest = std::max(slowest, times[i]);
      after[i] = std::max(after[i], free[h] + once + slowest * static_cast<double>(micro_batches - 1));
    }
  }
  free = std::move(after);
}

// All forwards along one line, devices and the links between them in turn; then all backwards along the line back. What
// waits for backward's first micro-batch has long ended its own forwards.
Seconds closed_gpipe(const std::vector<StageTimes>& stages, int micro_batches) {
  const std::size_t last = stages.size() - 1;
  std::vector<Seconds> free(2 * last + 1), times(free.size()), ends(stages.size());
  for (std::size_t s = 0; s <= last; ++s) {
    times[2 * s] = stages[s].turn(Kind::forward).total;
    if (s < last) times[2 * s + 1] = stages[s].send_forward;
  }
  pass(free, times, micro_batches);
  const Seconds turning = free.back();
  std::fill(free.begin(), free.end(), turning);
  const auto backward = [&](Place place, int passes) {
    for (std::size_t s = 0; s <= last; ++s) {
      times[2 * (last - s)] = stages[s].turn(Kind::backward, place).total;
      if (s > 0) times[2 * (last - s) + 1] = stages[s].send_backward;
    }
    pass(free, times, passes);
  };
  const Place ending{micro_batches == 1, true};
  if (micro_batches > 1) backward({true, false}, 1);
  backward({false, false}, micro_batches - 2);
  backward(ending, 1);
  for (std::size_t s = 0; s <= last; ++s) {
    const TurnTimes& turn = stages[s].turn(Kind::backward, ending);
    ends[s] = free[2 * (last - s)] + std::max(Seconds{}, turn.messages - turn.total);
  }
  ends = after_ties(stages, ends);
  const std::vector<CoordinateTail> then = tails(stages, ends);
  for (std::size_t s = 0; s <= last; ++s) ends[s] += then[s].total();
  return *std::max_element(ends.begin(), ends.end());
}

// The micro-batches after which a schedule's turns come again, and how many rounds of them are walked and left out.
struct Rounds {
  int size = 1, walked = 0, left = 0;
  int filling = 1;  // rounds in which as many micro-batches begin as there are coordinates
};

// A coordinate's turns while the pipeline is full.
struct Steady {
  const std::vector<TimedTurn>* turns;
  std::size_t begin, end;
};

// By how much a turn comes after its like, so many rounds before: the least and the most of all turns looked at.
struct Spacing {
  int rounds = 1;
  Seconds least{std::numeric_limits<double>::infinity()}, most{-std::numeric_limits<double>::infinity()};

  void take(Seconds apart) {
    least = std::min(least, apart);
    most = std::max(most, apart);
  }
};

// The last ones that are like those a round before, but for what fills the pipeline, or drains it: there passes are the
// first or the last of their stage, or wait for such.
Steady steady_turns(const std::vector<TimedTurn>& turns, std::size_t period, const Rounds& rounds) {
  const auto comes_again = [&](std::size_t at) {
    const Turn &turn = turns[at].turn, &before = turns[at - period].turn;
    return turn.kind == before.kind && turn.stage == before.stage && turn.micro_batch == before.micro_batch + rounds.size;
  };
  std::size_t end = turns.size();
  while (end > period && !comes_again(end - 1)) --end;
  std::size_t begin = end;
  while (begin > period && comes_again(begin - 1)) --begin;
  const std::size_t margin = static_cast<std::size_t>(rounds.filling) * period;
  if (end - begin + period < 2 * margin) return {&turns, end, end};
  return {&turns, begin - period + margin, end - margin};
}

// The spacing over so many turns of each coordinate; given up where it is more uneven than `allowed`.
std::optional<Spacing> spacing(const std::vector<Steady>& steady, std::size_t turns, std::size_t back, Seconds allowed) {
  Spacing found;
  for (const Steady& own : steady) {
    if (own.end - own.begin < turns + back) return std::nullopt;
    for (std::size_t at = own.end - turns; at < own.end; ++at) {
      const TimedTurn &turn = (*own.turns)[at], &before = (*own.turns)[at - back];
      found.take(turn.span.end - before.span.end);
      if (turn.sent.end.value() > 0) found.take(turn.sent.end - before.sent.end);
      if (found.most - found.least > allowed) return std::nullopt;
    }
  }
  return found;
}

// Rounds after which all turns come again so evenly that those left out are known to within `agreement` of the step.
std::optional<Spacing> even_spacing(const SimulatedPipeline& walked, const Rounds& rounds) {
  constexpr double agreement = 0.002;
  const std::size_t period = walked.coordinates.front().turns.size() / static_cast<std::size_t>(rounds.walked);
  const std::size_t window = 2 * static_cast<std::size_t>(rounds.filling) * period;
  std::vector<Steady> steady;
  for (const CoordinateTimes& c : walked.coordinates) steady.push_back(steady_turns(c.turns, period, rounds));
  for (int apart = 1; apart <= rounds.walked; ++apart) {
    const Seconds step = walked.step.total * (static_cast<double>(rounds.walked + rounds.left) / rounds.walked);
    auto found = spacing(steady, window, static_cast<std::size_t>(apart) * period,
                         step * agreement * (static_cast<double>(apart) / rounds.left));
    if (!found) continue;
    found->rounds = apart;
    return found;
  }
  return std::nullopt;
}

Seconds closed_schedule(const Strategy& strategy, const std::vector<StageTimes>& times) {
  const int wanted = static_cast<int>(strategy.accumulation), coordinates = strategy.pipeline;
  const auto walk = [&](int micro_batches) {
    const auto turns = make_schedule(strategy.schedule, {coordinates, strategy.chunks, micro_batches});
    return walk_schedule(*turns, times, micro_batches);
  };
  Rounds rounds;
  if (strategy.schedule == PipelineSchedule::interleaved) rounds.size = coordinates;
  rounds.filling = coordinates / rounds.size;
  for (int micro_batches = 8 * coordinates; micro_batches < wanted; micro_batches *= 2) {
    rounds.walked = micro_batches / rounds.size;
    rounds.left = (wanted - micro_batches) / rounds.size;
    const SimulatedPipeline walked = walk(micro_batches);
    const auto found = even_spacing(walked, rounds);
    if (!found) continue;
    // What is no multiple of the spacing's rounds is walked.
    const int rest = rounds.left % found->rounds;
    const Seconds total = rest == 0 ? walked.step.total : walk(micro_batches + rest * rounds.size).step.total;
    return total + (found->least + found->most) / 2.0 * static_cast<double>(rounds.left / found->rounds);
  }
  return walk(wanted).step.total;
}

}  // namespace

Seconds closed_pipeline(const Plan& plan, const std::vector<PricedStage>& priced, Slowdown slowdown) {
  std::vector<StageTimes> times;
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    times.push_back(stage_times(plan.stages[s], priced[s], {}, [&](Turn turn, Place place) {
      return closed_turn(plan.stages[s], priced[s], slowdown, turn, place);
    }));
  if (plan.strategy.schedule == PipelineSchedule::gpipe)
    return closed_gpipe(times, static_cast<int>(plan.strategy.accumulation));
  return closed_schedule(plan.strategy, times);
}

}  // namespace sibyl
