// What `sibyl calibrate --json` prints.
#include "calibration/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sibyl {
namespace {

// Two kernels, a message, five pairs and a series of meetings more than the one kernel, two messages and one series
// that there were; nothing else was measured. Of overlaps there are fewer: what is measured anew takes the place of
// what there was.
TEST(CalibrationSummary, CountsWhatARunAdded) {
  Calibration c;
  c.ranks_per_node = 2;
  c.threads = 3;
  c.kernels.resize(3);
  c.point_to_point.resize(3);
  c.pairs.resize(5);
  c.overlap.resize(1);
  c.meetings.resize(2);
  c.io.resize(4);
  EXPECT_EQ(count_samples(c), (SampleCounts{.kernels = 3,
                                            .point_to_point = 3,
                                            .pairs = 5,
                                            .collectives = 0,
                                            .overlap = 1,
                                            .meetings = 2,
                                            .io = 4,
                                            .steps = 0}));
  const SampleCounts before{.kernels = 1,
                            .point_to_point = 2,
                            .pairs = 0,
                            .collectives = 0,
                            .overlap = 2,
                            .meetings = 1,
                            .io = 4,
                            .steps = 0};
  EXPECT_EQ(summary_json("machine \"1\".json", before, c, Seconds{1.5}), R"({
  "schema": "sibyl-calibrated",
  "version": 1,
  "file": "machine \"1\".json",
  "elapsed_s": 1.5,
  "ranks_per_node": 2,
  "threads": 3,
  "added": {
    "kernels": 2,
    "point_to_point": 1,
    "pairs": 5,
    "collectives": 0,
    "overlap": 0,
    "meetings": 1,
    "io": 0,
    "steps": 0
  },
  "samples": {
    "kernels": 3,
    "point_to_point": 3,
    "pairs": 5,
    "collectives": 0,
    "overlap": 1,
    "meetings": 2,
    "io": 4,
    "steps": 0
  }
}
)");
}

}  // namespace
}  // namespace sibyl
