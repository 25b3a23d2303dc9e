// Which strategy trains this model fastest on that cluster?
//
// Strategies of the space are priced by formula (oracle/closed), on all processors, and the fastest of them, and those
// that may be on the front, are simulated as predict() does it: what is given back has predict()'s numbers. One whose
// weights, gradients and optimizer state alone are more than a device holds is left out before it is planned, and one
// that takes too long to be either, wherever it is cut, before it is priced. The answer depends on the arguments alone,
// not on threads, unless it is cancelled: then it is that of what was tried by then.
//
// Strategies that are slower than the fastest by less than the 90 % interval of the difference, or negligible_time, are
// named equal to it: nothing that was measured tells which of them is faster. What both are wrong about alike, the
// kernels that they share above all, does not count (step_error.h). The simplest of those that take at most 1 % longer
// than the fastest (worth_of_simplicity), and of those that are as simple the fastest, is recommended.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/prediction.h"
#include "oracle/search/space.h"

namespace sibyl {

struct Candidate {
  Strategy strategy;
  Seconds step_time, interval_low, interval_high;  // 90 %
  double throughput = 0;                           // samples per second
  Bytes memory;                                    // of the fullest device, as what it must hold
  TimeBreakdown breakdown;
  StepError error;
  Bottleneck bottleneck;  // of those that a search gives back
  bool equal = false;     // to the fastest, as far as is known
};

// Of a step's time: for so much more a simpler strategy is recommended, if it is equal. Half of what a recommendation
// may cost (docs/validation/search.md); the other half is what predictions may be wrong by.
inline constexpr double worth_of_simplicity = 0.01;
inline constexpr double negligible_memory = 0.01;  // less than so much saved is nothing
// The front goes as far as so many times the device time (a step's time by devices) of the fastest: what takes more is
// no choice, whatever memory it saves.
inline constexpr double most_device_time = 3.0;

// Strategies that were not predicted, by reason: as the first of them was refused. Others' words may have other
// numbers.
struct LeftOut {
  std::string why;
  std::string hint;  // what to do about it, as Error::hint
  std::size_t count = 0;
  std::size_t alike = 0;  // in how many other wordings
};

struct SearchResult {
  std::size_t size = 0;        // strategies in the space
  std::size_t tried = 0;       // looked at: all, unless cancelled by then
  std::size_t simulated = 0;   // of these, as predict() does it
  std::size_t by_formula = 0;  // of these, by formula alone; the rest were left out, or are too large or slow at once
  std::size_t fitting = 0;     // that can be run; of those not simulated, as far as the formula tells
  std::size_t too_large = 0;   // that memory does not hold; likewise
  std::size_t too_slow = 0;    // that take more device time than any on the front in any case, whether they fit or not
  bool cancelled = false;      // what follows is of what was known by then, and some bottlenecks have no name
  // Of those that come out the same, in time, memory and devices, the simplest stands for all from here on.
  std::size_t equal = 0;  // simulated ones that fit and are not known to be slower than the fastest, itself among them;
                          // of the others hardly one is simpler than all of these
  std::vector<Candidate> best;  // fitting ones, fastest first; at most as many as asked for
  Candidate recommended;        // where `best` is not empty
  // Nothing else is as fast with as little memory (but for what is negligible) on as few devices; ascending in time, as
  // far as most_device_time.
  std::vector<Candidate> front;
  std::vector<LeftOut> left_out;  // the most frequent first
};

struct SearchOptions {
  std::size_t keep = 10;
  Bytes memory = {};        // of a device that may be used; 0: all it has
  bool exhaustive = false;  // simulate every strategy
  unsigned threads = 0;     // 0: as many as there are processors
  std::function<void(std::size_t done, std::size_t total)> progress = {};  // called by the calling thread
  std::function<bool()> cancelled = {};                                    // by any thread
};

// Fails, code infeasible, where the space has no strategy. One of which none fits is an answer.
Result<SearchResult> search(const Graph& graph, const SearchSpace& space, const Cluster& cluster,
                            const SearchOptions& options = {});

// What a candidate waits for that another does not: the part of the step that is the most longer.
struct Excess {
  std::string part;  // "compute", "exposed communication", "bubble", …
  Seconds time;      // 0 where none is longer
};
Excess excess_over(const Candidate& candidate, const Candidate& other);

}  // namespace sibyl
