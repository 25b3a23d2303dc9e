// How fast a step reads again what it has touched before, by how much else it touches in between, and in all.
//
// A cache that keeps what was used last holds a byte as long as few others were touched since. Others keep what comes
// again and again, and of what is new to them little: there it matters how much a step touches until the same comes
// again. So it is measured as a step does it: memory is walked through and back, again and again, each part of
// it so many bytes apart (torch/reuse_sweep.h). What others on the machine need of the cache takes away with time what
// is not touched, and what was touched but once a cache may not take in at all: both are measured, too.
#pragma once

#include <vector>

#include "base/units.h"
#include "profiler/cache.h"

namespace sibyl {

// What is read `distance` bytes after it was touched, itself among them, in a step that touches `step` bytes in all.
struct ReuseSample {
  Bytes step, distance;
  BytesPerSecond rate;
};

// What is read `age` after it was touched `touches` times in a row, while hardly anything else was; where that is not
// at all, it comes from memory.
struct LastingSample {
  int touches;
  Seconds age;
  BytesPerSecond rate;
};

class ReuseCurve {
 public:
  // Between two touches of the same byte: all else that was touched, and itself, and the time that has passed.
  struct Since {
    Bytes distance;
    Seconds age;
  };

  ReuseCurve() = default;
  // In any order; nothing is read faster for being farther away or of a larger step. Without samples as the sweep of
  // reads has it (cache.h), as if a cache kept what was used last: a working set that is read again and again comes
  // back to each of its bytes after all the others. Without that, too, all within `cache` is found there, and nothing
  // beyond twice as much. Without `lasting` what is there stays, however long.
  ReuseCurve(const std::vector<ReuseSample>& samples, const std::vector<ReadSample>& sweep, Bytes cache,
             const std::vector<LastingSample>& lasting = {});

  [[nodiscard]] bool known() const { return !rows_.empty() && rows_.back().points.size() > 1; }
  // Of the time by which memory is slower than what comes again within `near` bytes in all, the share that is saved by
  // what a step touched so long ago that comes again after so many bytes in the mean: 1 where both are read alike, 0
  // where that comes from memory.
  [[nodiscard]] double found(const Since& last, Bytes near, Bytes apart) const;

 private:
  struct Point {
    double log_bytes = 0, time = 0;  // of a byte
  };
  struct Row {
    double log_step = 0;
    std::vector<Point> points;  // by distance, ascending in both
  };
  struct Aged {
    Seconds age;
    double kept = 1;  // of what was there at first
  };
  [[nodiscard]] static double time_of_byte(const Row& row, double log_distance);
  [[nodiscard]] double time_of_byte(Bytes distance, Bytes step) const;
  [[nodiscard]] double memory() const { return rows_.back().points.back().time; }
  [[nodiscard]] double kept(Seconds age) const;
  void never_faster();
  void learn(const std::vector<LastingSample>& samples);

  std::vector<Row> rows_;  // ascending
  std::vector<Aged> aged_;  // from young to old
};

}  // namespace sibyl
