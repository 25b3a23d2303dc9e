// Streams of one device: kernels in order, messages in order beside them, and copies to and from its host in order
// beside both.
//
// A kernel starts when the one before it has ended, the host has issued it, and the messages and copies it needs are
// there. A message, or a copy, starts when the one before it has ended and its kernel has completed. While kernels and
// messages are both under way each is slowed by its measured factor; an exchange, which is a message that computation
// waits for, shares the wire with the message beside it instead. The simulation is a fluid one, exact between events.
// Copies slow no message, and kernels as far as is said. Time O(kernels + messages + copies).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/cancelled.h"
#include "base/units.h"
#include "netmodel/network.h"

namespace sibyl {

struct Task {
  Seconds duration;
  Seconds issue;                     // host time spent to launch it, before it can start
  std::size_t messages = 0;          // so many of the first messages must be done before it starts
  std::size_t copies = 0;            // and so many of the first copies
  std::optional<WireUse> wire = {};  // of an exchange; none: a kernel
  Seconds wait = {};  // of `duration`, at its beginning: an exchange waits for the others, and slows nothing
};

struct Message {
  Seconds duration;
  static constexpr std::size_t at_once = static_cast<std::size_t>(-1);
  std::size_t after = 0;  // may start when tasks [0, after] are done; at_once: waits for none
  WireUse wire = {};
};

struct Slowdown {
  double compute = 1.0;        // of kernels while a message is under way
  double communication = 1.0;  // of messages while a kernel runs
  double copies = 1.0;         // of kernels and of copies while both are under way
  // Where both were measured beside messages of several lengths: ascending in what a message takes alone.
  struct Measured {
    Seconds message;
    double compute = 1.0, communication = 1.0;
  };
  static constexpr std::size_t most_measured = 8;
  std::array<Measured, most_measured> measured{};
  std::size_t count = 0;

  // Beside a message of this length: between two that were measured, in the logarithm of the length; beyond them as the
  // nearest.
  [[nodiscard]] Measured beside(Seconds message) const;
};

// How fast two go on beside each other, of 1 each alone.
struct Rates {
  double first = 1.0, second = 1.0;
};
// Two messages that share a wire: each has its part of it, by flows, or what it can use of it if that is less, and the
// other the rest (max-min fairness). On different wires they are alone.
Rates shared_wire(const WireUse& first, const WireUse& second);

struct Span {
  Seconds start, end;
};

struct StreamsResult {
  std::vector<Span> tasks;
  std::vector<Span> messages;
  Seconds compute_end;     // of the last task
  Seconds message_end;     // of the last message; 0 without any
  Seconds host_wait;       // the device waited for a launch
  Seconds message_wait;    // and for a message
  Seconds exchange_delay;  // exchanges took longer by as much, beside messages
  std::vector<Span> copies;
  Seconds copy_end;   // of the last copy; 0 without any
  Seconds copy_wait;  // the device waited for a copy, and for no message, or lost to it what it ran
};

// Cancelled: what was run until then.
StreamsResult run_streams(std::span<const Task> tasks, std::span<const Message> messages, const Slowdown& slowdown,
                          std::span<const Message> copies = {}, const Cancelled& cancelled = {});

// Where both streams end, by formula, from the messages alone, so that a strategy is priced without walking its
// kernels. Exact where the host never waits.
struct StreamEnds {
  Seconds compute, messages;
};
struct ReadyMessage {
  Seconds ready;  // tasks done (sum of durations) before it may start
  Seconds duration;
  WireUse wire = {};
};
// Kernels in a row, or an exchange.
struct Stretch {
  Seconds until;  // tasks done by its end
  std::optional<WireUse> exchange = {};
};
// `tasks`: the sum of their durations. `stretches`: of the tasks behind the first `before`, ascending, `until` counted
// from there; none: all are kernels, and so are those before. O(messages + stretches).
StreamEnds closed_streams(Seconds tasks, std::span<const ReadyMessage> messages, const Slowdown& slowdown,
                          std::span<const Stretch> stretches = {}, Seconds before = {});

}  // namespace sibyl
