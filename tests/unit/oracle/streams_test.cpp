// Compute and communication beside each other: by hand, and formula against simulation.
#include "oracle/simulate/streams.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <span>

namespace sibyl {
namespace {

constexpr Slowdown free_overlap{1.0, 1.0};

TEST(Streams, MessageHidesBehindLaterTasks) {
  // Tasks of 1 s each; a message of 1.5 s after the first: runs 1.0-2.5, compute ends at 3.
  const Task tasks[] = {{Seconds{1}, {}}, {Seconds{1}, {}}, {Seconds{1}, {}}};
  const Message messages[] = {{Seconds{1.5}, 0}};
  const StreamsResult run = run_streams(tasks, messages, free_overlap);
  EXPECT_DOUBLE_EQ(run.messages[0].start.value(), 1.0);
  EXPECT_DOUBLE_EQ(run.message_end.value(), 2.5);
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 3.0);
}

// It asks every 1,024 events, here as many tasks of a second.
TEST(Streams, EndWhenTheyAreCancelled) {
  const std::vector<Task> tasks(5000, Task{Seconds{1}, {}});
  std::size_t asked = 0;
  const Cancelled second = [&asked] { return ++asked == 2; };
  const double end = run_streams(tasks, {}, free_overlap, {}, second).compute_end.value();
  EXPECT_EQ(asked, 2U);
  EXPECT_GT(end, 1024);
  EXPECT_LT(end, 3000);
}

// Whatever the numbers, they come to an end.
TEST(Streams, EndOfTimesThatAreNoNumbers) {
  const Seconds none{std::numeric_limits<double>::quiet_NaN()};
  const Task tasks[] = {{Seconds{1}, {}}, {none, {}}, {Seconds{1}, {}}};
  const Message messages[] = {{none, 0}};
  run_streams(tasks, {}, free_overlap);
  run_streams(tasks, messages, free_overlap);
  run_streams(std::span(tasks).first(1), messages, free_overlap);
}

TEST(Streams, MessagesGoOutInOrder) {
  // Both ready at 1; the second waits for the first: 1-3, 3-5.
  const Task tasks[] = {{Seconds{1}, {}}};
  const Message messages[] = {{Seconds{2}, 0}, {Seconds{2}, 0}};
  EXPECT_DOUBLE_EQ(run_streams(tasks, messages, free_overlap).message_end.value(), 5.0);
}

TEST(Streams, OverlapSlowsBoth) {
  // Message of 1 s ready at 1 while 3 s of compute remain. Factors 2 and 4: the message takes 4 s, in which compute
  // does 2 s of work; the last second runs alone: compute ends at 1 + 4 + 1 = 6.
  const Task tasks[] = {{Seconds{1}, {}}, {Seconds{3}, {}}};
  const Message messages[] = {{Seconds{1}, 0}};
  const StreamsResult run = run_streams(tasks, messages, {2.0, 4.0});
  EXPECT_DOUBLE_EQ(run.message_end.value(), 5.0);
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 6.0);
}

constexpr WireUse whole_wire{true, 1.0}, inside{false, 1.0};

TEST(SharedWire, EachHasItsPartOrWhatItCanUse) {
  const auto expect = [](WireUse first, WireUse second, double one, double other) {
    const Rates rates = shared_wire(first, second);
    EXPECT_DOUBLE_EQ(rates.first, one);
    EXPECT_DOUBLE_EQ(rates.second, other);
  };
  expect(whole_wire, whole_wire, 0.5, 0.5);
  expect({true, 0.8}, whole_wire, 0.625, 0.5);  // half of the wire is 0.5 / 0.8 of what it takes alone
  expect({true, 0.2}, whole_wire, 1.0, 0.8);    // latency for the most part
  expect(whole_wire, {true, 0.2}, 0.8, 1.0);
  expect({true, 0.5}, {true, 0.4}, 1.0, 1.0);
  expect({true, 0.0}, whole_wire, 1.0, 1.0);
  expect(whole_wire, inside, 1.0, 1.0);
  // By flows: three of four, or what is left of it.
  expect({true, 1.0, 3.0}, whole_wire, 0.75, 0.25);
  expect({true, 0.6, 3.0}, whole_wire, 1.0, 0.4);
  expect({true, 1.0, 3.0}, {true, 0.2}, 0.8, 1.0);
}

// An exchange of 1 s beside a message of 3 s from 1 on: each has half of the wire until 3, when 2 s of the message are
// left. The kernel behind it slows the message by 4 and is slowed by 2 itself: it ends at 5, when 1.5 s of the message
// are left.
TEST(Streams, ExchangeSharesTheWireWithAMessage) {
  const Task tasks[] = {{Seconds{1}, {}}, {Seconds{1}, {}, 0, 0, whole_wire}, {Seconds{1}, {}}};
  const Message messages[] = {{Seconds{3}, 0, whole_wire}};
  const StreamsResult run = run_streams(tasks, messages, {2.0, 4.0});
  EXPECT_DOUBLE_EQ(run.tasks[1].end.value(), 3.0);
  EXPECT_DOUBLE_EQ(run.exchange_delay.value(), 1.0);
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 5.0);
  EXPECT_DOUBLE_EQ(run.message_end.value(), 6.5);
  // The same by formula.
  const ReadyMessage ready[] = {{Seconds{1}, Seconds{3}, whole_wire}};
  const Stretch stretches[] = {{Seconds{1}}, {Seconds{2}, whole_wire}};
  const StreamEnds ends = closed_streams(Seconds{3}, ready, {2.0, 4.0}, stretches);
  EXPECT_DOUBLE_EQ(ends.compute.value(), 5.0);
  EXPECT_DOUBLE_EQ(ends.messages.value(), 6.5);
}

// An exchange waits 1 s for the others, in which a message of 3 s has the wire to itself; from 1 on each has half,
// until the exchange ends at 3; the last second of the message is then left.
TEST(Streams, WaitingForTheOthersTakesNoWire) {
  const Task tasks[] = {{Seconds{2}, {}, 0, 0, whole_wire, Seconds{1}}};
  const Message messages[] = {{Seconds{3}, Message::at_once, whole_wire}};
  const StreamsResult run = run_streams(tasks, messages, {2.0, 4.0});
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 3.0);
  EXPECT_DOUBLE_EQ(run.message_end.value(), 4.0);
}

TEST(Streams, ExchangeOnOtherWiresIsAlone) {
  const Task tasks[] = {{Seconds{1}, {}}, {Seconds{1}, {}, 0, 0, inside}};
  const Message messages[] = {{Seconds{3}, 0, whole_wire}};
  const StreamsResult run = run_streams(tasks, messages, {2.0, 4.0});
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 2.0);
  EXPECT_DOUBLE_EQ(run.message_end.value(), 4.0);
}

// Tasks of 1 s, a message of 2 s and a copy of 3 s after the first: they go on beside each other, and slow nothing. The
// second task waits for the message until 3, and then for the copy until 4.
TEST(Streams, CopiesHaveAStreamOfTheirOwn) {
  const Task tasks[] = {{Seconds{1}, {}}, {Seconds{1}, {}, 1, 1}};
  const Message messages[] = {{Seconds{2}, 0}}, copies[] = {{Seconds{3}, 0}, {Seconds{1}, Message::at_once}};
  const StreamsResult run = run_streams(tasks, messages, {2.0, 4.0}, copies);
  EXPECT_DOUBLE_EQ(run.messages[0].end.value(), 3.0);
  EXPECT_DOUBLE_EQ(run.copies[0].start.value(), 1.0);
  EXPECT_DOUBLE_EQ(run.copies[0].end.value(), 4.0);
  EXPECT_DOUBLE_EQ(run.copies[1].end.value(), 5.0) << "one after the other";
  EXPECT_DOUBLE_EQ(run.copy_end.value(), 5.0);
  EXPECT_DOUBLE_EQ(run.message_wait.value(), 2.0);
  EXPECT_DOUBLE_EQ(run.copy_wait.value(), 1.0);
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 5.0);
}

// Tasks of 2 s each, a copy of 1 s at once and one of 2 s after the first task, where each takes twice as long beside
// the other: the first copy ends at 2, when 1 s of the task is left; that ends at 3, and the second task and copy go on
// at half their speed until 7. Nothing is won: 7 s are what all four take by themselves, and 3 of them are lost to
// copies.
TEST(Streams, CopiesMayTakeTurnsWithKernels) {
  const Task tasks[] = {{Seconds{2}, {}}, {Seconds{2}, {}}};
  const Message copies[] = {{Seconds{1}, Message::at_once}, {Seconds{2}, 0}};
  const StreamsResult run = run_streams(tasks, {}, {.copies = 2.0}, copies);
  EXPECT_DOUBLE_EQ(run.copies[0].end.value(), 2.0);
  EXPECT_DOUBLE_EQ(run.tasks[0].end.value(), 3.0);
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 7.0);
  EXPECT_DOUBLE_EQ(run.copy_end.value(), 7.0);
  EXPECT_DOUBLE_EQ(run.copy_wait.value(), 3.0);
}

// Measured beside messages of 1 s (2, 4) and of 100 s (1, 2): of 10 s, half way in the logarithm, (1.5, 3); beyond them
// as the nearest.
TEST(Slowdown, IsInterpolatedByTheLengthOfAMessage) {
  Slowdown slowdown{9.0, 9.0};
  EXPECT_EQ(slowdown.beside(Seconds{5}).compute, 9.0);
  slowdown.measured[0] = {Seconds{1}, 2.0, 4.0};
  slowdown.measured[1] = {Seconds{100}, 1.0, 2.0};
  slowdown.count = 2;
  EXPECT_DOUBLE_EQ(slowdown.beside(Seconds{10}).compute, 1.5);
  EXPECT_DOUBLE_EQ(slowdown.beside(Seconds{10}).communication, 3.0);
  EXPECT_EQ(slowdown.beside(Seconds{0}).communication, 4.0);
  EXPECT_EQ(slowdown.beside(Seconds{0.1}).compute, 2.0);
  EXPECT_EQ(slowdown.beside(Seconds{1000}).compute, 1.0);
  // A message of 1 s beside compute takes 4, one of 100 s would take 200.
  const Task tasks[] = {{Seconds{1}, {}}, {Seconds{1000}, {}}};
  const Message messages[] = {{Seconds{1}, 0}, {Seconds{100}, 0}};
  const StreamsResult run = run_streams(tasks, messages, slowdown);
  EXPECT_DOUBLE_EQ(run.messages[0].end.value(), 5.0);
  EXPECT_DOUBLE_EQ(run.messages[1].end.value(), 205.0);
}

TEST(Streams, DeviceWaitsForLaunches) {
  // Launches end at 2 and 4; kernels of 1 s: 2-3, 4-5; the device waited 2 s + 1 s.
  const Task tasks[] = {{Seconds{1}, Seconds{2}}, {Seconds{1}, Seconds{2}}};
  const StreamsResult run = run_streams(tasks, {}, free_overlap);
  EXPECT_DOUBLE_EQ(run.compute_end.value(), 5.0);
  EXPECT_DOUBLE_EQ(run.host_wait.value(), 3.0);
}

RC_GTEST_PROP(Streams, FormulaEqualsSimulation, ()) {
  const auto durations = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1000));
  const auto sizes = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 3000));
  RC_PRE(!durations.empty());
  Slowdown slowdown{1.0 + 0.01 * *rc::gen::inRange(0, 200), 1.0 + 0.01 * *rc::gen::inRange(0, 200)};
  slowdown.count = *rc::gen::inRange(std::size_t{0}, std::size_t{3});
  for (std::size_t i = 0; i < slowdown.count; ++i)
    slowdown.measured[i] = {Seconds{0.1 + static_cast<double>(i)}, 1.0 + 0.01 * *rc::gen::inRange(0, 200),
                            1.0 + 0.01 * *rc::gen::inRange(0, 200)};
  // Perhaps every other task an exchange, which waits for a part of its time; the first few are kernels in any case.
  const bool exchanges = *rc::gen::arbitrary<bool>();
  const auto any_wire = [] {
    return WireUse{*rc::gen::arbitrary<bool>(), 0.01 * *rc::gen::inRange(0, 101), 1.0 * *rc::gen::inRange(1, 5)};
  };
  std::vector<Task> tasks;
  std::vector<Stretch> stretches;
  Seconds total;
  std::vector<Seconds> done;
  const std::size_t first = *rc::gen::inRange(std::size_t{0}, durations.size() + 1);
  Seconds before;
  for (const int d : durations) {
    const Seconds duration{d * 1e-3};
    tasks.push_back({duration, {}});
    total += duration;
    done.push_back(total);
    if (tasks.size() <= first) {
      before = total;
      continue;
    }
    const Seconds until = total - before;
    if (!exchanges || tasks.size() % 2 == 0) {
      stretches.push_back({until});
      continue;
    }
    tasks.back().wire = any_wire();
    tasks.back().wait = duration * (0.01 * *rc::gen::inRange(0, 100));
    stretches.push_back({until - duration + tasks.back().wait, WireUse{}});
    stretches.push_back({until, tasks.back().wire});
  }
  std::vector<Message> messages;
  std::vector<ReadyMessage> ready;
  std::size_t after = 0;
  for (const int s : sizes) {
    after = *rc::gen::inRange(after, tasks.size());
    messages.push_back({Seconds{s * 1e-3}, after, any_wire()});
    ready.push_back({done[after], messages.back().duration, messages.back().wire});
  }
  const StreamsResult run = run_streams(tasks, messages, slowdown);
  const StreamEnds ends =
      exchanges ? closed_streams(total, ready, slowdown, stretches, before) : closed_streams(total, ready, slowdown);
  RC_ASSERT(std::abs(run.compute_end / ends.compute - 1) < 1e-9);
  if (!messages.empty()) RC_ASSERT(std::abs(run.message_end / ends.messages - 1) < 1e-9);
}

}  // namespace
}  // namespace sibyl
