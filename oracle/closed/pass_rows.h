// Passes of a pipeline that do not wait for each other, many at once: rows of them, one of each coordinate, in plain
// loops that compilers turn into vector instructions.
//
// A pass begins once its coordinate is done with the one before and what it waits for has arrived; then its result is
// on its way, behind what was sent before. Where messages share a wire with exchanges, a pass loses to messages that
// are on it yet, and a message to the pass that begins as it sets out (simulate/rank_wires.h). Seconds.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <new>
#include <span>
#include <vector>

// The processor at hand has its say which vectors there are. Nothing is fused or summed in another order: results are
// the same bytes on any. The widest ones come with fused multiplications, so they are for loops that multiply nothing.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SIBYL_ANY_VECTORS __attribute__((target_clones("avx2", "default")))
#define SIBYL_WIDEST_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SIBYL_ANY_VECTORS
#define SIBYL_WIDEST_VECTORS
#endif
// Before a loop over rows that do not overlap: it need not look whether they do.
#if defined(__GNUC__) && !defined(__clang__)
#define SIBYL_ROWS_APART _Pragma("GCC ivdep")
#else
#define SIBYL_ROWS_APART
#endif

namespace sibyl::closed {

inline constexpr std::size_t wire_count = 2;  // inside the node, between nodes

// A pass, and what it and its coordinate's messages do to each other.
struct PassFacts {
  struct Loss {
    double share = 0, most = 0;  // so much of what is met, and no more than that
  };
  double time = 0;
  std::array<Loss, wire_count> to_messages = {};  // its own: of the time for which one is on the wire yet
  Loss of_forward = {}, of_backward = {};         // those of the message each way that sets out as it begins
};

struct MessageFacts {
  static constexpr double never = std::numeric_limits<double>::infinity();
  double alone = 0, on_wire = 0;                         // until it is there; of these on its wire
  std::array<double, wire_count> rest = {never, never};  // it has left the wire so long before; never: was not on it
};

// What a stage does over and over.
struct StageFacts {
  PassFacts forward = {}, backward = {}, first_backward = {};  // the last: of the first micro-batch
  MessageFacts sent_forward = {}, sent_backward = {};
  double weights = 0;  // where a backward is split into two parts, the second
};

// The same where no wires are shared.
struct TimesAlone {
  double forward = 0, backward = 0, first_backward = 0;  // the last: of the first micro-batch
  double sent_forward = 0, sent_backward = 0;            // until it is there
  double weights = 0, first_weights = 0;                 // where a backward is not split into two parts 0
};

// When a coordinate is done so far, its last transfers each way, and until when these are on its wires.
struct CoordinateState {
  double ready = 0, forward = 0, backward = 0;
  std::array<double, wire_count> until = {};
};

// What could not be taken with others, and has to be taken next: a backward pass. `arrived`: what it waits for.
struct SinglePass {
  std::size_t coordinate = 0, pass = 0;
  double arrived = 0;
};
// Up to which tick passes were taken, and what of that could not be.
struct Reached {
  int tick = 0;
  std::span<const SinglePass> singles = {};
};

// Of vectors that begin with a cache line, so that the widest loads and stores lie within one.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line)); }
  void deallocate(T* values, std::size_t) { ::operator delete(values, line); }
  bool operator==(const LineAllocator&) const = default;
};
using AlignedValues = std::vector<double, LineAllocator<double>>;

struct PassRow {
  struct Losses {
    std::vector<double> share, most;
  };
  std::vector<double> time;
  std::array<Losses, wire_count> to_messages;
  Losses of_forward, of_backward;

  void resize(std::size_t count, bool sharing);
  void set(std::size_t at, const PassFacts& facts, bool sharing);
};

struct MessageRow {
  std::vector<double> alone, on_wire;
  std::array<std::vector<double>, wire_count> rest;

  void resize(std::size_t count, bool sharing);
  void set(std::size_t at, const MessageFacts& facts, bool sharing);
};

// So many neighbours in a row. None of these overlap.
struct Coordinates {
  std::size_t count = 0;
  double* ready = nullptr;
  const double* arrived = nullptr;
  double* sent = nullptr;
};
using UntilByWire = std::array<std::vector<double>, wire_count>;
struct CoordinatesOnWires {
  // Of what outlives it: a copy waits for what was just written. `within`: some send inside their node, too.
  CoordinatesOnWires(const Coordinates& coordinates, UntilByWire& until, std::size_t at, bool within)
      : of(coordinates), inside(within ? until[0].data() + at : nullptr), between(until[1].data() + at) {}
  const Coordinates& of;
  double *inside, *between;  // until when what they sent is on that wire; null: none does
};

// When it is done. `sent`: so far over the channel of its message, and then with that.
[[gnu::always_inline]] inline double pass_one(double ready, double arrived, double time, double alone, double& sent) {
  const double channel = sent, done = (ready < arrived ? arrived : ready) + time;
  sent = (channel < done ? done : channel) + alone;
  return done;
}
// From place `at` of both rows on.
void pass_all(const Coordinates& coordinates, const PassRow& passes, const MessageRow& messages, std::size_t at);
// The same on shared wires. `losses`: of the messages to what follows, from its place `next` on.
void pass_all(const CoordinatesOnWires& on, const PassRow& passes, const MessageRow& messages, std::size_t at,
              const PassRow::Losses& losses, std::size_t next);
void add_all(std::size_t count, double* to, const double* times);

}  // namespace sibyl::closed
