// How well a calibration's collectives predict those it was not shown: some left out, predicted from the others, and
// compared. Beside leave_out.h, which does it with kernels.
#pragma once

#include <vector>

#include "calibration/calibration.h"
#include "calibration/error_summary.h"

namespace sibyl {

enum class LeftOut {
  sizes,          // every other size of each placement, predicted from the sizes between; twice, so that all are
  longest,        // sizes of more than a sixteenth of a placement's longest, predicted from the shorter ones
  count_between,  // all of a number of ranks in one node, predicted from fewer and from more
  most_ranks,     // all of the largest number of ranks in one node, predicted from fewer
  all,            // every collective, predicted from messages between pairs alone; where there are such
};
std::string_view to_string(LeftOut left_out);  // "every other size"

// One that was left out; `sample` as measured.
struct LeftOutCollective {
  LeftOut left_out = LeftOut::sizes;
  CollectiveSample sample;
  CollectiveEstimate predicted;
};

// Each sample is asked for by the algorithm that it names. What cannot be left out (a single count) has no entry. Of a
// calibration: on the machine that it was taken on, as far as it tells.
std::vector<LeftOutCollective> left_out_collectives(const Network& network);
std::vector<LeftOutCollective> left_out_collectives(const Calibration& calibration);

// Of one collective.
struct CollectiveErrors : ErrorSummary {
  Collective collective = Collective::all_reduce;
  LeftOut left_out = LeftOut::sizes;
};
std::vector<CollectiveErrors> errors_of(const std::vector<LeftOutCollective>& predicted);

}  // namespace sibyl
